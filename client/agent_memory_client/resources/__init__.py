"""API calls, one file per resource. `client/scripts/make_sync.py` makes the blocking twin of each."""
