#!/usr/bin/env bash
# Builds the wheels of the Python package in target/wheels, for x86-64 and ARM: on Linux those for Linux, which Zig links,
# on a Mac those for macOS, as its libraries come with Apple's tools alone.
#   scripts/wheels.sh [TARGET ...]    those of other Rust targets
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

targets=({x86_64,aarch64}-apple-darwin)
linker=()
if [[ "$(uname -s)" == Linux ]]; then
    targets=({x86_64,aarch64}-unknown-linux-gnu)
    linker=(--zig)
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-wheels.txt
fi
(($# == 0)) || targets=("$@")
rustup target add "${targets[@]}"
for target in "${targets[@]}"; do
    # maturin finds Zig by the python3 of the path.
    VIRTUAL_ENV="$PWD/.venv" PATH="$PWD/.venv/bin:$PATH" .venv/bin/python -m maturin build \
        --release --locked --quiet "${linker[@]}" --target "$target" --out target/wheels
done
ls target/wheels/*.whl
