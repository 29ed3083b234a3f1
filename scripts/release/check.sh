#!/bin/sh
# Builds every package of a release into dist/: wheels from their source distributions, and the npm package. Installs each package in a fresh
# environment, follows the Dockerfile without a container engine, and runs a command of each. Run `make dev` first.
set -eu
cd "$(dirname "$0")/../.."
tools=$PWD/.venv/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
began=$(date +%s)
step() { echo "$(($(date +%s) - began)) s: $*"; }
venv() { "$tools/python" -m venv "$work/$1"; }
# $1: environment; the rest goes to `uv pip install`.
install() { env=$1 && shift && "$tools/uv" pip install --quiet --python "$work/$env/bin/python" "$@"; }
# $1: environment, $2: program. Runs outside the checkout.
run() { env=$1 program=$2 && shift 2 && (cd / && "$work/$env/bin/$program" "$@" >"$work/output" 2>&1) || { cat "$work/output"; exit 1; }; }

step "build the wheels and source distributions of server with worker, client and evaluation"
rm -rf dist
for project in . client evaluation; do
    "$tools/uv" build --quiet --no-build-isolation --python "$tools/python" --out-dir "$PWD/dist" "$project"
done

step "install the server's wheel with locks/server.lock"
venv server
install server --no-deps --require-hashes -r locks/server.lock
install server --no-deps --no-index dist/agent_memory-*.whl dist/agent_memory_api_client-*.whl
run server agent-memory version
run server agent-memory worker --help

step "install the evaluation's wheel in the same environment"
install server --find-links dist dist/agent_memory_eval-*.whl
run server agent-memory-eval --help

step "install the client's wheel with its newest dependencies"
venv client
install client dist/agent_memory_api_client-*.whl
run client python -c "from agent_memory_client import MemoryClient, SyncMemoryClient"

step "follow the Dockerfile"
PATH="$tools:$PATH" python scripts/release/image_recipe.py "$work/image"

step "pack the npm package, install it, and import it in node"
rm -f client-ts/*.tgz
scripts/node_packages.sh try >/dev/null
cp client-ts/*.tgz dist

step "done: $(ls dist | tr '\n' ' ')"
