"""Build requests, decide on retries, and parse responses. This package does not send requests."""
