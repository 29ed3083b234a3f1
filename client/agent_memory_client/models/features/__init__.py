"""The wire models of features, a file each, imported from there."""
