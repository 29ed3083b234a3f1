#!/bin/sh
# Creates or updates a virtual environment from a lock with versions and hashes. Does nothing if a stamp shows that it is up to date.
#   run        .venv for the server
#   dev        .venv for the server, tests and checks
#   oldclient  .venvs/oldclient with the archived project's Python client; further versions are in .venvs/oldclient/clients/<version>
#   frameworks, frameworks-2, frameworks-3     .venvs/NAME with our client and the frameworks that it has adapters for
#   mem0-1, mem0-0.1, supermemory-5, mcp-1     .venvs/NAME with another major version of a client in `frameworks`
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

# The stamp contains the folder, because scripts of a virtual environment contain its path: a moved checkout needs a new environment.
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
    # An installation generates the blocking client. Generate it again here, in case its sources changed since then.
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
    echo "Python 3.11 or newer is needed, but PATH has none. Name one with: make setup PYTHON=/path/to/python" >&2
    return 1
}

home=$venv/.home
if [ ! -x $venv/bin/python ] || ! $venv/bin/python -m pip --version >/dev/null 2>&1 || [ "$(cat $home 2>/dev/null)" != "$(pwd)" ]; then
    python=$(find_python)
    echo "Creating $venv with $("$python" --version)"
    if ! "$python" -m venv --clear $venv; then
        echo "$python cannot create a virtual environment (on Debian and Ubuntu, install the package python3-venv)" >&2
        exit 1
    fi
    pwd >$home
fi

# Overwrites the last line on a terminal. Prints a new line elsewhere.
show() {
    if [ -t 1 ]; then printf '\r  %s\033[K' "$1"; else echo "  $1"; fi
}

# Reads pip's output and shows progress, because an installation takes half a minute, and longer with a slow network. $1: the number of packages
# in the lock, including those for other systems. Returns the code of a line "failed CODE".
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

# $1: number of packages to install, $2: number of packages installed before.
installed() {
    # `sleep` must not keep our output open: readers of the output would wait for its end.
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
