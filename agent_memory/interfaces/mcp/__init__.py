"""Serve memory as tools for a model, by MCP over stdio, SSE and streamable HTTP."""
