"""Facts from what was said, and what they do to what is remembered."""
