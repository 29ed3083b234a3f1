"""Build requests, decide on retries and parse answers; sends nothing."""
