#!/usr/bin/env bash
# Puts promtool of Debian's Prometheus into a folder, unless it is there.
#   scripts/promtool.sh FOLDER
# The package itself would start a server on this machine. Needs apt-get and dpkg-deb, and no privileges.
set -euo pipefail
folder="${1:?usage: scripts/promtool.sh FOLDER}"

is_there() { "$1/promtool" --version >/dev/null 2>&1; }

is_there "$folder" && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An apt of its own: the system's lists of packages may be missing.
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial"
: >"$work/status"
own() {
    apt-get -qq -o "Dir::State=$work/state" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache" \
        -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@" >/dev/null
}
own update
(cd "$work" && own download prometheus)
dpkg-deb --fsys-tarfile "$work"/prometheus_*.deb | tar -x -C "$work" ./usr/bin/promtool
is_there "$work/usr/bin" || { echo "promtool: the program does not run here" >&2; exit 1; }
mkdir -p "$folder"
mv "$work/usr/bin/promtool" "$folder"
