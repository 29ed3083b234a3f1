"""API calls, with one file per resource."""
