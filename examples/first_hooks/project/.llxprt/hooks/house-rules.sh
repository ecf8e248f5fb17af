#!/bin/sh
# Reminds the model of a rule whenever it reads a file.
echo '{"hookSpecificOutput": {"additionalContext": "House rule: answer in one sentence."}}'
