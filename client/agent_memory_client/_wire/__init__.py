"""Build requests, decide on retries and parse answers. Sends nothing."""
