"""The wire of items."""
