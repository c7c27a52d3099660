#!/usr/bin/env bash
# Feeds mutated inputs to the eight fuzz targets, one after the other on one core, and prints the number of inputs of each.
#
# Usage: scripts/fuzz.sh 1000000      this number of inputs for each target
#        scripts/fuzz.sh 60s          this time for each target
#
# FANIN_FUZZ_SEED=N repeats a run. Without it each run has its own seed, which is printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
amount=${1:-1000000}
export FANIN_FUZZ_SEED=${FANIN_FUZZ_SEED:-$(date +%s)}
unset FANIN_FUZZ_INPUTS FANIN_FUZZ_SECONDS
case $amount in
*[!0-9s]* | s* | *s?*) echo "write a number of inputs, or seconds such as 60s" >&2; exit 2 ;;
*s) seconds=${amount%s} ;;
*) export FANIN_FUZZ_INPUTS=$amount ;;
esac
echo "seed $FANIN_FUZZ_SEED"
# Package, file of tests, test, and the number of targets that share its seconds.
while read -r package file test shared; do
    [[ -v seconds ]] && export FANIN_FUZZ_SECONDS=$((seconds * shared))
    log=$(nice cargo test --quiet --package "$package" --test "$file" -- --exact "$test" --nocapture 2>&1) ||
        { echo "$log"; echo "$test fails with FANIN_FUZZ_SEED=$FANIN_FUZZ_SEED" >&2; exit 1; }
    grep '^fuzz target' <<<"$log" || { echo "$log"; echo "$test fed no input" >&2; exit 1; }
done <<'TARGETS'
fanin-events fuzz atlas 1
fanin-events fuzz frag 1
fanin-events fuzz mdf 1
fanin-events fuzz rdh 1
fanin-message codec the_corpus_and_its_mutations_are_read_as_the_plain_reader_reads_them 1
fanin-switch fuzz any_bytes_are_frames_for_a_switch 2
fanin-switch fuzz any_bytes_are_requests_to_a_switch 2
fanin-openflow fuzz any_text_is_a_configuration 1
TARGETS
