"""The lowest possible costs of operations, for comparison."""
