"""The MCP face: the memory as tools for a model, over stdio, SSE and streamable HTTP."""
