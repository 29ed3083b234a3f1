"""Memory blocks are labeled texts at the top of every prompt of their owner."""
