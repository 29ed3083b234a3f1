"""MCP tools for an agent that manages its own long-term memory (the archive)."""
