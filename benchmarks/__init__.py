"""What the server costs, beside what it cannot cost less than. `make bench`; see docs/performance.md."""
