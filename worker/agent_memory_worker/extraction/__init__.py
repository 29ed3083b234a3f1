"""Extract facts from messages, and reconcile them with memories."""
