"""Plays scenarios whose keys stand at their extremes, and judges how each run ends.

Every key of the schema takes each of its extreme values, alone and in pairs with another key. A run has
two seconds of processor time and 2 GB of memory. It ends with a result, with a refusal that names a key, or
with a stated reason. An abort, a panic, a hang, and a result without events that gives no reason are faults.
A run that a busy machine gives no processor time counts as not measured.

    python tests/extremes/extremes.py --fanin target/debug/fanin              every key alone
    python tests/extremes/extremes.py --fanin target/debug/fanin --pairs 2000 --seed 7
"""

import argparse
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CPU_SECONDS = 2.0
# Processor time after the interrupt: to end, to compute the results and to write them.
GRACE_SECONDS = 3.0
MEMORY_BYTES = 2_000_000_000
# Wall time after which a process is interrupted, and after twice of which it is killed. On a busy machine it
# may not have computed enough then to be judged.
WALL_SECONDS = 60.0
# Wall time without any processor time after which a process has hung, on a busy machine too.
IDLE_SECONDS = 30.0

# Exit codes of the command: done; data lost or stalled; refused; the machine cannot carry it; interrupted.
DONE, LOST, REFUSED, TOO_LARGE, STOPPED = 0, 1, 2, 4, 130

# Systems that end in a fraction of a second, as settings of presets.
RACK: dict[str, str] = {
    "run.duration": "20 ms",
    "run.warmup": "5 ms",
    "readout.hosts": "12",
    "readout.fragments_per_host": "6",
    "readout.response_delay": "100 us",
    "collectors.racks": "2",
    "collectors.hosts_per_rack": "3",
    "collectors.units_per_host": "4",
    "collectors.processing_time": "2 ms",
    "network.readouts_per_group": "6",
}
BASES: dict[str, tuple[str, dict[str, str]]] = {
    "incast": ("incast", {"run.duration": "20 ms", "run.warmup": "0 s", "workload.request_size": "40 kB"}),
    "rack": ("thesis-a-1000hz", RACK),
    # Without a limit of ports, which other keys would reach first.
    "leaf-spine": (
        "thesis-a-1000hz",
        RACK | {"network.topology": "leaf-spine", "network.leaf_spine.ports": "0"},
    ),
    "hybrid": (
        "thesis-a-1000hz",
        RACK | {"network.topology": "hybrid", "network.cores": "1", "network.hybrid.host_ports": "2"},
    ),
    # Readouts and collectors on the same hosts.
    "all-to-all": ("lcn15-all-to-all", {"run.duration": "5 ms", "run.warmup": "0 s"}),
    "multihost": ("multihost", {"run.duration": "5 ms", "run.warmup": "0 s"}),
}
# The switches of each base.
SWITCHES = {
    "incast": ("tor",),
    "rack": ("tor", "core", "aggregation"),
    "leaf-spine": ("leaf", "spine"),
    "hybrid": ("tor", "core"),
    "all-to-all": ("tor",),
    "multihost": ("tor", "core"),
}
ALL_SWITCHES = ("tor", "core", "aggregation", "leaf", "spine")
# Settings without which a key has no effect, by the beginning of its name.
NEEDS: dict[str, dict[str, str]] = {
    "shaping.credits": {"shaping.method": "credits"},
    "shaping.discipline": {"shaping.method": "credits"},
    "shaping.fastpass": {"shaping.method": "fastpass"},
    "shaping.utilisation": {"shaping.method": "paced-credits"},
    "shaping.barrel_shifter": {"shaping.method": "barrel-shifter"},
    "shaping.barrel_shifter.slot": {
        "shaping.method": "barrel-shifter",
        "shaping.barrel_shifter.barrier": "clock",
    },
    "transport.static_window": {"transport.congestion_control": "static"},
    "transport.dctcp": {"transport.congestion_control": "dctcp", "tor.ecn.mode": "threshold"},
    "transport.m21tcp": {"transport.congestion_control": "m21tcp", "tor.m21": "true"},
    "transport.diatcp": {"transport.congestion_control": "diatcp"},
    "transport.swift": {"transport.congestion_control": "swift"},
    "transport.sird": {"transport.congestion_control": "sird"},
    "record.queue_interval": {"record.queues": '["tor->collector"]'},
    "logger": {"logger.accept": "0.5"},
    "background": {"background.connections": "2", "background.kind": "transfers"},
    **{
        f"{switch}.{key}": {f"{switch}.{name}": value for name, value in settings.items()}
        for switch in ALL_SWITCHES
        for key, settings in {
            "ecn": {"ecn.mode": "red-mark"},
            # Thresholds within the buffers of the bases.
            "pause": {"pause.mode": "pause", "pause.xoff": "20 kB", "pause.xon": "10 kB"},
            "daqring": {"buffering": "daqring"},
            "alpha": {"buffering": "dynamic-threshold"},
            "port_limit": {"buffering": "shared"},
            "input_limit": {"buffering": "shared"},
            "pool": {"buffering": "shared"},
            "module_ports": {"buffering": "voq"},
        }.items()
    },
}
# Extremes of a quantity, by a unit that its pattern permits. The largest fill 64 bits.
QUANTITIES: dict[str, tuple[str, ...]] = {
    "ps": ("0 s", "1 ps", "1 us", "1 s", "24 h", "5124 h"),
    "kB": ("0 B", "1 B", "1503 B", "1 GB", "18446 PB"),
    "Gb/s": ("0 b/s", "1 b/s", "800 Gb/s", "18446744 Tb/s"),
    "kHz": ("0 Hz", "1 mHz", "1 GHz", "18446744 GHz"),
    "ppm": ("0", "1 ppm", "1", "1000000"),
    "packets": ("0", "1 packets", "1000000000 packets"),
}
# Values with which a run may stall or lose events. Hosts wait a day, or the limit is below a round trip.
STALLS: dict[str, tuple[str, ...]] = {
    "run.stall_limit": ("1 ps", "1 us"),
    "readout.response_delay": ("24 h",),
    "readout.response_delay_sd": ("24 h",),
    "collectors.processing_time": ("24 h",),
    "collectors.processing_time_sd": ("24 h",),
    "shaping.barrel_shifter.slot": ("24 h",),
    "shaping.fastpass.advance": ("24 h",),
    "shaping.fastpass.delay": ("24 h",),
    "shaping.fastpass.delay_sd": ("24 h",),
    "shaping.fastpass.clock_error": ("24 h",),
}
# A refusal of the whole network, whose size follows from many keys.
TOO_LARGE_NETWORK = "virtual output queues; at most"
# The kind of a case that the machine was too busy to judge.
UNMEASURED = "not measured"
PANIC = re.compile(r"panicked at|memory allocation of|overflow|RUST_BACKTRACE")


@dataclass(frozen=True)
class Case:
    """A base and the settings that differ from it."""

    base: str
    sets: tuple[tuple[str, str], ...]
    keys: tuple[str, ...]

    def command(self, fanin: str) -> list[str]:
        """Return the command that plays it."""
        preset, settings = BASES[self.base]
        merged = settings | dict(self.sets)
        return [fanin, "sim", preset, *(f"--set={key}={value}" for key, value in merged.items())]


@dataclass(frozen=True)
class Verdict:
    """How a case ended, and the fault if that is one."""

    kind: str
    fault: str = ""


def schema(fanin: str) -> dict[str, Any]:
    """Return the schema that the command prints."""
    text = subprocess.run([fanin, "scenario", "schema"], check=True, capture_output=True, text=True).stdout
    schema: dict[str, Any] = json.loads(text)
    return schema


def keys(schema: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every key that a simulation may read, with its extreme values."""

    def walk(node: dict[str, Any], path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        if "properties" in node:
            for name, child in node["properties"].items():
                yield from walk(child, f"{path}.{name}" if path else name)
        else:
            yield path, extremes(node)

    for key, values in walk(schema, ""):
        if key not in ("extends", "title", "source") and not key.startswith("live."):
            yield key, values


def extremes(node: dict[str, Any]) -> tuple[str, ...]:
    """Return the extreme values of a key with this schema."""
    if "oneOf" in node:
        return tuple(str(choice["const"]) for choice in node["oneOf"] if "const" in choice)
    if "anyOf" in node:
        choices = (extremes(choice) for choice in node["anyOf"])
        sizes = (
            ('{ distribution = "log-normal", mean = "1 B", sigma = 2 }',) if len(node["anyOf"]) > 2 else ()
        )
        return tuple(value for values in choices for value in values) + sizes
    if "const" in node:
        return (str(node["const"]),)
    if "pattern" in node:
        units = re.findall(r"[A-Za-z/]+", node["pattern"])
        return next(values for unit, values in QUANTITIES.items() if unit in units)
    if node["type"] == "boolean":
        return ("false", "true")
    if node["type"] == "array":
        return ("[]", "[0]", "[4294967295]", '["x"]')
    if node["type"] == "integer":
        least = int(node.get("minimum", 0))
        bits = int(node["format"].removeprefix("uint"))
        most = int(node.get("maximum") or 2**bits - 1)
        return tuple(str(number) for number in sorted({0, least, least + 1, min(1000, most), most}))
    return ('""', '"x"', '"tor->collector:0"')


def companions(key: str) -> dict[str, str]:
    """Return the settings that the key needs to have an effect."""
    needs: dict[str, str] = {}
    for start, settings in NEEDS.items():
        if key == start or key.startswith((f"{start}.", f"{start}_")):
            needs |= settings
    return needs


def bases(key: str) -> tuple[str, ...]:
    """Return the systems in which the key is read."""
    section = key.partition(".")[0]
    if section in ALL_SWITCHES:
        return tuple(base for base, switches in SWITCHES.items() if section in switches)
    if key.startswith("network.leaf_spine."):
        return ("leaf-spine",)
    if key.startswith("network.hybrid."):
        return ("hybrid",)
    if section == "uplink" or key in (
        "network.cores",
        "network.uplinks_per_core",
        "network.readouts_per_group",
    ):
        return ("rack", "hybrid")
    if section == "workload":
        return ("incast",)
    if section in ("collectors", "supervisor", "logger"):
        return tuple(base for base in BASES if base != "incast")
    return tuple(BASES)


def singles(table: list[tuple[str, tuple[str, ...]]]) -> list[Case]:
    """Return every key at each of its extremes."""
    return [
        Case(base, tuple((companions(key) | {key: value}).items()), (key,))
        for key, values in table
        for value in values
        for base in bases(key)
    ]


def pairs(table: list[tuple[str, tuple[str, ...]]], count: int, seed: int) -> list[Case]:
    """Return random pairs of different keys at their extremes."""
    choose = random.Random(seed)
    cases: list[Case] = []
    while len(cases) < count:
        (one, ones), (two, twos) = choose.sample(table, 2)
        common = [base for base in bases(one) if base in bases(two)]
        if not common:
            continue
        values = {one: choose.choice(ones), two: choose.choice(twos)}
        sets = companions(one) | companions(two) | values
        cases.append(Case(choose.choice(common), tuple(sets.items()), (one, two)))
    return cases


def limits() -> None:
    """Limit the memory and the processor time of this process, which becomes the command."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    seconds = int(CPU_SECONDS + GRACE_SECONDS) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process; that of one that has ended is infinite."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return float("inf")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def play(case: Case, fanin: str) -> Verdict:
    """Run a case, and judge how it ends.

    A run that is interrupted is played again for half the time. By the end of the whole time it must have
    moved more packets.
    """
    verdict, hops = attempt(case, fanin, CPU_SECONDS)
    if verdict.kind == "stopped" and hops is not None:
        earlier, fewer = attempt(case, fanin, CPU_SECONDS / 2)
        if earlier.kind == "stopped" and fewer is not None and fewer >= hops:
            return Verdict("hang", f"computes, but stays at {hops} packet hops")
    return verdict


def attempt(case: Case, fanin: str, seconds: float) -> tuple[Verdict, int | None]:
    """Run a case, interrupt it after its processor time, and judge its end. Return its packet hops, too."""
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder) / "summary.json"
        process = subprocess.Popen(
            [*case.command(fanin), f"--json={summary}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=limits,
            env=os.environ | {"RUST_BACKTRACE": "0"},
        )
        said, watch = watched(process, seconds)
        figures = json.loads(summary.read_text()) if summary.exists() else None
        hops = figures.get("speed", {}).get("packet_hops") if figures else None
        return watch.verdict(judge(case, process.returncode, figures, said)), hops


class Watch(threading.Thread):
    """Interrupts a process whose processor time or wall time is over; kills one that does not end then."""

    def __init__(self, process: subprocess.Popen[str], seconds: float) -> None:
        super().__init__()
        self.process = process
        self.seconds = seconds
        self.late: Verdict | None = None
        """The verdict if the wall time was over first."""

    def run(self) -> None:
        """Watch the process until it ends."""
        began = computed_at = time.monotonic()
        used, interrupted = 0.0, False
        while self.process.poll() is None:
            now, cpu = time.monotonic(), cpu_seconds(self.process.pid)
            if cpu > used:
                used, computed_at = cpu, now
            is_over = now - began > WALL_SECONDS * (1 + interrupted)
            if is_over and cpu <= self.seconds + GRACE_SECONDS * interrupted:
                idle = now - computed_at
                self.late = (
                    Verdict("hang", f"neither computed for {idle:.0f} s nor ended")
                    if idle > IDLE_SECONDS
                    else Verdict(UNMEASURED)
                )
            if is_over and interrupted:
                self.process.kill()
            elif is_over or (cpu > self.seconds and not interrupted):
                interrupted = True
                self.process.send_signal(signal.SIGINT)
            time.sleep(0.02)

    def verdict(self, judged: Verdict) -> Verdict:
        """Return the verdict on the process, which was judged without regard to the wall time."""
        is_cut = self.late and self.process.returncode in (STOPPED, -signal.SIGINT, -signal.SIGKILL)
        return self.late if self.late and is_cut else judged


def watched(process: subprocess.Popen[str], seconds: float) -> tuple[str, Watch]:
    """Wait for a process, and return what it printed and how its time went."""
    watch = Watch(process, seconds)
    watch.start()
    said, _ = process.communicate()
    watch.join()
    return said, watch


def names(error: str, case: Case) -> bool:
    """Return whether an error names one of the case's keys in full."""
    return TOO_LARGE_NETWORK in error or any(
        re.search(rf"(?<![\w.]){re.escape(key)}(?!\w)", error) for key, _ in case.sets
    )


def may_stall(case: Case) -> bool:
    """Return whether a run with these settings may stall or lose events."""
    return any(key in STALLS and (not STALLS[key] or value in STALLS[key]) for key, value in case.sets)


def judge_end(case: Case, code: int, said: str) -> Verdict | None:
    """Return the verdict on a process that aborted, was killed, or refused the case; `None` on any other."""
    if PANIC.search(said) or code in (101, -signal.SIGABRT, -signal.SIGSEGV):
        return Verdict("abort", f"exit {code}: {said.strip()[:300]}")
    if code in (-signal.SIGKILL, -signal.SIGXCPU):
        return Verdict("hang", "does not end after an interrupt")
    if code in (REFUSED, TOO_LARGE):
        # The message, the lines of the scenario that it shows and the help name the key in full.
        error = said[said.find("error:") :]
        return (
            Verdict("refused") if names(error, case) else Verdict("refusal", f"names no key: {error[:300]}")
        )
    return None


def judge(case: Case, code: int, summary: dict[str, Any] | None, err: str) -> Verdict:
    """Return the verdict on an exit code, the summary that was written, and all output."""
    if verdict := judge_end(case, code, err):
        return verdict
    if code not in (DONE, LOST, STOPPED):
        return Verdict("exit", f"exit {code}: {err.strip()[:300]}")
    if summary is None:
        # A network that is still being built has no results yet.
        said = code == STOPPED and "stopped" in err
        return (
            Verdict("stopped") if said else Verdict("silence", f"exit {code} without a summary: {err[:300]}")
        )
    hops = summary.get("speed", {}).get("packet_hops", 0)
    if code == STOPPED:
        return Verdict("stopped") if hops else Verdict("hang", "computes, but no packet moves")
    measured = summary.get("events", {}).get("collected", 0) + summary.get("requests", {}).get("completed", 0)
    if code == LOST:
        error = err[err.find("error:") :]
        if "error:" not in err:
            return Verdict("silence", "exit 1 without a reason")
        return Verdict("lost") if may_stall(case) else Verdict("stall", error.strip()[:300])
    if not measured and "nothing was measured" not in err and "No event was measured" not in err:
        return Verdict("silence", "exit 0 without an event or a reason")
    return Verdict("result" if measured else "reason")


def report(verdicts: Iterable[tuple[str, Verdict]]) -> int:
    """Print each fault with what was played, and the counts; return the exit code, 1 for a fault."""
    counts: Counter[str] = Counter()
    faults = 0
    for played, verdict in verdicts:
        counts[verdict.kind] += 1
        if verdict.fault:
            faults += 1
            print(f"{verdict.kind}: {played}\n    {verdict.fault}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    print(f"{counts.total() - faults - counts[UNMEASURED]} passed, {faults} failed")
    return int(faults > 0)


def main() -> int:
    """Play what the arguments ask for; exit code 1 where there is a fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fanin", required=True, help="the command to test")
    parser.add_argument("--pairs", type=int, default=0, help="random pairs of keys, in place of single keys")
    parser.add_argument("--seed", type=int, default=1, help="seed of the choice of cases")
    parser.add_argument("--cases", type=int, help="play that many random cases only")
    parser.add_argument("--base", choices=list(BASES), help="this system only")
    parser.add_argument("--only", default="", help="keys that contain this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    table = [(key, values) for key, values in keys(schema(options.fanin)) if options.only in key]
    cases = pairs(table, options.pairs, options.seed) if options.pairs else singles(table)
    cases = [case for case in cases if options.base in (None, case.base)]
    if options.cases is not None:
        cases = random.Random(options.seed).sample(cases, min(options.cases, len(cases)))

    def shown(case: Case) -> str:
        return " ".join([case.base, *(f"--set '{key}={value}'" for key, value in case.sets)])

    with ThreadPoolExecutor(options.jobs) as pool:
        verdicts = pool.map(lambda case: play(case, options.fanin), cases)
        return report(zip(map(shown, cases), verdicts, strict=True))


if __name__ == "__main__":
    sys.exit(main())
