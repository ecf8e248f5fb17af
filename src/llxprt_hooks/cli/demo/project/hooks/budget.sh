# Stops the agent: enough is enough.
echo '{"continue": false, "stopReason": "the budget for this session is used up"}'
