"""Turn a session's messages into memories, and its oldest ones into a summary."""
