"""Tools for language models. This package does not send requests."""
