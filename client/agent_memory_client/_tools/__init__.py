"""Tools for language models: schemas, arguments, answers and calls. Sends nothing."""
