#!/usr/bin/env bash
# The main job: an ATLAS-like rack scaled to this machine replays real detector data three times, simulated and for real.
#   scripts/rack.sh FANIN OUT     the program, and the folder for results
# With root the rack is built of network namespaces around the software switch; without, the processes meet on 127.0.0.1.
# A measurement that this machine cannot make is named at the end, with the reason; the exit code is 0 then too. It is another
# only if events were lost, or a process or program failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fanin="${1:?usage: scripts/rack.sh FANIN OUT}" out="${2:?usage: scripts/rack.sh FANIN OUT}"
cases=(shallow credits daqring)
measured=()
# Errors with status 1 of a run on a machine that is too slow for it. A slow machine makes processes hang, but none end.
too_slow='^error: (no event was assigned within [0-9]+ s;|[0-9]+ fragments are missing, and the readouts did not work all the time)'

say() { printf '%s\n' "$*"; }

# A string or number of the section `machine` of a summary; nothing if it is absent.
machine() {
    python3 - "$1/summary.json" "$2" <<'END'
import json, sys
value = json.load(open(sys.argv[1])).get("machine", {}).get(sys.argv[2], "")
print("\n".join(value) if isinstance(value, list) else value)
END
}

# A run of ours with status 4 is whole, but this machine made its figures, not the network. With 3, this machine lacks a privilege
# or a feature, as in a container without CAP_NET_ADMIN.
live() {
    local name=$1 folder=$2 status=0 line warnings=$2/launcher.log
    shift 2
    rm -f "$warnings"
    "$fanin" run "$@" --quiet --out "$folder" 2>"$out/$name.err" || status=$?
    if line=$(grep -m 1 -E 'a (process|supervisor) ended' "$warnings" 2>/dev/null); then
        cat "$out/$name.err" >&2
        say "$name: a process crashed: $line" >&2
        exit 1
    fi
    case $status in
    0)
        line=$(machine "$folder" scale)
        measured+=("$name: valid${line:+, at scale $line}")
        ;;
    4)
        # Without a summary not even the smallest load fits.
        if [[ -f $folder/summary.json ]] && line=$(machine "$folder" reason) && [[ -n $line ]]; then
            measured+=("$name: NOT VALID at scale $(machine "$folder" scale) either: $line")
        else
            measured+=("$name: NOT MEASURED: $(tail -n 1 "$out/$name.err")")
        fi
        ;;
    3)
        measured+=("$name: NOT MEASURED: $(tail -n 1 "$out/$name.err")")
        ;;
    *)
        cat "$out/$name.err" >&2
        # Processes that hardly ran on this machine: no event was lost.
        line=$(grep -m 1 -E "$too_slow" "$out/$name.err") || exit "$status"
        measured+=("$name: NOT MEASURED: ${line%%; last lines of *}")
        ;;
    esac
    if [[ -f $folder/summary.json ]]; then
        machine "$folder" spoilt | while read -r line; do [[ -z $line ]] || say "  begun again: $line"; done
    fi
    say "  ${measured[-1]}"
}

verify() {
    local file checked=0
    for file in "$1"/live/data/*.data; do
        [[ -f $file ]] || continue
        "$fanin" events verify "$file" --against km3net --cycle >"$1/verify.txt" || { cat "$1/verify.txt"; exit 1; }
        checked=$((checked + 1))
    done
    [[ $checked -gt 0 ]] || return 0
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
        rm -f "$out/$name-run/summary.json"
        live "$name" "$out/$name-run" "scenarios/rack/$name.toml"
        [[ ! -f $out/$name-run/summary.json ]] || results+=("$out/$name-run")
        # Without a summary the stored events are those of an earlier run.
        [[ ! -f $out/$name-run/summary.json ]] || verify "$out/$name-run"
    fi
done
if [[ $EUID -ne 0 ]]; then
    say "without root there are no namespaces: the same processes once, on 127.0.0.1, where no network is measured"
    rm -f "$out/loopback/summary.json"
    live loopback "$out/loopback" replay --loopback
    verify "$out/loopback"
fi
say
mkdir -p out
"$fanin" report "${results[@]}" --out out/report.html
say
say "Measured on this machine:"
for name in "${measured[@]}"; do say "  $name"; done
say "The page: out/report.html; all files: $out"
