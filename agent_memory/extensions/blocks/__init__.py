"""Memory blocks: labelled texts that stand in every prompt of their owner."""
