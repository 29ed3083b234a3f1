"""Set up a run: processes, data and connections."""
