"""Show pinned memories in the prompt."""
