"""Memory blocks: labeled texts at the top of their owner's prompts."""
