"""What is measured, and what it is given: processes, data, connections."""
