"""Runs of `fanin sim` with a technique, and the figures of their summaries, for `scripts/limits.py`."""

import json
import math
import os
import resource
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Settings = dict[str, str]
# The failure of a run that reached its limit.
TOO_LONG = "no result within"


@dataclass(frozen=True)
class Run:
    """The figures of one simulation, or the reason why there are none."""

    summary: dict[str, Any]
    failure: str = ""
    #: The largest queue towards a collector, in kilobytes; NaN if none of the five fullest leads to one.
    collector_queue_kb: float = math.nan

    def figure(self, *names: str) -> float:
        """Return the first of these figures that the summary has, by dotted names; else NaN."""
        for name in names:
            node: Any = self.summary
            for part in name.split("."):
                node = node.get(part) if isinstance(node, dict) else None
            if isinstance(node, int | float):
                return float(node)
        return math.nan

    @property
    def mean(self) -> float:
        """Mean slowdown over the bound, or over the ideal where there is no bound."""
        return self.figure("slowdown_bound.mean", "slowdown.mean")

    @property
    def p99(self) -> float:
        """99th percentile of the slowdown over that of the bound."""
        return self.figure("slowdown_bound.p99", "slowdown.p99")

    @property
    def drops(self) -> float:
        """Frames that switches dropped."""
        return self.figure("network.drops")

    @property
    def timeouts(self) -> float:
        """Timeouts of all senders."""
        return self.figure("tcp.timeouts")

    @property
    def queue_kb(self) -> float:
        """The largest queue of a switch in kilobytes."""
        return self.figure("network.queue_bytes_max") / 1e3


def collector_queue_kb(picture: Path) -> float:
    """Read the largest queue towards a collector from the picture of a run, in kilobytes."""
    ports = json.loads(picture.read_text())["timeline"]["ports"] if picture.exists() else []
    queues = [max(port["queue_bytes"]) for port in ports if "->collector:" in port["name"]]
    return max(queues, default=math.nan) / 1e3


@dataclass(frozen=True)
class Simulator:
    """The command, the settings of the technique, and the limit of a run."""

    fanin: str
    technique: Settings
    cpu_seconds: int

    def run(self, preset: str, settings: Mapping[str, str], folder: Path | None = None) -> Run:
        """Simulate a preset with settings; the technique's come last. A folder takes the run's files."""
        sets = {**settings, **self.technique}
        command = [self.fanin, "sim", preset, "--quiet", "--json", "-", "--threads", "1"]
        command += ["--out", str(folder)] if folder else []
        command += [f"--set={key}={value}" for key, value in sets.items()]
        limit = self.cpu_seconds

        def prepare() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 2))
            os.nice(10)

        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=prepare)
        try:
            summary = json.loads(done.stdout)
        except json.JSONDecodeError:
            reasons = [line for line in done.stderr.splitlines() if line.startswith("error")]
            why = f"{TOO_LONG} {limit} s of processor time" if done.returncode < 0 else done.stderr[-200:]
            return Run({}, reasons[0] if reasons else why)
        stalled = "nothing moved any more" if done.returncode == 1 else ""
        return Run(summary, stalled, collector_queue_kb(folder / "picture.json") if folder else math.nan)


def whole(number: float) -> str:
    """Return a count, or a dash where there is none."""
    return "-" if math.isnan(number) else f"{number:.0f}"


def kilobytes(number: float) -> str:
    """Return a size, or a dash where there is none."""
    return "-" if math.isnan(number) else f"{number:.0f} kB"


def row(*cells: str) -> str:
    """Return a row of a table in Markdown."""
    return "| " + " | ".join(cells) + " |"
