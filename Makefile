# Commands for users and contributors. You need only Python 3.11 and make: the targets install everything else into .venv from a pinned lock.
# Each target passes ARGS to its command: make serve ARGS="--port 8100", make test ARGS="tests/foundation -k settings".
# Rarely used commands are in scripts/: tests.sh (other products' clients, TypeScript, coverage), format.sh, lock.sh, node_packages.sh, clean.sh.
ARGS ?=
export PYTHON ?=
SHELL := /bin/sh
# Let Python store compiled modules, even if the container's environment forbids it: without them, the many processes of the tests start slowly.
unexport PYTHONDONTWRITEBYTECODE
# Three processes, each with its own Redis, keep two cores busy, because tests of processes and faults mostly wait. The tests of a file run in one
# process, so that they start their fixtures once. Files run in the order of their names (--no-loadscope-reorder): sorted by number of tests,
# the files with few but long tests would come last, and keep one process busy alone.
JOBS ?= 3
PYTEST := .venv/bin/python -m pytest -n $(JOBS) --dist loadfile

.PHONY: help setup dev serve test quick check docs eval test-console test-models test-integrations release-check

help:
	@echo "make serve               Install and start the memory server with its own Redis, on http://127.0.0.1:8000."
	@echo "make setup               Install the server into .venv. Then run .venv/bin/agent-memory --help."
	@echo "make dev                 Also install the packages for tests and checks."
	@echo "make test                Run all tests that need no model, browser or framework."
	@echo "make quick               Run the tests that need no Redis, and tests/fundamentals. Takes two minutes."
	@echo "make test-console        Test the console in Chromium."
	@echo "make test-models         Test extraction with a small real language model."
	@echo "make test-integrations   Test adapters and compatible APIs with the real frameworks and clients."
	@echo "make eval                Measure recall and prompts on question sets. EVAL_DATA names the sets."
	@echo "make check               Check style, types, imports, sizes, spelling, prose and documentation."
	@echo "make docs                Build the documentation into site/."
	@echo "make release-check       Build all packages, install each and run it."
	@echo "scripts/format.sh        Format the code."

setup:
	@scripts/venv.sh run

dev:
	@scripts/venv.sh dev
	@scripts/venv.sh oldclient

serve: setup
	@exec .venv/bin/agent-memory serve $(ARGS)

test: dev
	$(PYTEST) --no-loadscope-reorder -m "not real_model and not browser" $(ARGS) || scripts/tests.sh again

# Tests that need no Redis, and tests/fundamentals. tests/README.md explains when to run which tests.
quick: dev
	$(PYTEST) --no-loadscope-reorder -m quick $(ARGS)

# Installs Chromium if it is missing, which requires root.
test-console: dev
	@scripts/console/chromium.sh
	.venv/bin/python -m pytest -n 2 --dist loadfile tests/console $(ARGS)

# The small language model uses all cores, so these tests run in one process.
test-models: dev
	.venv/bin/python -m pytest -m real_model tests/features/extraction/test_small_model.py tests/evaluation/test_weak_model_scenarios.py $(ARGS)

# Each group of frameworks has its own environment, because their packages need conflicting versions.
test-integrations: dev
	@scripts/tests.sh frameworks $(ARGS)
	@scripts/tests.sh compat $(ARGS)
	@scripts/tests.sh frameworks-2 $(ARGS)
	@scripts/tests.sh frameworks-3 $(ARGS)
	@scripts/tests.sh typescript $(ARGS)

# Links to missing pages or files, and pages outside the menu, are errors. The variable turns off an advertisement in the output.
docs: dev
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet $(ARGS)

check: dev
	.venv/bin/python client/scripts/make_sync.py
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/basedpyright
	.venv/bin/lint-imports
	.venv/bin/python scripts/check_sizes.py
	.venv/bin/codespell
	.venv/bin/python -m pytest -q -n 0 --no-header tests/docs/test_prose.py tests/docs/test_names.py tests/docs/test_log_events.py tests/docs/test_documentation.py -k "prose or names or log_events or links"
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet

release-check: dev
	@scripts/release/check.sh

# EVAL_DATA is a file or folder of question sets: make eval EVAL_DATA=/path/to/sets ARGS="--sets NAME --questions 100"
EVAL_DATA ?= ../shared/data
eval: dev
	@.venv/bin/agent-memory-eval recall $(EVAL_DATA) $(ARGS)
