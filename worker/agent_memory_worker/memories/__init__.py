"""Maintain memories: embed them, merge duplicates, apply retention and count usage."""
