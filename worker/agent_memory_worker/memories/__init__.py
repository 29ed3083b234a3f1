"""The upkeep of memories: their vectors, duplicates, retention and what is counted of them."""
