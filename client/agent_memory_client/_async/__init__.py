"""The asynchronous client's methods. `client/scripts/make_sync.py` makes `_sync` of them."""
