"""API calls, one file per resource."""
