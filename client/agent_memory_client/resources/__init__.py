"""API calls, one file per resource. `client/scripts/make_sync.py` generates the blocking twin of each file."""
