"""A proxy that adds memories to language model calls and stores the responses."""
