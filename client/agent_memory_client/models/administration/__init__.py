"""Models for administrators: credentials, background jobs, imports and purges."""
