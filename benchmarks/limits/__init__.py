"""What operations are measured beside."""
