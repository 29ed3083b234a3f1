"""What whoever runs a server sends and reads: credentials, background work, imports, purges."""
