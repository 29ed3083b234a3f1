"""Build requests, decide on retries, and parse responses. This package sends no requests."""
