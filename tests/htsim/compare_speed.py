"""Compares the speed of `fanin sim` with that of htsim (csg-htsim), run in turns in the same minutes.

Get https://github.com/Broadcom/csg-htsim and g++ and make. Then:

python tests/htsim/compare_speed.py --htsim csg-htsim/sim --fanin target/release/fanin [--repeats 5]

`--simulate target/release/examples/simulate` needs the simulator alone (cargo build --release -p
fanin-sim --example simulate). htsim is built in a folder of its own; yours is left alone. Two cases:
the classical incast of 16 servers without loss, and the traffic of the thesis' rack (160 readouts, 39
collectors, 1 kHz). The figure is packet-hops per second of processor time, the best of the repeats.
The two do not simulate the same TCP. htsim's has no SACK, no delayed acknowledgements, no receive
window and no requests. So it sends an acknowledgement for each packet.
Prints a Markdown table. Exit code 1 where Fanin is slower, 3 where htsim or a compiler is missing.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).with_name("cases.cc")
# A name, htsim's arguments, and Fanin's.
CASES = (
    (
        "incast of 16, no loss",
        ("incast", "20"),
        ("incast", "tor.buffer=8 MB", "run.duration=20 s"),
    ),
    (
        "thesis rack, 1 kHz",
        ("rack", "1"),
        (
            "thesis-a-1000hz",
            "run.warmup=0 s",
            "run.duration=1 s",
            "supervisor.policy=node-round-robin",
            "shaping.credits=480",
        ),
    ),
)


def build(htsim: Path, folder: Path) -> Path | None:
    """Compile htsim and the cases; None if a compiler or a source is missing."""
    if shutil.which("g++") is None or shutil.which("make") is None or not (htsim / "tcp.cpp").is_file():
        return None
    sources = folder / "sim"
    sources.mkdir()
    for pattern in ("*.cpp", "*.h", "Makefile"):
        for path in htsim.glob(pattern):
            shutil.copy(path, sources)
    subprocess.run(("make", "-s", "libhtsim.a"), cwd=sources, check=True, capture_output=True)
    binary = folder / "cases"
    command = ("g++", "-O3", "-std=c++17", f"-I{sources}", "-o", str(binary), str(SOURCE))
    subprocess.run((*command, str(sources / "libhtsim.a")), check=True)
    return binary


def theirs(binary: Path, words: Sequence[str]) -> float:
    """Million packet-hops of htsim a second of processor time."""
    out = subprocess.run((str(binary), *words), check=True, capture_output=True, text=True).stdout
    hops, _, drops, cpu_s = out.split()
    if int(drops) > 0:
        sys.exit(f"htsim lost {drops} packets in a case without loss")
    return int(hops) / float(cpu_s) / 1e6


def ours(command: Sequence[str], flag: Sequence[str], words: Sequence[str]) -> float:
    """Million packet-hops of Fanin a second of processor time; `flag` stands before each setting."""
    scenario, *settings = words
    run = [*command, scenario, *(word for setting in settings for word in (*flag, setting))]
    if flag:
        run += ["--quiet", "--json", "-"]
    out = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    summary, _ = json.JSONDecoder().raw_decode(out)
    return float(summary["speed"]["packet_hops"]) / float(summary["speed"]["cpu_s"]) / 1e6


def main(arguments: Sequence[str]) -> int:
    """Build, take turns, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    program = parser.add_mutually_exclusive_group(required=True)
    program.add_argument("--fanin", type=Path, help="the fanin binary")
    program.add_argument("--simulate", type=Path, help="the simulator's example in its place")
    parser.add_argument("--htsim", type=Path, required=True, help="the folder `sim` of csg-htsim")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    command = [str(options.fanin), "sim"] if options.fanin else [str(options.simulate)]
    flag = ["--set"] if options.fanin else []
    slower = 0
    with tempfile.TemporaryDirectory() as name:
        binary = build(options.htsim, Path(name))
        if binary is None:
            print("htsim, g++ or make is missing: see --help", file=sys.stderr)
            return 3
        print("| case | htsim, M hops/CPU s | Fanin, M hops/CPU s | Fanin / htsim |\n|---|---|---|---|")
        for case, words, own in CASES:
            pairs = [(theirs(binary, words), ours(command, flag, own)) for _ in range(options.repeats)]
            them, us = (max(speeds) for speeds in zip(*pairs, strict=True))
            print(f"| {case} | {them:.1f} | {us:.1f} | {us / them:.2f} |", flush=True)
            slower += us < them
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
