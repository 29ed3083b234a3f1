"""Wire models of extensions. Each extension has one file; import its models from there."""
