"""Models for administrators: credentials, background work, imports and purges."""
