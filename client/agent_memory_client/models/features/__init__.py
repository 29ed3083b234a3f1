"""What is known in other shapes than memories: memory blocks."""
