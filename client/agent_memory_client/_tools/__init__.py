"""Tools for language models. This package sends no requests."""
