"""Tools for language models: schemas, arguments, results and calls. This package sends no requests."""
