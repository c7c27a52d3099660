#!/usr/bin/env bash
# The main job: an ATLAS-like rack scaled to this machine replays real detector data three times, simulated and for real.
#   scripts/rack.sh FANIN OUT     the program, and the folder for results
# With root the rack is built of network namespaces around the software switch; without, the processes meet on 127.0.0.1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fanin="${1:?usage: scripts/rack.sh FANIN OUT}" out="${2:?usage: scripts/rack.sh FANIN OUT}"
cases=(shallow credits daqring)

say() { printf '%s\n' "$*"; }

# What a run of ours with status 4 measured is marked invalid, but it is whole.
live() {
    local status=0
    "$fanin" run "$@" || status=$?
    [[ $status -eq 0 || $status -eq 4 ]] || exit "$status"
}

verify() {
    local file checked=0
    for file in "$1"/live/data/*.data; do
        "$fanin" events verify "$file" --against km3net --cycle >"$1/verify.txt" || { cat "$1/verify.txt"; exit 1; }
        checked=$((checked + 1))
    done
    say "  $checked files of stored events are, byte for byte, the replayed data: fanin events verify FILE --against km3net --cycle"
}

mkdir -p "$out"
results=()
for name in "${cases[@]}"; do
    say "$name: simulated"
    "$fanin" sim "scenarios/rack/$name.toml" --quiet --out "$out/$name-sim"
    results+=("$out/$name-sim")
    if [[ $EUID -eq 0 ]]; then
        say "$name: on this kernel's TCP, 33 namespaces around two software switches"
        live "scenarios/rack/$name.toml" --quiet --out "$out/$name-run"
        results+=("$out/$name-run")
        verify "$out/$name-run"
    fi
done
if [[ $EUID -ne 0 ]]; then
    say "without root there are no namespaces: the same processes once, on 127.0.0.1, where no network is measured"
    live replay --loopback --quiet --out "$out/loopback"
    verify "$out/loopback"
fi
say
"$fanin" report "${results[@]}" --out out/report.html
say
say "The page: out/report.html; all files: $out"
