"""Calls as other protocols carry them, with their hooks: model calls over HTTP, and the results of MCP tools."""
