#!/usr/bin/env bash
# Puts HTCondor of Debian 13 into a folder, unless it is there; scripts/htcondor.sh runs it with FANIN_HTCONDOR=FOLDER.
#   scripts/htcondor-fetch.sh FOLDER
# Debian 12 has no HTCondor. The programs come with the C library of Debian 13, so that they run on an older system.
# The programs that they start, such as jobs, use the system's own. Needs apt-get, dpkg-deb and patchelf, and no privileges.
set -euo pipefail
folder="${1:?usage: scripts/htcondor-fetch.sh FOLDER}"

# The folder's programs hold its path.
is_there() { [[ "$(cat "$1/path" 2>/dev/null)" == "$folder" ]] && "$1/usr/bin/condor_version" >/dev/null 2>&1; }

mkdir -p "$(dirname "$folder")"
folder="$(cd "$(dirname "$folder")" && pwd)/$(basename "$folder")"
is_there "$folder" && exit 0
for program in apt-get dpkg-deb patchelf; do
    command -v "$program" >/dev/null || { echo "htcondor: $program is missing" >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# An apt of its own: nothing of this system counts as installed, and its sources stay as they are.
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/root"
: >"$work/status"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] http://deb.debian.org/debian trixie main" >"$work/sources.list"
own() {
    apt-get -qq -o "Dir::State=$work/state" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache" \
        -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User= \
        -o Debug::NoLocking=1 "$@" >/dev/null
}
own update
own install --yes --download-only --no-install-recommends condor

for package in "$work"/cache/archives/{condor,lib}*.deb; do
    dpkg-deb -x "$package" "$work/root"
done
rm -rf "$work/root/usr/share" "$work/root/etc" "$work/root/var"
libraries=$(cd "$work/root" && dirname usr/lib/*/libc.so.6)
loader=$(cd "$work/root" && echo "$libraries"/ld-linux*.so.*)
while IFS= read -r program; do
    patchelf --print-interpreter "$program" >/dev/null 2>&1 || continue
    # RPATH also holds for what the libraries need in turn, and for what they open later.
    patchelf --set-interpreter "$folder/$loader" --force-rpath \
        --set-rpath "$folder/$libraries:$folder/usr/lib:$folder/usr/lib/condor" "$program"
done < <(find "$work/root/usr/bin" "$work/root/usr/sbin" "$work/root/usr/libexec/condor" -type f -name 'condor_*')
echo "$folder" >"$work/root/path"
rm -rf "$folder"
mv "$work/root" "$folder"
is_there "$folder" || { echo "htcondor: the programs in $folder do not run here" >&2; exit 1; }
