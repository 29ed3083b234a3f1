"""Background work: promotion, extraction, summaries and indexing. Never on the request path."""
