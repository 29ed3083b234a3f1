"""Provide memory tools to models, using MCP over stdio, SSE and streamable HTTP."""
