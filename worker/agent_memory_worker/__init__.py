"""Run background work: promotion, extraction, summaries and indexing. Requests never wait for this work."""
