"""A memory server for AI agents, with working memory and long-term memory."""

__version__ = "0.1.0"
