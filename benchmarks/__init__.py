"""Measure the cost of the server's operations and compare it with theoretical limits.

Run `.venv/bin/python -m benchmarks run`. See docs/performance.md.
"""
