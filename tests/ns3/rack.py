"""Compares the thesis' rack of `fanin sim` with the same rack in ns-3 (`rack.cc`).

python tests/ns3/rack.py --fanin target/release/fanin --ns3 /tmp/ns3/ns3 --results /tmp/rack.jsonl

The scenario is `thesis-a-1000hz` in the profile `ns3-newreno`, with frames as on ns-3's links. ns-3 receives
every number from `fanin scenario show`. A setting that `rack.cc` does not play is refused. `--ns3` and
`--results` are those of `crosscheck.py`.

Prints two lines for each buffer: collection time, drops and timeouts of each side, as mean and standard
deviation over seeds. They agree if the mean times differ by at most two standard errors of the difference, or
by 5 %.
Exit code 1 where one does not agree, 3 where ns-3 is not installed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from crosscheck import JITTER, NICE, Results, agrees, build, spread

SOURCE = Path(__file__).with_name("rack.cc")
SCENARIO = "thesis-a-1000hz"
# The settings by which a scenario is comparable with ns-3.
COMPARABLE = {
    "transport.profile": "ns3-newreno",
    "network.framing": "point-to-point",
    "tor.count_in_service": "false",
}
# ns-3 takes minutes for these.
TIMES = {"run.warmup": "0 s", "run.duration": "300 ms"}
# Settings that `rack.cc` has without arguments.
PLAYED = {
    "workload.kind": "event-building",
    "workload.fraction": "1",
    "readout.fragment_header": "0 B",
    "readout.links_per_host": 1,
    "collectors.racks": 1,
    "collectors.processing_time_sd": "0 s",
    "supervisor.arrivals": "periodic",
    "supervisor.policy": "fcfs",
    "supervisor.start_order": "by-host",
    "logger.accept": "0",
    "shaping.method": "none",
    "shaping.request_order": "fixed",
    "network.topology": "racks",
    "network.uplinks_per_core": 1,
    "network.framing": "point-to-point",
    "transport.profile": "ns3-newreno",
    "transport.congestion_control": "newreno",
    "transport.window_state": "cold",
    "transport.sack": False,
    "transport.timestamps": False,
    "transport.delayed_ack": False,
    "transport.slow_start_after_idle": False,
    "tor.buffering": "dedicated",
    "tor.count_in_service": False,
    "aggregation.buffering": "unlimited",
}
# Arguments of `rack.cc` that are keys of a scenario.
KEYS = {
    "readouts": "readout.hosts",
    "collectors": "collectors.hosts_per_rack",
    "units": "collectors.units_per_host",
    "cores": "network.cores",
    "group": "network.readouts_per_group",
    "rate_mhz": "supervisor.rate",
    "warmup": "run.warmup",
    "duration": "run.duration",
    "delay_mean": "readout.response_delay",
    "delay_sd": "readout.response_delay_sd",
    "processing": "collectors.processing_time",
    "readout_rate": "readout.link.rate",
    "readout_delay": "readout.link.delay",
    "link_rate": "link.rate",
    "link_delay": "link.delay",
    "uplink_rate": "uplink.rate",
    "uplink_delay": "uplink.delay",
    "supervisor_rate": "supervisor.link.rate",
    "supervisor_delay": "supervisor.link.delay",
    "buffer": "tor.buffer",
    "uplink_buffer": "tor.uplink_buffer",
    "mss": "transport.mss",
    "initial_window": "transport.initial_window",
    "rto_min": "transport.rto_min",
    "seed": "run.seed",
}
# Units as `fanin scenario show` writes them, in bytes, ps, b/s and mHz.
PREFIXES = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12}
UNITS = {
    **{f"{prefix}B": 10**power for prefix, power in PREFIXES.items()},
    **{f"{prefix}b/s": 10**power for prefix, power in PREFIXES.items()},
    **{f"{prefix}Hz": 10 ** (power + 3) for prefix, power in PREFIXES.items()},
    **{f"{prefix}iB": 1024 ** (power // 3) for prefix, power in PREFIXES.items() if prefix},
    **{"KiB": 1024, "mHz": 1, "packets": 1},
    **{"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3, "ps": 1},
}
# Sizes of messages (crates/dataflow/src/message.rs), in bytes.
FRAME_HEADER, L1_ID, STATUS, FRAGMENT = 12, 8, 2, 4

# Mean collection time in ms, drops and timeouts of a buffer in kB and a seed.
Figures = tuple[float, float, float]
Run = Callable[[int, int], Figures]


def amount(value: int | str) -> int:
    """Return a quantity in the units of `rack.cc`."""
    if isinstance(value, int):
        return value
    number, _, unit = value.partition(" ")
    amount = Decimal(number) * UNITS[unit]
    assert amount == int(amount), value
    return int(amount)


def arguments(scenario: dict[str, Any]) -> list[str]:
    """Return the arguments of `rack.cc` for a scenario."""

    def of(key: str) -> Any:
        value: Any = scenario
        for word in key.split("."):
            value = value[word]
        return value

    def same(value: Any, played: Any) -> bool:
        return bool(value == played or (played == "0 s" and amount(value) == 0))

    refused = [f"{key} = {of(key)!r}" for key, played in PLAYED.items() if not same(of(key), played)]
    links = ("readout.link", "link", "uplink", "supervisor.link")
    refused += [f"{link}.loss = {of(f'{link}.loss')!r}" for link in links if of(f"{link}.loss") != "0"]
    if refused:
        sys.exit("rack.cc does not play " + ", ".join(refused))
    values = {name: amount(of(key)) for name, key in KEYS.items()}
    fragments = of("readout.fragments_per_host")
    values["assign"] = FRAME_HEADER + L1_ID + 2 * STATUS
    values["ready"] = FRAME_HEADER + L1_ID + STATUS
    values["request"] = FRAME_HEADER + L1_ID + FRAGMENT * fragments
    values["answer"] = FRAME_HEADER + L1_ID + STATUS + fragments * amount(of("readout.fragment_size"))
    return [f"--{name}={value}" for name, value in values.items()]


def settings(sets: dict[str, str], buffer: int, seed: int) -> list[str]:
    """Return the command line's settings of a run."""
    every = COMPARABLE | sets | {"tor.buffer": f"{buffer} kB", "run.seed": str(seed)}
    return [word for key, value in every.items() for word in ("--set", f"{key}={value}")]


def output(command: list[str]) -> str:
    """Return what a program prints. Ends with the program's own message if it fails."""
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command[:3])} failed with {ended.returncode}")
    return ended.stdout


def ns3(binary: Path, fanin: Path, sets: dict[str, str], jitter: int) -> Run:
    """Return the runs of ns-3."""

    def run(buffer: int, seed: int) -> Figures:
        show = [str(fanin), "scenario", "show", SCENARIO, *settings(sets, buffer, seed)]
        scenario = tomllib.loads(output(show))
        out = output([str(binary), *arguments(scenario), f"--jitter={jitter}"])
        _, mean, _, _, drops, timeouts, _ = map(float, out.split())
        return mean, drops, timeouts

    return run


def ours(fanin: Path, sets: dict[str, str]) -> Run:
    """Return the runs of Fanin."""

    def run(buffer: int, seed: int) -> Figures:
        command = [str(fanin), "sim", SCENARIO, *settings(sets, buffer, seed), "--quiet", "--json", "-"]
        summary, _ = json.JSONDecoder().raw_decode(output(command))
        mean = float(summary["collection_time_ms"]["mean"])
        return mean, float(summary["network"]["drops"]), float(summary["tcp"]["timeouts"])

    return run


def main(words: Sequence[str]) -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fanin", type=Path, required=True, help="the fanin binary")
    parser.add_argument("--ns3", type=Path, help="folder of ns-3; default: the system's")
    parser.add_argument("--ties", choices=sorted(JITTER), default="fair", help="order of an instant in ns-3")
    parser.add_argument("--buffer", type=int, nargs="+", default=[512], help="kB of a collector's port")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a further setting")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds, at least 2")
    parser.add_argument("--results", type=Path, help="file that keeps each run")
    options = parser.parse_args(words)
    if options.seeds < 2 or not all("=" in setting for setting in options.set):
        parser.error("--seeds is at least 2, and --set is KEY=VALUE")
    os.nice(max(0, NICE - os.nice(0)))
    sets = TIMES | dict(setting.split("=", 1) for setting in options.set)
    results = Results(options.results)
    agreeing = 0
    with tempfile.TemporaryDirectory() as name:
        binary = build(Path(name), options.ns3, SOURCE)
        if binary is None:
            print("ns-3 is not installed: apt-get install g++ libns3-dev, or --ns3 FOLDER", file=sys.stderr)
            return 3
        same = json.dumps(sets)
        sides = {
            ("ns-3", str(options.ns3), options.ties, same): ns3(
                binary, options.fanin, sets, JITTER[options.ties]
            ),
            ("fanin", same): ours(options.fanin, sets),
        }
        print("| buffer, kB | side | collection time, ms | drops | timeouts | Fanin / ns-3 | agree |")
        print("|---" * 7 + "|")
        for buffer in options.buffer:
            theirs, own = (
                list(
                    zip(
                        *(results.of(run, side, (buffer, seed)) for seed in range(1, options.seeds + 1)),
                        strict=True,
                    )
                )
                for side, run in sides.items()
            )
            is_agreeing = agrees(theirs[0], own[0])
            agreeing += is_agreeing
            ratio = statistics.mean(own[0]) / statistics.mean(theirs[0])
            print(f"| {buffer} | ns-3 | {' | '.join(map(spread, theirs))} | | |")
            verdict = "yes" if is_agreeing else "no"
            print(f"| | Fanin | {' | '.join(map(spread, own))} | {ratio:.2f} | {verdict} |", flush=True)
        print(f"{len(options.buffer)} racks, {agreeing} agree", file=sys.stderr)
    return 0 if agreeing == len(options.buffer) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
