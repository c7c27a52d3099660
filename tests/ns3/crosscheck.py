"""Compares the classical incast of `fanin sim` with that of an installed ns-3.

On Debian: apt-get install g++ libns3-dev. Then:

python tests/ns3/crosscheck.py --fanin target/release/fanin [--senders 8 16 32] [--seeds 5] [--mss 1460]

`--simulate target/release/examples/simulate` needs the simulator alone (cargo build -p
fanin-sim --example simulate). Both sides frame packets as ns-3's point-to-point links do and count
whole rounds. Prints mean and standard deviation of the goodput over seeds for each, and their
ratio, as a Markdown table. Exit code 1 where a ratio lies outside `--within`, 3 where ns-3 is not
installed. Two versions of ns-3 differ by a factor near the knee (8 senders), so only larger numbers
are held to it.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

SOURCE = Path(__file__).with_name("incast.cc")
LIBRARIES = (
    "applications",
    "traffic-control",
    "point-to-point",
    "internet",
    "bridge",
    "network",
    "stats",
    "core",
)
# Bytes that each server sends in a round.
BLOCK_BYTES = 256_000
# Below this the outcome is a matter of chance: the first losses decide it.
KNEE_SENDERS = 16


def build(folder: Path) -> Path | None:
    """Compile the ns-3 side; None where there is no ns-3."""
    compiler = shutil.which("g++")
    if compiler is None or not Path("/usr/include/ns3").is_dir():
        return None
    binary = folder / "incast"
    command = [
        compiler,
        "-O2",
        "-std=c++17",
        "-o",
        str(binary),
        str(SOURCE),
        *(f"-lns3-{name}" for name in LIBRARIES),
    ]
    subprocess.run(command, check=True)
    return binary


def ns3(binary: Path, senders: int, mss: int, seed: int, seconds: int) -> float:
    """Goodput of ns-3 in Mb/s."""
    command = [str(binary), f"--senders={senders}", f"--mss={mss}", f"--seed={seed}", f"--seconds={seconds}"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(out.split()[5]) * senders * BLOCK_BYTES * 8 / seconds / 1e6


def fanin(
    command: Sequence[str], flag: Sequence[str], senders: int, mss: int, seed: int, seconds: int
) -> float:
    """Goodput of Fanin in Mb/s; `flag` stands before each setting."""
    settings = (
        f"run.seed={seed}",
        f"workload.senders={senders}",
        f"transport.mss={mss} B",
        f"run.duration={seconds} s",
        "network.framing=point-to-point",
    )
    words = [*command, *(word for setting in settings for word in (*flag, setting))]
    out = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    summary, _ = json.JSONDecoder().raw_decode(out)
    return float(summary["goodput_bps"]["total"]) / 1e6


def main(arguments: Sequence[str]) -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    program = parser.add_mutually_exclusive_group(required=True)
    program.add_argument("--fanin", type=Path, help="the fanin binary")
    program.add_argument("--simulate", type=Path, help="the simulator's example in its place")
    parser.add_argument("--senders", type=int, nargs="+", default=[8, 16, 32, 64])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--mss", type=int, nargs="+", default=[1460])
    parser.add_argument("--seconds", type=int, default=10, help="simulated time of each run")
    parser.add_argument(
        "--within", type=float, default=0.25, help="largest relative difference from the knee on"
    )
    options = parser.parse_args(arguments)
    if options.fanin:
        command = [str(options.fanin), "sim", "incast", "--quiet", "--json", "-"]
        flag = ["--set"]
    else:
        command, flag = [str(options.simulate), "incast"], []
    failures = 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor() as pool:
        theirs_binary = build(Path(name))
        if theirs_binary is None:
            print("ns-3 is not installed: apt-get install g++ libns3-dev", file=sys.stderr)
            return 3
        seeds = range(1, options.seeds + 1)
        print("| MSS | senders | ns-3 Mb/s | Fanin Mb/s | Fanin / ns-3 |\n|---|---|---|---|---|")
        for mss in options.mss:
            for senders in options.senders:
                one_of_theirs = partial(ns3, theirs_binary, senders, mss, seconds=options.seconds)
                one_of_ours = partial(fanin, command, flag, senders, mss, seconds=options.seconds)
                theirs, ours = list(pool.map(one_of_theirs, seeds)), list(pool.map(one_of_ours, seeds))
                ratio = statistics.mean(ours) / statistics.mean(theirs)
                cells = (f"{statistics.mean(x):.0f} ± {statistics.pstdev(x):.0f}" for x in (theirs, ours))
                print(f"| {mss} | {senders} | {' | '.join(cells)} | {ratio:.2f} |", flush=True)
                failures += senders >= KNEE_SENDERS and abs(ratio - 1) > options.within
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
