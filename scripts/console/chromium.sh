#!/bin/sh
# Installs Debian's Chromium for the tests of the console, if it is missing. Installing requires root.
set -eu
[ ! -x /usr/bin/chromium ] || exit 0
if [ "$(id -u)" != 0 ]; then
    echo "the tests of the console need /usr/bin/chromium: apt-get install chromium" >&2
    exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
