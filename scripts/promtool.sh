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
(cd "$work" && apt-get download -qq -o APT::Sandbox::User=root prometheus >/dev/null)
dpkg-deb --fsys-tarfile "$work"/prometheus_*.deb | tar -x -C "$work" ./usr/bin/promtool
is_there "$work/usr/bin" || { echo "promtool: the program does not run here" >&2; exit 1; }
mkdir -p "$folder"
mv "$work/usr/bin/promtool" "$folder"
