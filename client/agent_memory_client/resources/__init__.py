"""The calls of the API, one file per noun. `client/scripts/make_sync.py` makes the blocking twin of each."""
