"""The calls of the API, one file a noun. `client/scripts/make_sync.py` makes the blocking twin of each."""
