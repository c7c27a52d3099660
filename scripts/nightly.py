"""Runs what continuous integration is too short for. It can be stopped at any time, and goes on where it was.

Usage: .ci/nightly [--hours 10] [--only PART ...] [--profile dev] [--again] [--list]

Each part has its share of the hours, and is made of runs. A run that has ended is not repeated on the same
commit, unless `--again` is given. Results and totals are in out/nightly/state.json, and the output of each
run in out/nightly/logs. The last line counts the runs: "N passed, N failed". Exit code 0 only where none
failed. Ctrl-C ends the present run in order, which the next call then repeats. `--profile dev` builds faster,
and checks debug assertions.
"""

import argparse
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "nightly"
WORLDS, INPUTS = 1_000_000, 1_000_000_000
WORLDS_AT_ONCE, DRAWS_AT_ONCE, CASES = 2_000, 4, 12
# Seconds beyond those of its part after which a run is ended: it may have to build, and to end in order.
GRACE_SECONDS = 900
# The lines that change with the format of messages between processes.
WIRE = "const (LAYOUT: u16|VERSIONS: Versions)"
WIRE_FILES = ("crates/message/src/hello.rs", "crates/node/src/codec.rs")

State = dict[str, Any]


@dataclass(frozen=True)
class Time:
    """The seconds of a part, a seed of the day, and the profile of its programs."""

    seconds: float
    seed: int
    profile: str

    def binary(self, name: str) -> str:
        """Return the path of a built program."""
        return str(ROOT / "target" / ("debug" if self.profile == "dev" else self.profile) / name)


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code, -1 past its time; and what it printed."""

    code: int
    text: str


@dataclass(frozen=True)
class Verdict:
    """The result of a run. It is skipped if this machine lacks something that the run needs."""

    passed: bool
    words: str
    skipped: bool = False
    # Added up over all nights.
    totals: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One command with its verdict. Its name is its own in the part."""

    name: str
    command: Sequence[str]
    judge: Callable[[Ended], Verdict]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A kind of runs, its share of the hours, and what is built before them."""

    name: str
    share: float
    description: str
    runs: Callable[[State, Time], Iterator[Run]]
    build: tuple[str, ...] = ()


def last(text: str, pattern: str) -> str:
    """Return the last line that has this pattern, or the last one of all."""
    lines = text.strip().splitlines() or [""]
    return next((line for line in reversed(lines) if re.search(pattern, line)), lines[-1]).strip()


def by_code(pattern: str) -> Callable[[Ended], Verdict]:
    """Judge by the exit code; the words are the last line with this pattern."""
    return lambda ended: Verdict(ended.code == 0, last(ended.text, pattern))


def git(*arguments: str) -> str:
    """Return what git prints."""
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout.strip()


def worlds(_state: State, night: Time) -> Iterator[Run]:
    """Play worlds with seeds of the day, some at a time."""

    def judge(ended: Ended) -> Verdict:
        # Lines of progress come before the summary.
        played = int((re.findall(r"^(\d+) of \d+ seeds, ", ended.text, re.MULTILINE) or ["0"])[-1])
        holds = ended.code == 0 and played == WORLDS_AT_ONCE
        return Verdict(holds, last(ended.text, " seeds, "), totals={"worlds": played})

    for begin in range(0, WORLDS, WORLDS_AT_ONCE):
        command = [night.binary("fanin-world"), "campaign", "--seeds", str(WORLDS_AT_ONCE)]
        command += ["--from", str(night.seed * 10_000_000 + begin)]
        yield Run(f"{begin}", command, judge)


def soak(system: str, program: str) -> Callable[[State, Time], Iterator[Run]]:
    """Run one soak for the time of the part, an hour at most."""

    def runs(_state: State, night: Time) -> Iterator[Run]:
        minutes = min(60.0, night.seconds / 60)
        command = [sys.executable, "scripts/soak.py", system, "--minutes", f"{minutes:.2f}"]
        command += ["--seed", str(night.seed), "--out", str(OUT / "soak"), "--binary", night.binary(program)]
        command += ["--set", "logger.accept=0.02"] if system == "live" else []
        yield Run(f"{system}-{minutes:.0f}min", command, by_code("all processes"))

    return runs


def fuzz(state: State, night: Time) -> Iterator[Run]:
    """Feed the fuzz targets in rounds. Inputs of all nights count."""

    def judge(ended: Ended) -> Verdict:
        fed = {name: int(count.replace(",", "")) for name, count in FED.findall(ended.text)}
        totals = {f"inputs {name}": count for name, count in fed.items()} | {"inputs": sum(fed.values())}
        return Verdict(ended.code == 0 and bool(fed), f"{sum(fed.values())} inputs", totals=totals)

    each = max(1, min(60, int(night.seconds / 10)))
    for number in itertools.count():
        if state["totals"].get("inputs", 0) >= INPUTS:
            return
        environment = {"FANIN_FUZZ_SEED": str(night.seed * 100_000 + number)}
        yield Run(f"round-{number}", ["scripts/fuzz.sh", f"{each}s"], judge, environment)


def mutations(_state: State, night: Time) -> Iterator[Run]:
    """Plant each bug, and look whether worlds find it."""
    script = [sys.executable, "scripts/mutations.py"]
    listed = subprocess.run([*script, "--list"], cwd=ROOT, capture_output=True, text=True, check=True)

    def judge(ended: Ended) -> Verdict:
        line = last(ended.text, r"^\| ")
        return Verdict(ended.code == 0 and re.search(r"\| \d+ seeds", line) is not None, line)

    for line in listed.stdout.splitlines():
        name = line.split(":")[0]
        yield Run(name, [*script, "--profile", night.profile, "--only", name], judge)


def validation(_state: State, night: Time) -> Iterator[Run]:
    """Draw cases anew, simulate them and measure them on this machine's kernel."""
    folder = OUT / f"validation-{night.seed}"
    draw = [sys.executable, "scripts/hypercube.py", str(folder), "--cases", str(CASES)]
    draw += ["--seed", str(night.seed)]
    yield Run("draw", draw, by_code("cases"))

    def judge(ended: Ended) -> Verdict:
        return Verdict(ended.code == 0, last(ended.text, r"drawn-|needs"), skipped=ended.code == 3)

    for case in range(1, CASES + 1):
        name = f"drawn-{case:02}"
        command = [night.binary("fanin"), "validate", str(folder), "--only", name, "--rounds", "3"]
        yield Run(name, command, judge)


def family(_state: State, night: Time) -> Iterator[Run]:
    """Simulate random systems with paced credits. The targets are rarely met: results alone are asked for."""

    def judge(ended: Ended) -> Verdict:
        met = re.search(r": (\d+) of (\d+) draws met", ended.text)
        without = re.search(r"without a result (\d+)", ended.text)
        totals = {"draws": int(met[2]), "draws that met the targets": int(met[1])} if met else {}
        # The script ends with 1 where a draw misses the targets.
        has_results = met is not None and without is not None and int(without[1]) <= 1
        return Verdict(ended.code in (0, 1) and has_results, last(ended.text, "draws met"), totals=totals)

    for number in range(25):
        command = [sys.executable, "scripts/limits.py", "family", "--draws", str(DRAWS_AT_ONCE)]
        command += ["--fanin", night.binary("fanin"), "--seed", str(night.seed * 100 + number)]
        yield Run(f"{number}", command, judge)


def previous(_state: State, _night: Time) -> Iterator[Run]:
    """Upgrade a running system from the newest tag, or from the last commit with another wire format."""
    reference = git("describe", "--tags", "--abbrev=0")
    if not reference:
        changed = git("log", "-1", "--format=%H", f"-G{WIRE}", "--", *WIRE_FILES)
        reference = git("rev-parse", "--verify", "--quiet", f"{changed}^") if changed else ""

    def judge(ended: Ended) -> Verdict:
        words = last(ended.text, "[1-9] passed|panicked")
        return Verdict(ended.code == 0 and "1 passed" in ended.text and "SKIPPED" not in ended.text, words)

    command = ["cargo", "test", "--package", "fanin-node", "--test", "standby", "--example", "process"]
    command += ["previous_release", "--", "--nocapture"]
    if reference:
        yield Run(reference[:12], command, judge, {"FANIN_PREVIOUS": reference})
    else:
        skip = lambda _ended: Verdict(False, "this clone has neither tags nor history", skipped=True)  # noqa: E731
        yield Run("none", ["true"], skip)


FED = re.compile(r"^fuzz target (.+?): ([\d,]+) inputs", re.MULTILINE)
CLI = ("--package", "fanin-cli", "--features", "fanin-cli/bpf")
PARTS = (
    Part("previous", 0.06, "an upgrade from the previous release, under load", previous),
    Part("soak-live", 0.1, "an hour of replay with a kill every ten seconds", soak("live", "fanin"), CLI),
    Part(
        "soak-switch",
        0.1,
        "an hour of the switch with changes all the time",
        soak("switch", "examples/busy"),
        ("--package", "fanin-switch", "--example", "busy"),
    ),
    Part("worlds", 0.24, f"{WORLDS} simulated worlds with faults", worlds, ("--package", "fanin-world")),
    Part("fuzz", 0.15, f"the eight fuzz targets, towards {INPUTS} inputs", fuzz),
    Part("mutations", 0.2, "each planted bug: worlds must find it", mutations),
    Part("validation", 0.08, f"{CASES} new validation cases on this machine's kernel", validation, CLI),
    Part("family", 0.07, "100 random systems with paced credits", family, CLI),
)


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a run in order: it may have a file to take back, and processes to stop."""
    for number, seconds in ((signal.SIGINT, 60), (signal.SIGTERM, 20), (signal.SIGKILL, 20)):
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def execute(part: Part, run: Run, seconds: float) -> Ended:
    """Run a command with its output in a file."""
    log = OUT / "logs" / f"{part.name}-{run.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = os.environ | run.environment
    with log.open("wb") as file:
        process = subprocess.Popen(
            list(run.command), cwd=ROOT, stdout=file, stderr=file, env=environment, start_new_session=True
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            end(process)
            code = -1
        except KeyboardInterrupt:
            end(process)
            raise
    return Ended(code, log.read_text(errors="replace"))


class Night:
    """The state of a night on disk, and its counts."""

    def __init__(self, again: bool) -> None:
        """Read what earlier calls have left; runs of another commit are forgotten, totals stay."""
        self.path = OUT / "state.json"
        commit = git("rev-parse", "HEAD")
        self.state: State = json.loads(self.path.read_text()) if self.path.is_file() else {"totals": {}}
        if again or self.state.get("commit") != commit:
            self.state |= {"commit": commit, "seed": int(time.strftime("%Y%m%d", time.gmtime())), "runs": {}}

    def save(self) -> None:
        """Write the state, whole or not at all."""
        OUT.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(self.state, indent=1) + "\n")
        draft.replace(self.path)

    def note(self, part: Part, run: Run, verdict: Verdict, seconds: float) -> None:
        """Keep the result of a run."""
        how = "skipped" if verdict.skipped else "passed" if verdict.passed else "failed"
        self.state["runs"].setdefault(part.name, {})[run.name] = {"how": how, "words": verdict.words}
        for name, count in verdict.totals.items():
            self.state["totals"][name] = self.state["totals"].get(name, 0) + count
        self.save()
        print(f"{how:8}{part.name} {run.name} ({seconds:.0f} s): {verdict.words[:150]}", flush=True)

    def play(self, part: Part, seconds: float, profile: str) -> None:
        """Do the runs of a part that are not done yet, as long as there is time."""
        done = self.state["runs"].setdefault(part.name, {})
        before = len(done)
        if part.build:
            build = ["cargo", "build", "--profile", profile, "--quiet", *part.build]
            done.pop("build", None)
            if subprocess.run(build, cwd=ROOT, check=False).returncode != 0:
                self.note(part, Run("build", build, by_code("")), Verdict(False, "does not build"), 0.0)
                return
        begin = time.monotonic()
        for run in part.runs(self.state, Time(seconds, self.state["seed"], profile)):
            if run.name in done:
                continue
            left = seconds - (time.monotonic() - begin)
            if left <= 0:
                print(f"        {part.name}: the time is over; next is {run.name}", flush=True)
                break
            started = time.monotonic()
            ended = execute(part, run, left + GRACE_SECONDS)
            self.note(part, run, run.judge(ended), time.monotonic() - started)
        if before:
            print(f"        {part.name}: {before} runs had ended in an earlier call", flush=True)

    def sum(self, parts: Sequence[Part]) -> str:
        """Count the runs of these parts."""
        results = [run["how"] for part in parts for run in self.state["runs"].get(part.name, {}).values()]
        passed, failed, skipped = (results.count(how) for how in ("passed", "failed", "skipped"))
        return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def main(arguments: Sequence[str]) -> int:
    """Play the parts."""
    assert __doc__
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [part.name for part in PARTS]
    parser.add_argument("--hours", type=float, default=10.0, help="of all parts together (10)")
    parser.add_argument("--only", nargs="*", default=names, choices=names, metavar="PART")
    parser.add_argument("--profile", default="release", choices=("release", "dev"))
    parser.add_argument("--again", action="store_true", help="repeat the runs of this commit")
    parser.add_argument("--list", action="store_true", help="name the parts")
    options = parser.parse_args(arguments)
    if options.list:
        sys.stdout.writelines(
            f"{part.name:12} {60 * part.share * options.hours:4.0f} min  {part.description}\n"
            for part in PARTS
        )
        return 0
    night = Night(options.again)
    parts = [part for part in PARTS if part.name in options.only]
    code = 0
    try:
        for part in parts:
            night.play(part, 3600 * options.hours * part.share, options.profile)
    except KeyboardInterrupt:
        print("interrupted: the next call goes on here", flush=True)
        code = 130
    totals = ", ".join(f"{count} {name}" for name, count in night.state["totals"].items())
    print(f"totals of all nights: {totals or 'none'}")
    line = night.sum(parts)
    print(line)
    return code or int(", 0 failed" not in line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
