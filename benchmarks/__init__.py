"""Measure the cost of the server's operations, and compare it with the lowest possible cost.

Run it with `.venv/bin/python -m benchmarks run`. See docs/performance.md.
"""
