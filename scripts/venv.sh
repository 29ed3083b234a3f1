#!/bin/sh
# Makes or completes a virtual environment from a pinned, hashed lock: `venv.sh run` .venv for the server, `venv.sh dev` .venv for tests
# and checks as well. Other names make .venvs/NAME from locks/NAME.lock: `oldclient` has the archived project's Python client, which the
# tests run against our server, and other versions of it, each in a folder of its own (.venvs/oldclient/clients/<version>); `frameworks` has
# agent frameworks that our client has adapters for, and the client itself, `frameworks-2` and `frameworks-3` those whose versions clash;
# `mem0-1`, `mem0-0.1`, `supermemory-5` and `mcp-1` each have a line of that product's own client that is not among the frameworks.
# Does nothing when a stamp says that the lock and the projects are installed already.
set -eu
cd "$(dirname "$0")/.."
kind=$1
case $kind in
run) lock=locks/server.lock venv=.venv ;;
dev) lock=locks/dev.lock venv=.venv ;;
oldclient) lock=locks/oldclient.lock others=locks/oldclient-others.lock venv=.venvs/oldclient ;;
mem0-1 | mem0-0.1 | supermemory-5 | mcp-1 | frameworks | frameworks-2 | frameworks-3) lock=locks/$kind.lock venv=.venvs/$kind ;;
*) echo "usage: venv.sh run|dev|oldclient|frameworks|frameworks-2|frameworks-3|mem0-1|mem0-0.1|supermemory-5|mcp-1" >&2; exit 2 ;;
esac

# The folder belongs to the stamp: scripts of a virtual environment name it, so a moved checkout is set up anew.
case $kind in
run) ours=yes projects="-e client -e ." sources="$lock pyproject.toml client/pyproject.toml" ;;
dev) ours=yes projects="-e client -e . -e evaluation" sources="$lock pyproject.toml client/pyproject.toml evaluation/pyproject.toml" ;;
oldclient) ours=no sources="$lock $others" ;;
*) ours=no sources=$lock ;;
esac
# shellcheck disable=SC2086  # names without spaces
stamp="$(pwd) $(cat $sources | cksum)"
stamp_file=$venv/.installed-$kind
if [ -f "$stamp_file" ] && [ "$(cat "$stamp_file")" = "$stamp" ]; then
    # An installation makes the client's blocking twin; later the twin follows the sources, whatever has changed them.
    if [ $ours = yes ]; then $venv/bin/python client/scripts/make_sync.py; fi
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

# One place on a terminal, lines elsewhere.
show() {
    if [ -t 1 ]; then printf '\r  %s\033[K' "$1"; else echo "  $1"; fi
}

# How far it has come, from what pip says on standard input: it takes half a minute, and minutes where the network is slow. $1: how many
# packages there are at most, for all systems. Fails when the last line says so.
progress() {
    fetched=0 ticker='' code=0
    while read -r word rest; do
        case $word in
        Collecting | Processing | Requirement)
            fetched=$((fetched + 1))
            if [ -t 1 ] || [ $((fetched % 25)) = 0 ]; then show "fetched $fetched of at most $1 packages"; fi
            ;;
        Installing)
            # "collected packages: one, two, three"
            named=$(($(echo "$rest" | wc -w) - 2))
            show "installing $named packages"
            installed "$named" "$(count)" &
            ticker=$!
            ;;
        failed) code=$rest ;;
        esac
    done
    if [ -n "$ticker" ]; then kill "$ticker" 2>/dev/null || true; fi
    if [ -t 1 ]; then printf '\r\033[K'; fi
    return "$code"
}

count() {
    find $venv/lib -maxdepth 4 -name '*.dist-info' 2>/dev/null | wc -l
}

# $1: how many are to come, $2: how many were there.
installed() {
    # Whoever reads our output must not wait for the last pause.
    while sleep 3 >/dev/null 2>&1; do
        show "installed $(($(count) - $2)) of $1 packages"
    done
}

pip() {
    PYTHONUNBUFFERED=1 $venv/bin/python -m pip --disable-pip-version-check --no-input install --progress-bar off --no-deps "$@"
}
packages=$(grep -c '^[A-Za-z0-9]' "$lock")
echo "Installing $lock into $venv"
{ pip --require-hashes -r "$lock" || echo "failed $?"; } | progress "$packages"
if [ "${kind#frameworks}" != "$kind" ]; then
    pip --quiet --no-build-isolation --no-index -e client
elif [ "$ours" = yes ]; then
    # shellcheck disable=SC2086  # names without spaces
    pip --quiet --no-build-isolation --no-index $projects
elif [ "$kind" = oldclient ]; then
    rm -rf $venv/clients
    grep -v '^#' "$others" | while read -r requirement; do
        version=$(echo "$requirement" | sed 's/^.*==\([^ ]*\) .*$/\1/')
        mkdir -p $venv/clients
        echo "$requirement" >$venv/clients/$version.txt
        pip --quiet --only-binary :all: --target $venv/clients/$version --require-hashes -r $venv/clients/$version.txt
    done
fi
echo "$stamp" >"$stamp_file"
