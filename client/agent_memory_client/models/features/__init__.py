"""Wire models for extensions, one file per extension. Import an extension's models from its file."""
