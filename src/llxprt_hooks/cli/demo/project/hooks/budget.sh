# Stops the agent when the budget is used up.
echo '{"continue": false, "stopReason": "the budget is used up"}'
