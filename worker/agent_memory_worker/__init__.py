"""Run background tasks, such as promotion, extraction, summarization and indexing."""
