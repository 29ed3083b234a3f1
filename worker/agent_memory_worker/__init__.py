"""What happens after the response: promotion, extraction, summaries and indexing. Ships with the server, never on the request path."""
