"""Extract facts from messages, and reconcile the facts with existing memories."""
