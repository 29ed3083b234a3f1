"""MCP tools for agents that manage their own long-term memory."""
