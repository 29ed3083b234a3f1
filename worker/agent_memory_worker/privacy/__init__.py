"""Erase users and sessions, purge sources."""
