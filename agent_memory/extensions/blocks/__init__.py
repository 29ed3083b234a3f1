"""Memory blocks: labeled texts at the top of every prompt of their owner."""
