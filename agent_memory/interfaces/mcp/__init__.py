"""The MCP interface: memory as tools for a model, over stdio, SSE and streamable HTTP."""
