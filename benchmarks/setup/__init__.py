"""Set up the processes, data and connections for a run."""
