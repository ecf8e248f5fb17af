#!/bin/sh
# BeforeToolSelection, read-only mode: the model chooses among the reading tools only.
echo '{"hookSpecificOutput": {"toolConfig": {"mode": "AUTO", "allowedFunctionNames":
    ["read_file", "read_many_files", "list_directory", "glob", "search_file_content"]}}}'
