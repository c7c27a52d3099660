"""Runs what continuous integration is too short for. It can be stopped at any time, and goes on where it was.

Usage: .ci/nightly [--hours 10] [--only PART ...] [--runs N] [--profile dev] [--again] [--list]

Each part has its share of the hours, and is made of runs. A run that has ended is not repeated on the same
commit, unless `--again` is given. Parts that draw seeds have new runs each night: date (UTC) and commit give
the seed. A run begins only if the rest of its part's time suffices. Past its own time it is cut off, and the
next call repeats it.

Results and totals are in out/nightly/state.json, the output of each run in out/nightly/logs. The output of a
failed run keeps the seed in its name. The last line counts the runs of this commit: "N passed, N failed".
Exit code 0 only if none failed and none was cut off, 2 if another call is running. Ctrl-C, SIGTERM and SIGHUP
end the present run in order, which the next call then repeats; the exit code is 130. `--profile dev` builds
faster, and checks debug assertions. `--runs N` begins at most N runs of each part, whatever their time.
"""

import argparse
import fcntl
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from random_systems import judge_draws

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "nightly"
WORLDS, INPUTS = 1_000_000, 1_000_000_000
WORLDS_AT_ONCE, DRAWS_AT_ONCE, CASES = 2_000, 4, 20
PAIRS_AT_ONCE, LOSSES_AT_ONCE, KERNEL_AT_ONCE = 300, 50, 4
# The least share of drawn cases that must agree on incast, and the largest error of a median of at least
# five. On record 97 % agree: of 20 cases fewer than 16 do by chance in one night of thousands.
INCAST_LEAST = 0.8
MEDIANS_MOST = {"mean without incast": 10.0, "goodput with incast": 25.0}
# Their errors may be twice as large: few cases build events in collapse.
MEDIANS_MOST |= {"mean of event building with incast": 50.0}
# The least share of servers that must send as the kernel does; docs/engineering/kernel.md names what differs.
KERNEL_LEAST = 0.5
# Seconds beyond its own after which a run is cut off: it may have to build, and to end in order.
GRACE_SECONDS, MUTATION_SECONDS = 900, 1800
# The lines that change with the format of messages between processes.
WIRE = "const (LAYOUT: u16|VERSIONS: Versions)"
WIRE_FILES = ("crates/message/src/hello.rs", "crates/node/src/codec.rs")

State = dict[str, Any]

# The signals that have asked this call to stop.
stop_signals: list[int] = []


@dataclass(frozen=True)
class Time:
    """The seconds of a part, the seed of the night, and the profile of its programs."""

    seconds: float
    seed: int
    profile: str

    def binary(self, name: str) -> str:
        """Return the path of a built program."""
        return str(ROOT / "target" / ("debug" if self.profile == "dev" else self.profile) / name)


@dataclass(frozen=True)
class Ended:
    """The exit code of a run, and its output."""

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
    # The longest that it may take, without builds.
    seconds: float
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A kind of runs, its share of the hours, and what is built before them."""

    name: str
    share: float
    description: str
    runs: Callable[[State, Time], Iterator[Run]]
    build: tuple[str, ...] = ()
    # Set where the runs need another profile than that of the call.
    build_profile: str | None = None
    # The runs draw seeds, or differ by chance: each night plays them, on the same commit too.
    is_new_each_night: bool = False


def last(text: str, pattern: str) -> str:
    """Return the last line that has this pattern, or the last one of all."""
    lines = text.strip().splitlines() or [""]
    return next((line for line in reversed(lines) if re.search(pattern, line)), lines[-1]).strip()


def by_code(pattern: str) -> Callable[[Ended], Verdict]:
    """Judge by the exit code; the words are the last line with this pattern."""
    return lambda ended: Verdict(ended.code == 0, last(ended.text, pattern))


def by_tool(pattern: str) -> Callable[[Ended], Verdict]:
    """Judge as `by_code`; exit code 3 says that this machine lacks something."""
    return lambda ended: Verdict(ended.code == 0, last(ended.text, pattern), skipped=ended.code == 3)


def git(*arguments: str) -> str:
    """Return what git prints."""
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout.strip()


def today() -> str:
    """Return the date (UTC) as YYMMDD."""
    return time.strftime("%y%m%d", time.gmtime())


def seed_of(date: str, commit: str) -> int:
    """Return the seed of a night: the date, then six digits of the commit. Worlds need it below 1.8e12."""
    return int(date) * 1_000_000 + int(commit[:12] or "0", 16) % 1_000_000


def worlds(_state: State, night: Time) -> Iterator[Run]:
    """Play worlds with seeds of the night, some at a time."""

    def judge(ended: Ended) -> Verdict:
        # Lines of progress come before the summary.
        played = int((re.findall(r"^(\d+) of \d+ seeds, ", ended.text, re.MULTILINE) or ["0"])[-1])
        holds = ended.code == 0 and played == WORLDS_AT_ONCE
        return Verdict(holds, last(ended.text, " seeds, "), totals={"worlds": played})

    for begin in range(0, WORLDS, WORLDS_AT_ONCE):
        command = [night.binary("fanin-world"), "campaign", "--seeds", str(WORLDS_AT_ONCE)]
        command += ["--from", str(night.seed * 10_000_000 + begin)]
        yield Run(f"{begin}", command, judge, 120)


def soak(system: str, program: str) -> Callable[[State, Time], Iterator[Run]]:
    """Run one soak for the time of the part, an hour at most."""

    def runs(_state: State, night: Time) -> Iterator[Run]:
        seconds = min(3600.0, night.seconds)
        minutes = seconds / 60
        command = [sys.executable, "scripts/soak.py", system, "--minutes", f"{minutes:.2f}"]
        command += ["--seed", str(night.seed), "--out", str(OUT / "soak"), "--binary", night.binary(program)]
        command += ["--set", "logger.accept=0.02"] if system == "live" else []
        yield Run(f"{system}-{minutes:.0f}min", command, by_code("all processes|GROWS"), seconds)

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
        # The eight targets have ten shares of the time.
        yield Run(f"round-{number}", ["scripts/fuzz.sh", f"{each}s"], judge, 10 * each, environment)


def mutations(_state: State, night: Time) -> Iterator[Run]:
    """Plant each bug, and look whether worlds find it."""
    script = [sys.executable, "scripts/mutations.py"]
    # In a session of its own, Ctrl-C in a terminal does not reach it.
    listed = subprocess.run(
        [*script, "--list"], cwd=ROOT, capture_output=True, text=True, check=True, start_new_session=True
    )
    script += ["--profile", night.profile, "--limit", str(MUTATION_SECONDS)]

    def judge(ended: Ended) -> Verdict:
        line = last(ended.text, r"^\| ")
        return Verdict(ended.code == 0 and re.search(r"\| \d+ seeds", line) is not None, line)

    for line in listed.stdout.splitlines():
        name = line.split(":")[0]
        yield Run(name, [*script, "--only", name], judge, MUTATION_SECONDS)


def validation(_state: State, night: Time) -> Iterator[Run]:
    """Draw cases anew, simulate them and measure them on this machine's kernel."""
    folder = OUT / f"validation-{night.seed}"
    draw = [sys.executable, "scripts/hypercube.py", str(folder), "--cases", str(CASES)]
    draw += ["--seed", str(night.seed)]
    yield Run("draw", draw, by_code("cases"), 10)

    def judge(ended: Ended) -> Verdict:
        incast = re.search(r"incast or not agrees in (\d+) of (\d+) cases", ended.text)
        medians = re.findall(r"^(.+): median error ([\d.]+|inf) % of (\d+) cases", ended.text, re.MULTILINE)
        holds = incast is not None and int(incast[1]) >= INCAST_LEAST * int(incast[2])
        holds &= all(float(error) <= MEDIANS_MOST[name] for name, error, count in medians if int(count) >= 5)
        # Single cases may differ: the exit code is 1 then.
        words = "; ".join(re.findall(r"^.+: (?:met|missed)$|^error: .+$", ended.text, re.MULTILINE))
        return Verdict(holds and ended.code in (0, 1), words, skipped=ended.code == 3)

    command = [night.binary("fanin"), "validate", str(folder), "--rounds", "3"]
    yield Run("measure", command, judge, 2400)


def family(state: State, night: Time) -> Iterator[Run]:
    """Play paced credits: systems need results, some meet the targets, and no named target gets worse."""

    def judge(ended: Ended) -> Verdict:
        earlier = [run["words"] for run in state.get("runs", {}).get("family", {}).values()]
        holds, totals = judge_draws(ended.text, earlier)
        # The script ends with 1 where a draw misses the targets.
        return Verdict(ended.code in (0, 1) and holds, last(ended.text, "draws met"), totals=totals)

    limits = [sys.executable, "scripts/limits.py", "--fanin", night.binary("fanin")]
    for number in range(25):
        draws = ["family", "--draws", str(DRAWS_AT_ONCE), "--seed", str(night.seed * 100 + number)]
        yield Run(f"{number}", [*limits, *draws], judge, 120)
    for part in ("targets", "shipped"):
        yield Run(part, [*limits, part], by_code("targets are met|^lost|without a result"), 500)


def previous(_state: State, _night: Time) -> Iterator[Run]:
    """Upgrade a running system from the newest tag, or from two commits about the last change of the wire."""

    def judge(how: str, ended: Ended) -> Verdict:
        found = re.search(f"^upgraded from .*{how}.*none lost", ended.text, re.MULTILINE)
        return Verdict(ended.code == 0 and found is not None, last(ended.text, "^upgraded|panicked"))

    tag = git("describe", "--tags", "--abbrev=0")
    first = "" if tag else git("log", "-1", "--format=%H", f"-G{WIRE}", "--", *WIRE_FILES)
    before = git("rev-parse", "--verify", "--quiet", f"{first}^") if first else ""
    upgrades = [words for words in ((tag,), (first,), (first, "1-1"), (before,)) if words[0]]
    cargo = ["cargo", "run", "--package", "fanin-node", "--example", "upgrade", "--"]
    for words in upgrades:
        # Only a release or commit of another wire format may stop the whole system.
        judged = partial(judge, "process by process" if words[0] == first else "")
        yield Run("-".join([words[0][:12], *words[1:]]), [*cargo, *words], judged, 300)
    if not upgrades:
        yield Run("none", ["true"], lambda _: Verdict(False, "neither tags nor history", skipped=True), 1)


def extremes(_state: State, night: Time) -> Iterator[Run]:
    """Play every key at its extremes, then random pairs of keys, and other commands with random keys."""
    script = [sys.executable, "tests/extremes/extremes.py", "--fanin", night.binary("fanin")]
    judge = by_code(r"passed, \d+ failed")
    for base in ("incast", "rack", "leaf-spine", "hybrid"):
        yield Run(f"alone-{base}", [*script, "--base", base], judge, 600)
    commands = [script[0], "tests/extremes/commands.py", *script[2:]]
    for number in itertools.count():
        amount = (str(PAIRS_AT_ONCE), "--seed", str(night.seed * 1000 + number))
        yield Run(f"pairs-{number}", [*script, "--pairs", *amount], judge, 400)
        yield Run(f"commands-{number}", [*commands, "--cases", *amount], judge, 400)


def laws(_state: State, night: Time) -> Iterator[Run]:
    """Try the laws between runs on new random scenarios and networks."""
    # The laws are those of this commit's simulator.
    command = [sys.executable, "-m", "maturin", "develop", "--release", "--locked", "--quiet"]
    environment = {"VIRTUAL_ENV": str(ROOT / ".venv")}
    yield Run("extension", command, by_code("error|Error"), 120, environment)
    command = [sys.executable, "-m", "pytest", "-q", "tests/python/test_laws.py"]
    for number in range(10):
        environment = {"FANIN_LAWS_SEED": str(night.seed * 1000 + number * 100)}
        yield Run(f"{number}", command, by_code("passed|failed|error"), 180, environment)
    command = ["cargo", "test", "--quiet", "--package", "fanin-sim", "--test", "laws"]
    yield Run("networks", command, by_code("^test result|^error"), 180, {"FANIN_LAWS_CASES": "1000"})


def packetdrill(_state: State, _night: Time) -> Iterator[Run]:
    """Play packetdrill's scripts in FANIN_PACKETDRILL; at least FANIN_PACKETDRILL_LEAST must pass."""
    folder, least = (os.environ.get(f"FANIN_PACKETDRILL{part}", "") for part in ("", "_LEAST"))
    play = ["tests/packetdrill/run.py", f"--scripts={folder}", f"--least-pass={least or 0}"]
    skip = lambda _ended: Verdict(False, "FANIN_PACKETDRILL names no folder", skipped=True)  # noqa: E731
    command = [sys.executable, *play] if folder else ["true"]
    yield Run("scripts", command, by_code(" scripts: ") if folder else skip, 300)


def crosscheck(_state: State, night: Time) -> Iterator[Run]:
    """Compare some cells of the classical incast, and the thesis' rack, with ns-3."""
    folder = os.environ.get("FANIN_NS3")
    words = ["--fanin", night.binary("fanin"), *(["--ns3", folder] if folder else [])]
    cells = ["--mss", "1460", "--buffer", "32", "64", "128", "--senders", "8", "32"]
    command = [sys.executable, "tests/ns3/crosscheck.py", *words, *cells]
    yield Run("cells", command, by_tool("cells, |not in"), 900)
    yield Run("rack", [sys.executable, "tests/ns3/rack.py", *words], by_tool("racks, |not in"), 900)


def losses(_state: State, night: Time) -> Iterator[Run]:
    """Compare the profile `ns3-newreno` with ns-3 under random losses.

    `FANIN_NS3` is the folder of an ns-3 of one's own.
    """
    folder = os.environ.get("FANIN_NS3")
    for number in range(10):
        command = [sys.executable, "tests/ns3/losses.py", "--draws", str(LOSSES_AT_ONCE)]
        seed = night.seed * 1000 + number * LOSSES_AT_ONCE
        command += [f"--seed={seed}", *(["--ns3", folder] if folder else [])]
        command += ["--mss", ("1460", "536")[number % 2]]
        yield Run(f"{number}", command, by_tool("equal segments|not installed"), 180)


def kernel(_state: State, night: Time) -> Iterator[Run]:
    """Compare the profile `linux-6` with this machine's kernel under random losses."""
    for number in range(5):
        command = [sys.executable, "tests/kernel/replay.py", "--draws", str(KERNEL_AT_ONCE)]
        command += ["--seed", str(night.seed * 1000 + number * KERNEL_AT_ONCE), "--least", str(KERNEL_LEAST)]
        yield Run(f"{number}", command, by_tool("servers equal|needs"), 240)


FED = re.compile(r"^fuzz target (.+?): ([\d,]+) inputs", re.MULTILINE)
CLI = ("--package", "fanin-cli", "--features", "fanin-cli/bpf")
each_night = partial(Part, is_new_each_night=True)
PARTS = (
    Part(
        "previous",
        0.06,
        "an upgrade from the previous release, under load",
        previous,
        # The upgrade runs this program, which `cargo run` does not build.
        ("--package", "fanin-node", "--example", "process"),
        build_profile="dev",
    ),
    each_night(
        "soak-live", 0.1, "an hour of replay with a kill every ten seconds", soak("live", "fanin"), CLI
    ),
    each_night(
        "soak-switch",
        0.1,
        "an hour of the switch with changes all the time",
        soak("switch", "examples/busy"),
        ("--package", "fanin-switch", "--example", "busy"),
    ),
    each_night(
        "worlds", 0.15, f"up to {WORLDS} simulated worlds with faults", worlds, ("--package", "fanin-world")
    ),
    each_night("fuzz", 0.15, f"the eight fuzz targets, towards {INPUTS} inputs", fuzz),
    Part("mutations", 0.15, "each planted bug: worlds must find it", mutations),
    each_night("validation", 0.08, f"{CASES} new validation cases on this machine's kernel", validation, CLI),
    each_night(
        "extremes",
        0.06,
        "every key at its extremes, random pairs of keys, and other commands",
        extremes,
        ("--package", "fanin-cli"),
    ),
    each_night("laws", 0.02, "laws between runs, on new random scenarios", laws),
    each_night("losses", 0.01, "random losses in ns-3, where it is installed", losses),
    Part("crosscheck", 0.03, "cells of the incast and a rack in ns-3, where installed", crosscheck, CLI),
    Part("packetdrill", 0.01, "packetdrill's scripts in FANIN_PACKETDRILL", packetdrill),
    each_night("kernel", 0.01, "random losses on this machine's kernel", kernel),
    each_night("family", 0.07, "paced credits: named targets, 100 random systems", family, CLI),
)


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Keep signals in `stop_signals`, so that the present run ends in order before this call does."""
    stop_signals.clear()
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A handler that does nothing replaces SIG_IGN, which a run would inherit: SIGINT must end runs.
        is_ignored = signal.getsignal(number) == signal.SIG_IGN
        handler = (
            (lambda _number, _frame: None) if is_ignored else lambda number, _: stop_signals.append(number)
        )
        before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)


def lock() -> IO[str] | None:
    """Take the lock of out/nightly until the file is closed; none if another call has it."""
    OUT.mkdir(parents=True, exist_ok=True)
    file = (OUT / "lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


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


def log_of(part: Part, run: Run) -> Path:
    """Return the file of a run's output."""
    return OUT / "logs" / f"{part.name}-{run.name}.log"


def execute(part: Part, run: Run) -> Ended | None:
    """Run a command with its output in a file; none if it was cut off past its time."""
    log = log_of(part, run)
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = os.environ | run.environment
    cut_off = time.monotonic() + run.seconds + GRACE_SECONDS
    with log.open("wb") as file:
        process = subprocess.Popen(
            list(run.command), cwd=ROOT, stdout=file, stderr=file, env=environment, start_new_session=True
        )
        while process.poll() is None:
            if stop_signals:
                end(process)
                raise KeyboardInterrupt
            if time.monotonic() > cut_off:
                end(process)
                return None
            time.sleep(0.1)
    return Ended(process.returncode, log.read_text(errors="replace"))


class Night:
    """The state of a night on disk, and its counts."""

    def __init__(self, again: bool) -> None:
        """Read what earlier calls have left; runs of another commit are forgotten, totals stay."""
        self.path = OUT / "state.json"
        self.cut_off = 0
        commit = git("rev-parse", "HEAD")
        self.seed = seed_of(today(), commit)
        self.state: State = json.loads(self.path.read_text()) if self.path.is_file() else {"totals": {}}
        if again or self.state.get("commit") != commit:
            self.state |= {"commit": commit, "runs": {}}
        self.state["seed"] = self.seed
        print(f"seed {self.seed} of commit {commit[:12]}", flush=True)

    def key(self, part: Part, run: Run) -> str:
        """Return the name of a run on this commit."""
        return f"{self.seed}/{run.name}" if part.is_new_each_night else run.name

    def save(self) -> None:
        """Write the state, whole or not at all."""
        OUT.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(self.state, indent=1) + "\n")
        draft.replace(self.path)

    def note(self, part: Part, run: Run, key: str, verdict: Verdict, seconds: float) -> None:
        """Keep the result of a run."""
        how = "skipped" if verdict.skipped else "passed" if verdict.passed else "failed"
        self.state["runs"].setdefault(part.name, {})[key] = {"how": how, "words": verdict.words}
        for name, count in verdict.totals.items():
            self.state["totals"][name] = self.state["totals"].get(name, 0) + count
        self.save()
        print(f"{how:8}{part.name} {run.name} ({seconds:.0f} s): {verdict.words[:150]}", flush=True)
        log = log_of(part, run)
        if how == "failed":
            # Another night must not overwrite it.
            kept = log.replace(log.with_name(f"{log.stem}-{self.seed}.log"))
            print(f"        {kept}", flush=True)

    def build(self, part: Part, profile: str) -> bool:
        """Build what the runs of a part need."""
        command = ["cargo", "build", "--profile", part.build_profile or profile, "--quiet", *part.build]
        run = Run("build", command, by_code("^error"), float("inf"))
        self.state["runs"][part.name].pop("build", None)
        started = time.monotonic()
        ended = execute(part, run)
        assert ended is not None, "a build has no limit"
        verdict = run.judge(ended)
        if not verdict.passed:
            verdict = Verdict(False, f"does not build: {verdict.words}")
            self.note(part, run, run.name, verdict, time.monotonic() - started)
        return verdict.passed

    def play(self, part: Part, seconds: float, profile: str, runs_most: int | None) -> None:
        """Do the runs of a part that are not done yet, as long as there is time, or this number of them."""
        done = self.state["runs"].setdefault(part.name, {})
        earlier = 0
        if part.build and not self.build(part, profile):
            return
        begin = time.monotonic()
        left = seconds
        begun = 0
        for run in part.runs(self.state, Time(seconds, self.seed, profile)):
            if stop_signals:
                raise KeyboardInterrupt
            key = self.key(part, run)
            if key in done:
                earlier += 1
                continue
            if runs_most is not None:
                if begun == runs_most:
                    break
            elif left <= 0 or run.seconds > left:
                rest = f"{max(0.0, left):.0f} s are left; next is {run.name} of up to {run.seconds:.0f} s"
                print(f"        {part.name}: {rest}", flush=True)
                break
            begun += 1
            started = time.monotonic()
            ended = execute(part, run)
            took = time.monotonic() - started
            if ended is None:
                self.cut_off += 1
                print(f"cut off {part.name} {run.name} ({took:.0f} s): the next call repeats it", flush=True)
            else:
                self.note(part, run, key, run.judge(ended), took)
            left = seconds - (time.monotonic() - begin)
        if earlier:
            print(f"        {part.name}: {earlier} runs had ended in an earlier call", flush=True)

    def sum(self, parts: Sequence[Part]) -> str:
        """Count the runs of these parts."""
        results = [run["how"] for part in parts for run in self.state["runs"].get(part.name, {}).values()]
        passed, failed, skipped = (results.count(how) for how in ("passed", "failed", "skipped"))
        others = [(skipped, "skipped"), (self.cut_off, "cut off")]
        return f"{passed} passed, {failed} failed" + "".join(f", {n} {how}" for n, how in others if n)


def play_all(parts: Sequence[Part], options: argparse.Namespace) -> int:
    """Play parts, and print the counts; return the exit code."""
    night = Night(options.again)
    code = 0
    try:
        for part in parts:
            night.play(part, 3600 * options.hours * part.share, options.profile, options.runs)
    except KeyboardInterrupt:
        print("interrupted: the next call goes on here", flush=True)
        code = 130
    totals = ", ".join(f"{count} {name}" for name, count in night.state["totals"].items())
    print(f"totals of all nights: {totals or 'none'}")
    line = night.sum(parts)
    print(line)
    return code or int(", 0 failed" not in line or night.cut_off > 0)


def main(arguments: Sequence[str]) -> int:
    """Play the parts."""
    assert __doc__
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [part.name for part in PARTS]
    parser.add_argument("--hours", type=float, default=10.0, help="of all parts together (10)")
    parser.add_argument("--only", nargs="*", default=names, choices=names, metavar="PART")
    parser.add_argument("--runs", type=int, metavar="N", help="at most N runs of each part: a trial")
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
    file = lock()
    if file is None:
        print(f"nightly: another call is running with {OUT}", file=sys.stderr)
        return 2
    with file, stop_on_signals():
        return play_all([part for part in PARTS if part.name in options.only], options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
