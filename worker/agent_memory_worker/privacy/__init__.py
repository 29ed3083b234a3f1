"""Erasing users and sessions, purging sources."""
