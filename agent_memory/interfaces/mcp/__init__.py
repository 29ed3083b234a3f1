"""Serve memory as tools for a model, using MCP over stdio, SSE and streamable HTTP."""
