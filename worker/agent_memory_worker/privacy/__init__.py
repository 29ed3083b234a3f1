"""Erase users, agents and sessions, and purge sources."""
