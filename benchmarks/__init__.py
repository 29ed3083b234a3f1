"""Measure the server's cost, and compare it with the lowest possible cost.

Run it with `.venv/bin/python -m benchmarks run`; see docs/performance.md.
"""
