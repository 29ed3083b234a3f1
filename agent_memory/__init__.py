"""A memory server for AI agents. It keeps working memory per session and long-term memory across sessions."""

__version__ = "0.1.0"
