"""Run background work, such as promotion, extraction, summaries and indexing."""
