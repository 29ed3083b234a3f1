"""Turn a session's messages into memories, and summarize its oldest messages."""
