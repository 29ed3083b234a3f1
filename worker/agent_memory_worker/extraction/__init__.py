"""Extract facts from messages, and reconcile them with existing memories."""
