"""What the server costs, beside what it cannot cost less than. `.venv/bin/python -m benchmarks run`; see docs/performance.md."""
