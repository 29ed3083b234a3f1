#!/bin/sh
# Makes or completes a virtual environment from a pinned, hashed lock: `venv.sh run` .venv for the server, `venv.sh dev` .venv for tests
# and checks as well, `venv.sh oldclient` .venv-oldclient with the archived project's Python client, which the tests run against our server.
# Does nothing when a stamp says that the lock and the projects are installed already.
set -eu
cd "$(dirname "$0")/.."
kind=$1
case $kind in
run) lock=requirements.lock venv=.venv ;;
dev) lock=requirements-dev.lock venv=.venv ;;
oldclient) lock=requirements-oldclient.lock venv=.venv-oldclient ;;
*) echo "usage: venv.sh run|dev|oldclient" >&2; exit 2 ;;
esac

# The folder belongs to the stamp: scripts of a virtual environment name it, so a moved checkout is set up anew.
stamp="$(pwd) $(if [ $kind = oldclient ]; then cat "$lock"; else cat "$lock" pyproject.toml client/pyproject.toml; fi | cksum)"
stamp_file=$venv/.installed-$kind
if [ -f "$stamp_file" ] && [ "$(cat "$stamp_file")" = "$stamp" ]; then
    exit 0
fi

find_python() {
    for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3.14 python3 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11 or newer is needed, and none was found on PATH (name one with: make setup PYTHON=/path/to/python)" >&2
    return 1
}

home=$venv/.home
if [ ! -x $venv/bin/python ] || ! $venv/bin/python -m pip --version >/dev/null 2>&1 || [ "$(cat $home 2>/dev/null)" != "$(pwd)" ]; then
    python=$(find_python)
    echo "Making $venv with $("$python" --version)"
    if ! "$python" -m venv --clear $venv; then
        echo "$python cannot make a virtual environment (on Debian and Ubuntu, install its package python3-venv)" >&2
        exit 1
    fi
    pwd >$home
fi

pip() {
    $venv/bin/python -m pip --disable-pip-version-check --no-input install --quiet --no-deps "$@"
}
echo "Installing $lock into $venv"
pip --require-hashes -r "$lock"
if [ "$kind" != oldclient ]; then
    pip --no-build-isolation --no-index -e client -e .
fi
echo "$stamp" >"$stamp_file"
