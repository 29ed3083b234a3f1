"""Memory blocks: labeled text at the top of the owner's prompts."""
