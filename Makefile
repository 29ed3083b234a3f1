# What a person types. Python 3.11 and make are all that is needed; everything is installed into .venv from a pinned lock.
# ARGS goes to the command that is run: make serve ARGS="--port 8100", make test ARGS="tests/foundation -k settings".
# What is run rarely stands in scripts/: tests.sh (other products' clients, TypeScript, coverage), format.sh, lock.sh, node_packages.sh, clean.sh.
ARGS ?=
export PYTHON ?=
SHELL := /bin/sh
# Compiled modules are kept beside their sources, also where containers are told not to: tests start many processes, and collect for long.
unexport PYTHONDONTWRITEBYTECODE
# Three processes for two cores, each with a Redis of its own: tests of processes and faults wait for much of their time. A file's tests stay
# together, so that what they share is started once.
# In the order of their names: the files with few but long tests do not come last, when one process would wait for the other.
JOBS ?= 3
PYTEST := .venv/bin/python -m pytest -n $(JOBS) --dist loadfile

.PHONY: help setup dev serve test quick check docs eval test-console test-models test-integrations release-check

help:
	@echo "make serve   the memory server with its own Redis, on http://127.0.0.1:8000"
	@echo "make setup   only the set-up, into .venv; then .venv/bin/agent-memory --help      make dev   with what tests and checks need"
	@echo "make test    all tests          make quick   those of two minutes"
	@echo "make test-console   the console in a real Chromium"
	@echo "make test-models   those beside a real, weak language model, which make test leaves out"
	@echo "make test-integrations   adapters and compatible APIs, beside the real frameworks and clients"
	@echo "make eval    recall and prompts on question sets, beside plain baselines, against floors"
	@echo "make check   style, types, import rules, spelling, prose, documentation     scripts/format.sh   formats the code"
	@echo "make docs    the site, into site/          make release-check   builds all packages, installs and runs each"

setup:
	@scripts/venv.sh run

dev:
	@scripts/venv.sh dev
	@scripts/venv.sh oldclient

serve: setup
	@exec .venv/bin/agent-memory serve $(ARGS)

test: dev
	$(PYTEST) --no-loadscope-reorder -m "not real_model and not browser" $(ARGS) || scripts/tests.sh again

# What needs no Redis, and what a user relies on first: tests/README.md says when which tests are run.
quick: dev
	$(PYTEST) --no-loadscope-reorder -m quick $(ARGS)

# The console in a real Chromium, which is installed when it is missing and we may.
test-console: dev
	@scripts/console/chromium.sh
	.venv/bin/python -m pytest -n 2 --dist loadfile tests/console $(ARGS)

# Beside a real, weak language model, which takes all cores: one process after the other.
test-models: dev
	.venv/bin/python -m pytest -m real_model tests/features/extraction/test_small_model.py tests/evaluation/test_weak_model_scenarios.py $(ARGS)

# The adapters of our client, beside the real frameworks in environments of their own, against a server that is started for them:
# first LangGraph, LangChain, the OpenAI Agents SDK, and the clients of Supermemory and Mem0; then frameworks whose versions clash with those.
test-integrations: dev
	@scripts/tests.sh frameworks $(ARGS)
	@scripts/tests.sh compat $(ARGS)
	@scripts/tests.sh frameworks-2 $(ARGS)
	@scripts/tests.sh frameworks-3 $(ARGS)
	@scripts/tests.sh typescript $(ARGS)

# A link that leads nowhere, or a page outside the menu, is an error. The variable: no advertisement among the output.
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
	.venv/bin/python -m pytest -q -n 0 --no-header tests/docs/test_prose.py tests/docs/test_names.py tests/docs/test_documentation.py -k "prose or names or links"
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet

release-check: dev
	@scripts/release/check.sh

# A file or a folder of question sets: make eval EVAL_DATA=/path/to/sets ARGS="--sets NAME --questions 100"
EVAL_DATA ?= ../shared/data
eval: dev
	@.venv/bin/agent-memory-eval recall $(EVAL_DATA) $(ARGS)
