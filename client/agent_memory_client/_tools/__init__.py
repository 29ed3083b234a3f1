"""Tools for language models without the network: schemas, arguments, answers and calls."""
