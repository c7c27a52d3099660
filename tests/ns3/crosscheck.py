"""Compares the classical incast of `fanin sim` with that of an installed ns-3.

Without building ns-3, its TCP as in 3.48 with the mended line (docs/simulator.md, "Compared with ns-3"):

pip download --no-deps ns3==3.44.post0 && python -m zipfile -e ns3-3.44*.whl /tmp/ns3
python tests/ns3/crosscheck.py --fanin target/release/fanin --ns3 /tmp/ns3/ns3 --results /tmp/runs.jsonl

`--ns3` is a folder with `include/ns3`, and `lib64` or `lib`: an unpacked wheel, or `build` of a source tree.
Without it, ns-3 is that of the system (Debian: apt-get install g++ libns3-dev).
`--simulate target/release/examples/simulate` needs the simulator alone (cargo build -p fanin-sim --example
simulate). `--ties scheduled` leaves ns-3's own order within an instant.

Both sides frame packets as ns-3's point-to-point links do. No round begins after `--seconds`, the last one
ends, and the goodput is that of all rounds. Prints mean and standard deviation over seeds as a Markdown
table. A cell agrees if the means differ by at most two standard errors of the difference, or by 5 %.
`--results` keeps each run: the same command again runs what is missing. Exit code 1 where fewer than
`--agree` of the cells agree, 3 where ns-3 is not installed.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("incast.cc")
LIBRARIES = ("traffic-control", "point-to-point", "internet", "bridge", "network", "stats", "core")
# Bytes that each server sends in a round.
BLOCK_BYTES = 256_000
# Largest random delay of a frame on a link in ns-3, in picoseconds.
JITTER = {"fair": 1000, "scheduled": 0}
NICE = 15

# Goodput in Mb/s of MSS, buffer in bytes, senders and seed.
Run = Callable[[int, int, int, int], float]


def build(folder: Path, prefix: Path | None, source: Path = SOURCE) -> Path | None:
    """Compile the ns-3 side; None where there is no ns-3."""
    compiler = shutil.which("g++")
    root = prefix or Path("/usr")
    if compiler is None or not (root / "include/ns3").is_dir():
        return None
    binary = folder / source.stem
    command = [compiler, "-O2", "-std=c++20", "-o", str(binary), str(source)]
    names = [f"ns3-{name}" for name in LIBRARIES]
    if prefix is not None:
        libraries = next(path for path in (root / "lib64", root / "lib") if path.is_dir()).resolve()
        names = [library(libraries, name) for name in LIBRARIES]
        command += [f"-I{root / 'include'}", f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
        command += ["-Wl,--allow-shlib-undefined"]
    subprocess.run([*command, *(f"-l{name}" for name in names)], check=True)
    return binary


def library(folder: Path, module: str) -> str:
    """Name of a module's library, which has ns-3's version and kind of build in it."""
    found = sorted(folder.glob(f"libns3*-{module}.so")) + sorted(folder.glob(f"libns3*-{module}-*.so"))
    return found[0].name.removeprefix("lib").removesuffix(".so")


def ns3(binary: Path, seconds: int, jitter: int) -> Run:
    """Return the runs of ns-3."""

    def run(mss: int, buffer: int, senders: int, seed: int) -> float:
        values = {"senders": senders, "mss": mss, "buffer": buffer, "seed": seed, "seconds": seconds}
        words = [f"--{name}={value}" for name, value in {**values, "jitter": jitter}.items()]
        out = subprocess.run([str(binary), *words], check=True, capture_output=True, text=True).stdout
        return float(out.split()[3])

    return run


def fanin(command: Sequence[str], flag: Sequence[str], seconds: int) -> Run:
    """Return the runs of Fanin; `flag` stands before each setting."""

    def run(mss: int, buffer: int, senders: int, seed: int) -> float:
        settings = (
            f"run.seed={seed}",
            f"workload.senders={senders}",
            f"transport.mss={mss} B",
            f"tor.buffer={buffer} B",
            f"run.duration={seconds} s",
            "network.framing=point-to-point",
        )
        words = [*command, *(word for setting in settings for word in (*flag, setting))]
        out = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        summary, _ = json.JSONDecoder().raw_decode(out)
        # A round begins when the former ends.
        return senders * BLOCK_BYTES * 8 / float(summary["requests"]["time_ms"]["mean"]) / 1e3

    return run


class Results:
    """Results of runs by side and cell, in a file of JSON lines if there is one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[tuple[object, ...], Any] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                *key, result = json.loads(line)
                self.known[tuple(key)] = result

    def of(self, run: Callable[..., Any], key: tuple[object, ...], cell: tuple[int, ...]) -> Any:
        """Return the result of a cell; run it if it is not known."""
        whole = (*key, *cell)
        if whole not in self.known:
            self.known[whole] = run(*cell)
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps([*whole, self.known[whole]]) + "\n")
        return self.known[whole]


def agrees(theirs: Sequence[float], ours: Sequence[float]) -> bool:
    """Two standard errors of the difference, or 5 %."""
    difference = abs(statistics.mean(ours) - statistics.mean(theirs))
    error = math.sqrt(sum(statistics.variance(values) / len(values) for values in (theirs, ours)))
    return difference <= max(2 * error, 0.05 * statistics.mean(theirs))


def spread(values: Sequence[float]) -> str:
    """Return mean and standard deviation in words."""
    return f"{statistics.mean(values):.0f} ± {statistics.stdev(values):.0f}"


def main(arguments: Sequence[str]) -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    program = parser.add_mutually_exclusive_group(required=True)
    program.add_argument("--fanin", type=Path, help="the fanin binary")
    program.add_argument("--simulate", type=Path, help="the simulator's example in its place")
    parser.add_argument("--ns3", type=Path, help="folder of ns-3; default: the system's")
    parser.add_argument("--ties", choices=sorted(JITTER), default="fair", help="order of an instant in ns-3")
    parser.add_argument("--senders", type=int, nargs="+", default=[2, 4, 8, 16, 32, 64, 128])
    parser.add_argument("--buffer", type=int, nargs="+", default=[32, 64, 128, 256], help="kB")
    parser.add_argument("--mss", type=int, nargs="+", default=[536, 1460])
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds, at least 2")
    parser.add_argument("--seconds", type=int, default=5, help="simulated time in which rounds begin")
    parser.add_argument("--results", type=Path, help="file that keeps each run")
    parser.add_argument("--agree", type=float, default=0.85, help="least share of cells that agree")
    options = parser.parse_args(arguments)
    os.nice(max(0, NICE - os.nice(0)))
    if options.fanin:
        command, flag = [str(options.fanin), "sim", "incast", "--quiet", "--json", "-"], ["--set"]
    else:
        command, flag = [str(options.simulate), "incast"], []
    results = Results(options.results)
    agreeing, count = 0, 0
    with tempfile.TemporaryDirectory() as name:
        binary = build(Path(name), options.ns3)
        if binary is None:
            print("ns-3 is not installed: apt-get install g++ libns3-dev, or --ns3 FOLDER", file=sys.stderr)
            return 3
        sides = {
            ("ns-3", str(options.ns3), options.ties): ns3(binary, options.seconds, JITTER[options.ties]),
            ("fanin",): fanin(command, flag, options.seconds),
        }
        cells = list(product(options.mss, options.buffer, options.senders))
        print("| MSS | buffer, kB | senders | ns-3 | Fanin | Fanin / ns-3 | agree |\n" + "|---" * 7 + "|")
        for mss, buffer, senders in cells:
            theirs, ours = (
                [
                    results.of(run, (*side, options.seconds), (mss, buffer * 1000, senders, seed))
                    for seed in range(1, options.seeds + 1)
                ]
                for side, run in sides.items()
            )
            is_agreeing = agrees(theirs, ours)
            agreeing, count = agreeing + is_agreeing, count + 1
            ratio = statistics.mean(ours) / statistics.mean(theirs)
            words = (
                mss,
                buffer,
                senders,
                spread(theirs),
                spread(ours),
                f"{ratio:.2f}",
                "yes" if is_agreeing else "no",
            )
            print("| " + " | ".join(map(str, words)) + " |", flush=True)
            print(f"{count} of {len(cells)} cells, {agreeing} agree", file=sys.stderr)
    return 0 if agreeing >= options.agree * count else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
