# Reminds the model of a rule whenever it reads a file.
echo '{"hookSpecificOutput": {"additionalContext": "Rule: keep contact data private."}}'
