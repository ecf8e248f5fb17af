# Turns a removal into a command that only prints what it would do.
if grep -q '"command": *"rm '; then
    echo '{"hookSpecificOutput": {"tool_input": {"command": "echo would remove build"}}}'
fi
