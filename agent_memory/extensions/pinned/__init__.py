"""Pinned memories in the prompt."""
