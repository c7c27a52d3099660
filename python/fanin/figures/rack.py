"""Runs of the thesis' rack (§4.2.1), as the claims of `crates/reproduce` set them up."""

from fanin.figures.spec import Run, Series
from fanin.scenario import Setting

__all__ = [
    "A500",
    "A1000",
    "B500",
    "B1000",
    "POLICIES",
    "credits",
    "fcfs",
    "ordered",
    "partial",
    "policy",
    "usable",
    "variable",
]

A500, A1000, B500, B1000 = "thesis-a-500hz", "thesis-a-1000hz", "thesis-b-500hz", "thesis-b-1000hz"
#: A fragment, in kB; credits times this is the largest burst.
FRAGMENT_KB = 1.1
#: Policies by the names of the thesis' legends.
POLICIES = {
    "FCFS": "fcfs",
    "random": "random",
    "load balancing": "node-load-balancing",
    "round-robin": "node-round-robin",
    "unit round-robin": "unit-round-robin",
}
BURST = "largest burst allowed by the credits (kB)"
TIME = "collection time (ms)"


def rate(preset: str) -> str:
    """Return the throughput and load of a preset, for a title."""
    return "1.06 GB/s, 45 %" if preset.endswith("-500hz") else "2.11 GB/s, 90 %"


def burst(number: int) -> float:
    """Return the burst of a number of credits in kB."""
    return round(number * FRAGMENT_KB, 1)


def credits(preset: str, number: int) -> Run:
    """Return a run with credits."""
    return Run(preset, {"shaping.credits": number})


def ordered(run: Run) -> Run:
    """Let first come, first served start in the order that it takes by itself (§6.5)."""
    return run.set("supervisor.start_order", "interleaved")


def usable(run: Run) -> Run:
    """Leave the memory that the switch has for frames: 500 kB a port of A, 9.4 MB of B (§5.2.2, §6.2)."""
    return run.set("tor.buffer", "9.4 MB" if run.preset.startswith("thesis-b") else "500 kB")


def fcfs(preset: str, number: int) -> Run:
    """Return a run of FCFS, with units that share their credits evenly; from 3.5 to 4.5 s."""
    return credits(preset, number).set("shaping.discipline", "round-robin").timed(3500, 1000)


def policy(preset: str, number: int, name: str) -> Run:
    """Return a run with credits and a policy, by its name in the legends."""
    if name == "FCFS":
        return fcfs(preset, number)
    return credits(preset, number).set("supervisor.policy", POLICIES[name]).timed(300, 500)


def partial(preset: str, sixteenths: int) -> Run:
    """Collect each event from a part of the readouts, without credits, at the same throughput (§4.2.1)."""
    full_mhz = 500_000 if preset.endswith("-500hz") else 1_000_000
    run = ordered(Run(preset)).set("workload.fraction", f"{sixteenths / 16:.4f}")
    run = run.set("supervisor.rate", f"{full_mhz * 16 // sixteenths} mHz")
    return run.set("shaping.request_order", "random").timed(300, 1000)


def variable(run: Run) -> Run:
    """Make events log-normal, with normal fragments (§6.2)."""
    size: dict[str, Setting] = {
        "distribution": "log-normal",
        "mean": "1.1 kB",
        "sigma": 0.25,
        "fragment_sd": "200 B",
    }
    return run.set("readout.fragment_size", size)


def scan(label: str, runs: dict[float, Run], colour: int | None = None, line: str = "-") -> Series:
    """Return a series of runs by x."""
    return Series(label, tuple(runs.items()), colour, line)
