"""Wire models of extensions, one file each, imported from there."""
