# Reminds the model of a rule whenever it reads a file.
echo '{"hookSpecificOutput": {"additionalContext": "House rule: contact data never leaves this machine."}}'
