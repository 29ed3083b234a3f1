"""Nouns of extensions, one file each; `registry.py` lists them."""
