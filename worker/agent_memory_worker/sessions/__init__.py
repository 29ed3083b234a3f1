"""Turn a session's messages into memories, and its oldest messages into a summary."""
