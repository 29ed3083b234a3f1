"""Run background work: promotion, extraction, summaries and indexing. No request waits for it."""
