#!/usr/bin/env bash
# Installs what a target needs and this machine lacks, and says so once. It prints nothing when nothing is missing.
#   scripts/setup.sh build    a release build
#   scripts/setup.sh bench    a release build, and the other programs that benchmarks measure
#   scripts/setup.sh package  a release build, and the making of packages
#   scripts/setup.sh test     a build, the checks and the Python package
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
goal="${1:?usage: scripts/setup.sh build|bench|package|test}"

say() { printf 'setup: %s\n' "$*" >&2; }
stop() { say "$@"; exit 2; }
has() { command -v "$1" >/dev/null 2>&1; }

# Two calls at once take turns; the second finds the work done.
if [[ -z "${FANIN_SETUP_LOCKED:-}" ]] && has flock; then
    exec env FANIN_SETUP_LOCKED=1 flock .setup.lock "$0" "$@"
fi

has cargo || stop "cargo is missing: install Rust from https://rustup.rs (curl https://sh.rustup.rs -sSf | sh), then run this again."

# Debian packages: one line each, "the test that it is there | the packages | what for". A test has no bar of its own.
system_build=(
    'has cc|gcc libc6-dev|the linker'
    'has clang|clang|the BPF programs'
    'test -e /usr/include/libelf.h -a -e /usr/include/zlib.h|libelf-dev zlib1g-dev|loading BPF programs'
    'has make && has pkg-config|make pkg-config|building the loader of BPF programs'
    'has ip && has tc && has ss|iproute2|networks of namespaces'
)
system_package=(
    'has python3|python3|the script that makes packages'
    'has dpkg-deb && has dpkg-shlibdeps|dpkg dpkg-dev|the Debian package and what it depends on'
    'has strip|binutils|programs without what only a debugger reads'
)
system_test=(
    'has git|git|the checks of the tracked files'
    'has ethtool|ethtool|true frames between namespaces'
    'has iperf3|iperf3|load for the switch between namespaces'
    'has valgrind|valgrind|counting instructions'
    'python3 -c "import ensurepip, venv"|python3-venv|the Python tools, in .venv'
    'has chromium|chromium|the tests of the page'
    'has node && has npm|nodejs npm|the test of traces in Perfetto'
    'has tshark && has text2pcap|tshark|the test of the Wireshark dissector'
    '(PATH=$PATH:/usr/sbin; has munged && has slurmctld && has slurmd && has sbatch)|munge slurmctld slurmd slurm-client|the test of sweeps on Slurm'
    '! (PATH=$PATH:/usr/sbin; ! has condor_master && ! has patchelf)|patchelf|the test of sweeps on HTCondor'
    'has ovs-vswitchd|openvswitch-switch|the test of OpenFlow rules'
    'has systemd-analyze && test -x /lib/systemd/systemd|systemd|the units under deploy/, checked and run'
    'has crun|crun|containers of the image'
    'has kubectl|kubernetes-client|the check of the Kubernetes manifest'
    'has mount|mount|the test of a full disk'
    'has pkg-config && pkg-config --exists libdpdk|pkg-config libdpdk-dev|the tests of the switch over DPDK'
)
system_bench=(
    'has c++|g++|the peers of benchmarks'
    'test -e /usr/include/boost/asio.hpp|libboost-dev|a Boost.ASIO server to compare with'
    'test -e /usr/include/zmq.h|libzmq3-dev|a ZeroMQ server to compare with'
    'has pkg-config && pkg-config --exists libdpdk && has dpdk-testpmd|pkg-config libdpdk-dev dpdk-dev|the switch over DPDK, and testpmd'
)

needs=("${system_build[@]}")
[[ "$goal" == bench ]] && needs+=("${system_bench[@]}")
[[ "$goal" == package ]] && needs+=("${system_package[@]}")
[[ "$goal" == test ]] && needs+=("${system_package[@]}" "${system_test[@]}")

packages=()
for need in "${needs[@]}"; do
    IFS='|' read -r check names purpose <<<"$need"
    if ! eval "$check" >/dev/null 2>&1; then
        say "missing: ${names} (${purpose})"
        read -ra more <<<"$names"
        packages+=("${more[@]}")
    fi
done
if ((${#packages[@]})); then
    has apt-get || stop "install these with your package manager, then run this again: ${packages[*]}"
    as_root=()
    if ((EUID != 0)); then
        has sudo || stop "neither root nor sudo: let an administrator run 'apt-get install ${packages[*]}', then run this again."
        as_root=(sudo)
    fi
    say "installing ${packages[*]} through apt"
    "${as_root[@]}" apt-get update -qq >/dev/null
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi

[[ "$goal" == test ]] || exit 0

# Rust components and targets, by rustup; a cargo from elsewhere may bring its own.
components=()
cargo fmt --version >/dev/null 2>&1 || components+=(rustfmt)
cargo clippy --version >/dev/null 2>&1 || components+=(clippy)
if ((${#components[@]})); then
    has rustup || stop "missing: ${components[*]}; this cargo does not come from rustup, so install them as you installed it."
    say "installing ${components[*]} through rustup"
    rustup component add "${components[@]}" >&2
fi
bare_metal=x86_64-unknown-none
if [[ ! -d "$(rustc --print sysroot)/lib/rustlib/$bare_metal" ]]; then
    has rustup || stop "missing: the Rust target $bare_metal; this cargo does not come from rustup, so install it as you installed it."
    say "installing the Rust target $bare_metal through rustup"
    rustup target add "$bare_metal" >&2
fi

mac=aarch64-apple-darwin
if [[ ! -d "$(rustc --print sysroot)/lib/rustlib/$mac" ]]; then
    say "installing the Rust target $mac through rustup"
    # Without it one check is left out.
    rustup target add "$mac" >&2 || say "the Rust target $mac could not be installed"
fi

# Python tools, exactly those of requirements-dev.txt.
python=python3
has python3.11 && python=python3.11
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
    || stop "Python 3.11 or newer is needed; $python is $("$python" --version)."
if ! { .venv/bin/python -c '' && cmp requirements-dev.txt .venv/installed.txt; } >/dev/null 2>&1; then
    say "installing the Python tools of requirements-dev.txt in .venv"
    "$python" -m venv --clear .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt >&2
    cp requirements-dev.txt .venv/installed.txt
fi

# Without these a few tests are skipped.
scripts/perfetto.sh .venv/perfetto || say "Perfetto's trace processor could not be fetched"
has promtool || scripts/promtool.sh .venv/promtool || say "promtool could not be fetched"
(PATH=$PATH:/usr/sbin; has condor_master) || scripts/htcondor-fetch.sh .venv/htcondor || say "HTCondor could not be fetched"
