"""The memory server for AI agents: working memory per session, long-term memory across them."""

__version__ = "0.1.0"
