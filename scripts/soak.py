"""Soak: run a live system while its processes are killed, or a switch under churn, and watch it.

Usage: scripts/soak.py live [--minutes 60] [--kill-every 10] [--seed 1] [--set KEY=VALUE ...]
       scripts/soak.py switch [--minutes 60]

`live` runs a scenario on 127.0.0.1 and ends one of its processes by SIGKILL every few seconds. The
command starts it again. Its audit must be clean at the end. `switch` runs the soak of
`crates/switch/examples/busy`: traffic over ports in memory, and changes of rings, rules and ports
without a pause. In both, memory and descriptors of all processes are read from /proc once a second
into --out (`samples.csv`). The first quarter of the time is for filling, and 30 s at least, up to half of
a short run. The rest has three thirds. The median of the last may lie above that of the first by 2 % for
memory, and by 1 % and four for descriptors. In an hour these are the second and the last quarter.
The memory of a process depends on its age, and kills make the ages random. Of killed processes it is
therefore compared at equal roles and ages, and that of each one older than 15 minutes with its own.
Exit code 1 where an event was lost or something grew. A run that ends too early to be judged, such as
one that is refused, prints its own error. The exit code is then that of the run, or 1. Ctrl-C ends the
run in order.
"""

import argparse
import csv
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

ROOT = Path(__file__).resolve().parent.parent
# Shortest time for filling: heaps and the switch's packet memory grow until each kind of work has been done.
WARM_UP_SECONDS = 30
SWITCH_UNIT = ROOT / "deploy" / "switch" / "fanin-switch@.service"
# The heap of the switch's unit, in which freed memory goes back at once. Buffers of captures that glibc keeps
# for later would hide a leak, or look like one.
SWITCH_HEAP = dict(re.findall(r"^Environment=(MALLOC_\w+)=(\d+)$", SWITCH_UNIT.read_text(), re.MULTILINE))
assert len(SWITCH_HEAP) == 3, f"{SWITCH_UNIT.name} sets {sorted(SWITCH_HEAP)}"
# Growth that is no leak: processes started at other times, and connections open just then.
MEMORY_GROWTH_MAX = 0.02
DESCRIPTOR_GROWTH_MAX = 0.01
# Longest time between two samples of a process on a busy machine.
PAUSE_SECONDS_MAX = 30
# Age at which a process has filled its heap, in the soak of an hour.
OLD_SECONDS = 900
DESCRIPTORS_OPEN_MAX = 4


@dataclass(frozen=True)
class Sample:
    """Memory (private and shared, kB) and descriptors of a process, `at` seconds after the start."""

    at: float
    pid: int
    role: str
    memory_kb: int
    descriptors: int


def children(pid: int) -> list[int]:
    """Find the processes that a process has started, by any of its threads, and theirs."""
    direct: list[str] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        # A thread may have ended meanwhile.
        with suppress(OSError):
            direct += listed.read_text().split()
    return [process for child in map(int, direct) for process in (child, *children(child))]


def role(pid: int) -> str:
    """Name the role of a process by its command line: `fanin node ROLE …`, or its command."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return words[2] if words[1:2] == ["node"] else words[1] if len(words) > 1 else "?"


def role_of(pid: int) -> str | None:
    """Name the role of a process; none if it has ended, or has not become `fanin node` yet."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    return words[2].decode(errors="replace") if words[1:2] == [b"node"] else None


def sample(at: float, pid: int) -> Sample | None:
    """Read the memory and descriptors of a process; none if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        held = dict(line.split(":", 1) for line in lines)
        memory = sum(int(held[part].split()[0]) for part in ("RssAnon", "RssShmem"))
        return Sample(at, pid, role(pid), memory, len(os.listdir(f"/proc/{pid}/fd")))
    except (OSError, KeyError, ValueError):
        return None


def kill_one(process: subprocess.Popen[str], chance: random.Random, killed: Mapping[str, int]) -> str | None:
    """Kill one process that `process` has started, drawn by chance; return its role.

    A role that was never killed comes first: its first restart belongs to the time for filling. A
    supervisor, for one, clears its last 100 000 events again at each readout, and keeps that memory.
    """
    roles = {pid: name for pid in children(process.pid) if (name := role_of(pid))}
    if not roles:
        return None
    untried = [pid for pid, name in roles.items() if name not in killed]
    pid = chance.choice(untried or list(roles))
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return None
    return roles[pid]


def watch(
    command: list[str],
    folder: Path,
    kill_every: float | None,
    chance: random.Random,
    environment: dict[str, str],
) -> tuple[int, list[Sample], dict[str, int]]:
    """Run a command to its end; return its exit code, the samples, and the kills by role."""
    samples: list[Sample] = []
    killed: dict[str, int] = defaultdict(int)
    begin = time.monotonic()
    next_kill = begin + (kill_every or 0)
    with (folder / "output.txt").open("w") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=output, text=True, env=os.environ | environment
        )
        try:
            while process.poll() is None:
                now = time.monotonic()
                held = [sample(now - begin, pid) for pid in (process.pid, *children(process.pid))]
                samples += [each for each in held if each is not None]
                if kill_every is not None and now >= next_kill:
                    next_kill += kill_every
                    if name := kill_one(process, chance, killed):
                        killed[name] += 1
                if sys.stderr.isatty():
                    done = f"\r{(now - begin) / 60:.1f} min, {sum(killed.values())} killed "
                    print(done, end="", file=sys.stderr, flush=True)
                time.sleep(1)
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
    return process.returncode, samples, killed


def before_audit(samples: list[Sample]) -> list[Sample]:
    """Leave out the samples after the last started process has ended: the first process then audits."""
    end = max((each.at for each in samples if each.pid != samples[0].pid), default=float("inf"))
    return [each for each in samples if each.at <= end]


def times_of(end: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the two times that are compared, each with begin and end in seconds."""
    begin = min(max(0.25 * end, WARM_UP_SECONDS), 0.5 * end)
    third = (end - begin) / 3
    # The last samples may be of processes that are stopping.
    return (begin, begin + third), (end - third, 0.98 * end)


def parts_of(samples: list[Sample], of_launcher: int | None) -> list[list[list[int]]]:
    """Add up memory (kB) and descriptors of all processes, or take one; for two times after the warm-up."""
    sums: dict[float, list[int]] = defaultdict(lambda: [0, 0])
    for each in samples:
        if of_launcher in (None, each.pid):
            sums[each.at][0] += each.memory_kb
            sums[each.at][1] += each.descriptors
    times = times_of(max(sums, default=0.0))
    return [[held for at, held in sums.items() if low <= at < high] for low, high in times]


def can_judge(samples: list[Sample]) -> bool:
    """Return whether there are samples at both times; a run of a few seconds has none."""
    return bool(samples) and all(parts_of(samples, samples[0].pid))


def medians(samples: list[Sample], of_launcher: int | None) -> list[tuple[float, float]]:
    """Median memory (MB) and descriptors at two times after the warm-up, of all processes or of one."""
    parts = parts_of(samples, of_launcher)
    return [(median(m for m, _ in part) / 1e3, median(d for _, d in part)) for part in parts]


def judge(name: str, samples: list[Sample], of_launcher: int | None, *, judges_memory: bool = True) -> bool:
    """Print the medians at both times; return whether they grew."""
    (memory, descriptors), (memory_last, descriptors_last) = medians(samples, of_launcher)
    growth = memory_last / memory - 1
    leaks = descriptors_last > descriptors * (1 + DESCRIPTOR_GROWTH_MAX) + DESCRIPTORS_OPEN_MAX
    has_grown = (judges_memory and growth > MEMORY_GROWTH_MAX) or leaks
    print(
        f"{name:14} memory {memory:.1f} MB, {memory_last:.1f} MB at the end ({100 * growth:+.1f} %); "
        f"descriptors {descriptors:.0f}, {descriptors_last:.0f}{': GROWS' if has_grown else ''}"
    )
    return has_grown


def lives(samples: list[Sample]) -> list[list[Sample]]:
    """Divide the samples by process. A process number may be that of a later process, too."""
    found: list[list[Sample]] = []
    last: dict[int, list[Sample]] = {}
    for each in samples:
        life = last.get(each.pid)
        if life is None or life[-1].role != each.role or each.at - life[-1].at > PAUSE_SECONDS_MAX:
            life = last[each.pid] = []
            found.append(life)
        life.append(each)
    return found


def growth_at_equal_ages(samples: list[Sample]) -> float | None:
    """Compare the mean memory at both times, of processes of equal roles and ages in minutes.

    None if less than half of the samples have a counterpart.
    """
    held: tuple[dict[tuple[str, int], list[int]], ...] = (defaultdict(list), defaultdict(list))
    times = times_of(samples[-1].at)
    for life in lives(samples):
        for each in life:
            for part, (low, high) in zip(held, times, strict=True):
                if low <= each.at < high:
                    part[each.role, int((each.at - life[0].at) / 60)].append(each.memory_kb)
    both = held[0].keys() & held[1].keys()
    weights = {of: min(len(held[0][of]), len(held[1][of])) for of in both}
    if 4 * sum(weights.values()) <= sum(len(each) for part in held for each in part.values()):
        return None
    early, late = (sum(weight * fmean(part[of]) for of, weight in weights.items()) for part in held)
    return late / early - 1


def growth_of_the_old(samples: list[Sample]) -> float | None:
    """Compare the memory of processes older than `OLD_SECONDS` with their own of the minutes 5 to 10."""
    last = times_of(samples[-1].at)[1][1]
    early, late = 0.0, 0.0
    for life in lives([each for each in samples if each.at < last]):
        begin, end = life[0].at, life[-1].at
        if end - begin >= OLD_SECONDS:
            early += median(each.memory_kb for each in life if 300 <= each.at - begin < 600)
            late += median(each.memory_kb for each in life if end - each.at < 300)
    return late / early - 1 if early else None


def judge_killed(samples: list[Sample]) -> bool:
    """Print the growth of processes that are killed; return whether it is a leak."""
    grows = False
    for name, growth in (
        ("equal ages", growth_at_equal_ages(samples)),
        ("old processes", growth_of_the_old(samples)),
    ):
        if growth is None:
            print(f"{name:14} too few: memory is not judged")
            continue
        has_grown = growth > MEMORY_GROWTH_MAX
        print(f"{name:14} memory {100 * growth:+.1f} %{': GROWS' if has_grown else ''}")
        grows |= has_grown
    return grows


def main() -> int:
    """Run the soak; 1 if an event was lost or something grew."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("system", choices=("live", "switch"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kill-every", type=float, default=10, help="seconds between two kills (live)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of processes")
    parser.add_argument("--scenario", default="replay")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "soak")
    parser.add_argument("--binary", type=Path, help="in place of a release build")
    words = parser.parse_args()
    folder = words.out / words.system
    folder.mkdir(parents=True, exist_ok=True)
    seconds = 60 * words.minutes
    if words.system == "live":
        package, program = ["fanin-cli"], "fanin"
        settings = [*words.set, f"run.duration={seconds:.0f} s"]
        arguments = ["run", words.scenario, "--loopback", "--overwrite", "--out", str(folder / "run")]
        arguments += [word for value in settings for word in ("--set", value)]
    else:
        package, program = ["fanin-switch", "--example", "busy"], "examples/busy"
        arguments = ["soak", f"{seconds:.0f}"]
    if words.binary is None:
        subprocess.run(("cargo", "build", "--release", "--quiet", "-p", *package), cwd=ROOT, check=True)
    binary = words.binary or ROOT / "target" / "release" / program
    command = [str(binary), *arguments]
    kill_every = words.kill_every if words.system == "live" else None
    environment = SWITCH_HEAP if words.system == "switch" else {}
    code, samples, killed = watch(command, folder, kill_every, random.Random(words.seed), environment)
    with (folder / "samples.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("seconds", "pid", "role", "memory_kb", "descriptors"))
        rows.writerows((f"{s.at:.1f}", s.pid, s.role, s.memory_kb, s.descriptors) for s in samples)
    print((folder / "output.txt").read_text()[-4000:])
    if killed:
        by_role = ", ".join(f"{name} {count}" for name, count in sorted(killed.items()))
        print(f"killed {sum(killed.values())}: {by_role}")
    samples = before_audit(samples)
    if not can_judge(samples):
        seconds = max((each.at for each in samples), default=0.0)
        print(f"exit code of the run: {code}; it ended within {seconds + 1:.0f} s, too early to be judged")
        return code if code > 0 else 1
    first = samples[0].pid
    grows = [judge("all processes", samples, None, judges_memory=not killed)]
    grows += [judge("first process", samples, first), bool(killed) and judge_killed(samples)]
    print(f"exit code of the run: {code}")
    return int(code != 0 or any(grows))


if __name__ == "__main__":
    sys.exit(main())
