"""The archive of an agent that manages its own memory."""
