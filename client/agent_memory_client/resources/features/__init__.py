"""Resources of extensions, one file per resource. `registry.py` lists them."""
