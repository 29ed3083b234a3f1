"""Upkeep of memories: vectors, duplicates, retention and usage."""
