"""Tools that only read, in lower case. All other tools count as tools that write."""

READING_TOOLS = {"read_file", "read_many_files", "list_directory", "glob", "search_file_content", "grep_search", "read",
                 "view", "view_file", "list_files", "list_dir", "ls", "grep", "search_files"}  # fmt: skip
