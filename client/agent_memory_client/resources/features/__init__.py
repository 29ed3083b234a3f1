"""The nouns that features bring, a file each; `registry.py` lists them."""
