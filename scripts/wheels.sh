#!/usr/bin/env bash
# Builds and checks the wheels of the Python package in target/wheels, for x86-64 and ARM: for Linux and macOS. On Linux, Zig
# links all of them; on a Mac, Apple's tools link those for macOS.
#   scripts/wheels.sh [TARGET ...]    those of some Rust targets
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

targets=({x86_64,aarch64}-apple-darwin)
system=$(uname -s)
if [[ "$system" == Linux ]]; then
    targets=({x86_64,aarch64}-{unknown-linux-gnu,apple-darwin})
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-wheels.txt
fi
(($# == 0)) || targets=("$@")
rustup target add "${targets[@]}"

# Arrow asks for the time zone of the machine, by the crate iana-time-zone, which calls these functions of macOS. Zig knows the
# system's library, but no framework: a list of names in Apple's format says where they will be.
frameworks="$PWD/target/frameworks"
mkdir -p "$frameworks/CoreFoundation.framework"
cat >"$frameworks/CoreFoundation.framework/CoreFoundation.tbd" <<'TBD'
--- !tapi-tbd
tbd-version: 4
targets: [ x86_64-macos, arm64-macos ]
install-name: /System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation
exports:
  - targets: [ x86_64-macos, arm64-macos ]
    symbols: [ _CFRelease, _CFStringGetBytes, _CFStringGetCStringPtr, _CFStringGetLength,
               _CFTimeZoneCopySystem, _CFTimeZoneGetName, _CFTimeZoneResetSystem ]
...
TBD

rm -rf target/wheels
for target in "${targets[@]}"; do
    # The bash of a Mac refuses empty arrays, so that there is none.
    options=(--release --locked --quiet --target "$target" --out target/wheels)
    if [[ "$system" == Linux ]]; then
        options+=(--zig)
        [[ "$target" != *-apple-darwin ]] || options+=(-- -C "link-arg=-F$frameworks")
    fi
    # maturin finds Zig by the python3 of the path.
    VIRTUAL_ENV="$PWD/.venv" PATH="$PWD/.venv/bin:$PATH" .venv/bin/python -m maturin build "${options[@]}"
done
.venv/bin/python scripts/wheels.py target/wheels/*.whl
