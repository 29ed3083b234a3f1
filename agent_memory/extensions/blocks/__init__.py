"""Memory blocks: labeled texts at the top of each of their owner's prompts."""
