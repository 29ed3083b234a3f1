#!/bin/sh
# Runs tests that `make test` does not run, most of them in their own environments. Run `make dev` first. Further arguments go to pytest.
#   frameworks, frameworks-2, frameworks-3   the client's adapters with the real frameworks
#   compat       our Mem0, Supermemory and MCP APIs with the original clients
#   typescript   the TypeScript client
#   coverage     report the lines that all tests except slow ones run
#   again        repeat the tests that failed last, in one process: a test that now passes failed because the machine was overloaded
set -eu
cd "$(dirname "$0")/.."
kind=${1:-}
[ $# = 0 ] || shift
pytest="-m pytest -n ${JOBS:-3} --dist loadfile"
case $kind in
frameworks)
    scripts/venv.sh frameworks
    .venvs/frameworks/bin/python -m pytest -c tests/integrations/pytest.ini --rootdir . --confcutdir tests/integrations \
        tests/integrations --ignore-glob="*/frameworks_*" "$@"
    ;;
frameworks-2 | frameworks-3)
    scripts/venv.sh "$kind"
    .venvs/"$kind"/bin/python -m pytest -c tests/integrations/pytest.ini --rootdir . --confcutdir tests/integrations \
        tests/integrations/test_pages.py "tests/integrations/frameworks_${kind#frameworks-}" "$@"
    ;;
compat)
    for client in frameworks mem0-1 mem0-0.1 supermemory-5 mcp-1; do scripts/venv.sh $client; done
    # shellcheck disable=SC2086  # several words
    .venv/bin/python $pytest tests/compat/mem0/test_clients.py tests/compat/supermemory/test_clients.py \
        tests/interfaces/oauth_server/test_oauth_old_sdk.py "$@"
    ;;
typescript)
    scripts/node_packages.sh install
    scripts/node_packages.sh inspector
    .venv/bin/python -m pytest tests/interfaces/typescript "$@"
    ;;
again)
    # If no test failed but the run broke off, exit with code 5.
    .venv/bin/python -m pytest --last-failed --last-failed-no-failures none --maxfail 1 -n 0 "$@"
    echo "These tests pass when run alone, so they are flaky. Fix them." >&2
    ;;
coverage)
    # Measure also the processes that tests start. No minimum is required.
    rm -rf .coverage-data && mkdir .coverage-data
    # shellcheck disable=SC2086  # several words
    .venv/bin/python -m coverage run $pytest --no-loadscope-reorder -m "not slow" -q "$@" || true
    .venv/bin/python -m coverage combine --quiet
    .venv/bin/python -m coverage report
    ;;
*) echo "usage: tests.sh frameworks|frameworks-2|frameworks-3|compat|typescript|again|coverage [PYTEST ARGUMENTS]" >&2; exit 2 ;;
esac
