# Made of agent_memory_client/_async/__init__.py by client/scripts/make_sync.py: change that file, then run the script.
"""The synchronous client's methods."""
