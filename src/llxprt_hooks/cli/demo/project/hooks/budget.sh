# Stops the agent when the budget is used up.
echo '{"continue": false, "stopReason": "the budget for this session is used up"}'
