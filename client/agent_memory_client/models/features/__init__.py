"""Wire models of extensions, one file per extension. Import an extension's models from its file."""
