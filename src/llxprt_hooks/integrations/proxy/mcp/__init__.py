"""The MCP proxy: messages between a client and a server pass hooks, whatever carries the messages."""
