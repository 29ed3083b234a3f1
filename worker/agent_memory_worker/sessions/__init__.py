"""What becomes of a session's messages: memories, and the summary of the oldest."""
