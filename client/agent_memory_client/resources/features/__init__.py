"""Resources from extensions, with one file per resource. `registry.py` lists them."""
