# Answers a known question without calling the model.
if grep -q 'capital of France'; then
    echo '{"decision": "block", "reason": "the answer is known",
        "hookSpecificOutput": {"llm_response": {"text": "Paris, says the answer book."}}}'
fi
