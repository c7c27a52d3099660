#!/usr/bin/env bash
# The main job: an ATLAS-like rack scaled to this machine replays real detector data three times, simulated and for real.
#   scripts/rack.sh FANIN OUT     the program, and the folder for results
# The rack is built of network namespaces around two software switches. Where that is not possible, as without root or in a
# container without CAP_NET_ADMIN, the processes meet once on 127.0.0.1, and no network is measured.
# A measurement that this machine spoils is tried again at half the scale, twice at most. One that it cannot make is named at the
# end, with the reason; the exit code is 0 then too. It is another only if events were lost, or a process or program failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fanin="${1:?usage: scripts/rack.sh FANIN OUT}" out="${2:?usage: scripts/rack.sh FANIN OUT}"
cases=(shallow credits daqring)
measured=()
tries_max=3
scale_given=$(sed -n 's/^scale = //p' scenarios/rack/_rack.toml)
# Errors of a run on a machine that is too slow for it. A slow machine makes processes and switches hang, but none end.
too_slow='^error: (no event was assigned within [0-9]+ s$|[0-9]+ fragments are missing, and the readouts did not work all the time'
too_slow+='|the switch [^ ]+( was not ready within [0-9]+ s|: the switch at .* has not answered for [0-9]+ s))'

say() { printf '%s\n' "$*"; }

# A string or number of the section `machine` of a summary; nothing if it is absent.
machine() {
    python3 - "$1/summary.json" "$2" <<'END'
import json, sys
print(json.load(open(sys.argv[1])).get("machine", {}).get(sys.argv[2], ""))
END
}

# Runs the program. Sets `status`, and `reason` unless that is 0: why this machine could not make the measurement. Ends the script
# if events were lost, or if a process or the program failed.
attempt() {
    local name=$1 folder=$2 line warnings=$2/launcher.log
    shift 2
    rm -f "$warnings" "$folder/summary.json"
    status=0 reason=""
    "$fanin" run "$@" --quiet --out "$folder" 2>"$out/$name.err" || status=$?
    if line=$(grep -m 1 -E 'a (process|supervisor) ended' "$warnings" 2>/dev/null); then
        cat "$out/$name.err" >&2
        say "$name: a process crashed: $line" >&2
        exit 1
    fi
    case $status in
    0) ;;
    # A result with status 4 is whole, but this machine made its figures, not the network. With 3, this machine lacks a privilege
    # or a feature.
    3 | 4)
        [[ ! -f $folder/summary.json ]] || reason=$(machine "$folder" reason)
        [[ -n $reason ]] || reason=$(tail -n 1 "$out/$name.err")
        ;;
    *)
        # Processes that hardly ran on this machine: no event was lost.
        if ! reason=$(grep -m 1 -E "$too_slow" "$out/$name.err"); then
            cat "$out/$name.err" >&2
            exit "$status"
        fi
        ;;
    esac
    reason=${reason#error: }
}

# Measures a case, at ever smaller scales while the machine spoils it.
measure() {
    local name=$1 folder=$out/$1-run scale=$scale_given again=() tried="" try
    for ((try = 1; try <= tries_max; try++)); do
        attempt "$name" "$folder" "scenarios/rack/$name.toml" --place namespaces "${again[@]}"
        case $status in
        0)
            measured+=("$name: valid, at scale $(machine "$folder" scale)${tried:+ (before: ${tried#; })}")
            return
            ;;
        3)
            measured+=("$name: NOT MEASURED: $reason")
            return
            ;;
        esac
        say "  spoilt at scale $scale: $reason"
        tried+="; at scale $scale: $reason"
        scale=$(python3 -c "print($scale / 2)")
        again=(--set "run.scale=$scale" --overwrite)
    done
    if [[ -f $folder/summary.json ]]; then
        measured+=("$name: NOT VALID ${tried#; }")
    else
        measured+=("$name: NOT MEASURED ${tried#; }")
    fi
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
# Why no namespaces can be made; empty if they can.
lacking="" status=0
complaint=$("$fanin" run --check --place namespaces 2>&1 >/dev/null) || status=$?
case $status in
0) ;;
3) lacking=${complaint#error: } lacking=${lacking%%; *} ;;
*)
    say "$complaint" >&2
    exit "$status"
    ;;
esac
for name in "${cases[@]}"; do
    say "$name: simulated"
    "$fanin" sim "scenarios/rack/$name.toml" --quiet --out "$out/$name-sim"
    results+=("$out/$name-sim")
    if [[ -n $lacking ]]; then
        measured+=("$name: NOT MEASURED: $lacking")
        continue
    fi
    say "$name: on this kernel's TCP, 33 namespaces around two software switches"
    measure "$name"
    say "  ${measured[-1]}"
    # Without a summary the stored events are those of an earlier run.
    if [[ -f $out/$name-run/summary.json ]]; then
        results+=("$out/$name-run")
        verify "$out/$name-run"
    fi
done
if [[ -n $lacking ]]; then
    say "$lacking: the same processes once, on 127.0.0.1, where no network is measured"
    attempt loopback "$out/loopback" replay --place loopback
    if [[ $status -eq 0 ]]; then
        measured+=("loopback: ran on 127.0.0.1: no switch, no figures of a network; $lacking")
        verify "$out/loopback"
    else
        measured+=("loopback: NOT MEASURED: $reason")
    fi
    say "  ${measured[-1]}"
fi
say
mkdir -p out
"$fanin" report "${results[@]}" --out out/report.html
say
say "Measured on this machine:"
for name in "${measured[@]}"; do say "  $name"; done
say "The page: out/report.html; all files: $out"
