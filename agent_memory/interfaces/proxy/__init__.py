"""A proxy for language model calls. It adds memories to each request, forwards it to an upstream, and stores the answer."""
