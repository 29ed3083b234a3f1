"""Resources from extensions, one file per resource. `registry.py` lists them."""
