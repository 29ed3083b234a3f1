"""What is known in other shapes than memories, one file a noun, with its tools for models."""
