# Allows only read-only tools when the user asked for no changes.
if grep -q 'change nothing'; then
    echo '{"hookSpecificOutput": {"toolConfig": {"mode": "AUTO", "allowedFunctionNames": ["read_file", "glob"]}}}'
fi
