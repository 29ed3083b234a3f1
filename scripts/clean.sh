#!/bin/sh
# Removes environments, built packages and caches.
set -eu
cd "$(dirname "$0")/.."
rm -rf .venv .venvs dist build site client-ts/node_modules client-ts/dist .coverage-data .pytest_cache .ruff_cache .hypothesis .import_linter_cache
find . -name __pycache__ -type d -prune -exec rm -rf {} +
