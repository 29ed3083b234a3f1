"""API models for extensions, with one file per extension."""
