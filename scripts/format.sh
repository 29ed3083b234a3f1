#!/bin/sh
# Formats the code, after `make dev`.
set -eu
cd "$(dirname "$0")/.."
.venv/bin/ruff check --fix .
.venv/bin/ruff format .
