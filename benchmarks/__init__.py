"""Measure what the server costs, beside the least that it could cost.

Run it with `.venv/bin/python -m benchmarks run`; see docs/performance.md.
"""
