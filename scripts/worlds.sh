#!/usr/bin/env bash
# Plays many simulated worlds with faults (docs/engineering/worlds.md), a million by default, on all cores. It prints its progress
# once a second, and the failed seeds with the command that replays each. Ctrl-C ends it with a summary (exit code 130).
# Usage: scripts/worlds.sh [SEEDS [FROM]]. Without FROM it begins at a seed of the day, so that each night has its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seeds=${1:-1000000}
from=${2:-$(($(date -u +%Y%m%d) * 10000000))}
cargo build --release --package fanin-world
exec target/release/fanin-world campaign --seeds "$seeds" --from "$from"
