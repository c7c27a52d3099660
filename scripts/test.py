"""Runs every check and test, and ends with one line: how many passed and how many failed.

A check counts as one, and a step that runs tests counts each of them. `--only` runs some of the steps,
`--list` names them. Exit code 0 only where nothing failed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
LOGS = TARGET / "test-logs"
BARE_METAL = "x86_64-unknown-none"
# The Python package is for Macs too; `make wheels` links it, by Zig or by Apple's tools.
MAC = "aarch64-apple-darwin"
# Crates that must build where there is no standard library.
NO_STD = ("units", "dataflow", "queueing", "tcp")
# The feature that needs clang is off by default.
WITH_BPF = ("--package", "fanin-testbed", "--package", "fanin-cli", "--features", "fanin-cli/bpf")
# So is the one that needs DPDK's library.
WITH_DPDK = (
    *("--package", "fanin-switch", "--features", "dpdk"),
    *("--test", "dpdk", "--test", "dpdk_memif", "--test", "dpdk_rings"),
)
# Longer than any step takes on two cores from an empty target directory; a hung test ends here.
STEP_SECONDS_MAX = 3600
# How much of a failed step's log is printed at the end.
LOG_LINES_MAX = 200


@dataclass(frozen=True)
class Counts:
    """How many tests or checks ended how."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        """Return the sum."""
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        """Return the line that scripts read."""
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


@dataclass(frozen=True)
class Step:
    """One command, and how its tests are counted; a step without a counter is one check."""

    name: str
    command: tuple[str, ...]
    count: Callable[[str], Counts] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    # The thing that this machine lacks: the step's tests then count as skipped.
    lacks: str = ""
    tests: int = 1
    # Continuous integration has what the step needs: it fails there if that is missing.
    required: bool = False


CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;", re.MULTILINE)


def count_cargo(log: str) -> Counts:
    """Sum the result lines of all test binaries and doc tests."""
    results = [tuple(map(int, match.groups())) for match in CARGO_RESULT.finditer(log)]
    total = sum((Counts(*result) for result in results), Counts())
    # The harness counts a test that skips itself (tests/skip.rs) as passed. Tests of two binaries may share
    # a name, and one test may say more than once that it skips.
    skipped = sum(
        len({line.split(":")[0] for line in binary.splitlines() if line.startswith("SKIPPED ")})
        for binary in re.split(r"^ +(?:Running|Doc-tests) ", log, flags=re.MULTILINE)
    )
    return total + Counts(passed=-skipped, skipped=skipped)


def count_pytest(_log: str) -> Counts:
    """Read the report that pytest wrote; it has no report where it could not start."""
    try:
        suites = ElementTree.parse(LOGS / "pytest.xml").getroot().iter("testsuite")
    except (OSError, ElementTree.ParseError):
        return Counts()
    total = Counts()
    for suite in suites:
        tests, failed, skipped = (int(suite.get(key, 0)) for key in ("tests", "failures", "skipped"))
        failed += int(suite.get("errors", 0))
        total += Counts(tests - failed - skipped, failed, skipped)
    return total


def count_lines(log: str) -> Counts:
    """Read the last line of a script that counts for itself; there is none if it could not run."""
    result = re.search(r"^(\d+) passed, (\d+) failed$", log, re.MULTILINE)
    skipped = sum(is_skip(line) for line in log.splitlines())
    return Counts(int(result[1]), int(result[2]), skipped) if result else Counts()


def has_dpdk() -> bool:
    """Return whether this machine has DPDK's library to build against."""
    command = ("pkg-config", "--exists", "libdpdk")
    return shutil.which("pkg-config") is not None and subprocess.run(command, check=False).returncode == 0


def dpdk_tests() -> list[str]:
    """Return the names of the tests over DPDK."""
    files = (ROOT / "crates" / "switch" / "tests").glob("dpdk*.rs")
    return [
        name for file in files for name in re.findall(r"^#\[test\]\nfn (\w+)", file.read_text(), re.MULTILINE)
    ]


def has_std(target: str) -> bool:
    """Return whether the standard library for a target is installed."""
    command = ("rustc", "--print", "target-libdir", "--target", target)
    printed = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True).stdout.strip()
    return Path(printed).is_dir() if printed else False


def steps() -> list[Step]:
    """Return all steps, in the order in which they run."""
    python = sys.executable
    no_std = [f"fanin-{name}" for name in NO_STD if (ROOT / "crates" / name).is_dir()]
    binary = {"FANIN_BIN": str(TARGET / "debug" / "fanin")}
    warnings = {"RUSTDOCFLAGS": "-D warnings"}
    return [
        Step("format", ("cargo", "fmt", "--all", "--check")),
        Step("clippy", ("cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings")),
        Step("rustdoc", ("cargo", "doc", "--workspace", "--no-deps"), environment=warnings),
        *(
            Step(f"no-std-{name}", ("cargo", "build", "--package", name, "--target", BARE_METAL))
            for name in no_std
        ),
        Step(
            "macos",
            ("cargo", "check", "--package", "fanin-python", "--target", MAC),
            lacks="" if has_std(MAC) else f"the Rust target {MAC}: rustup target add {MAC}",
            required=True,
        ),
        Step("cargo-test", ("cargo", "test", "--workspace", "--no-fail-fast"), count_cargo),
        Step("instructions", (python, "scripts/instructions.py"), count_lines),
        Step("claims", (python, "scripts/claims.py"), count_lines),
        Step("bpf-clippy", ("cargo", "clippy", *WITH_BPF, "--all-targets", "--", "-D", "warnings")),
        Step("bpf-test", ("cargo", "test", *WITH_BPF, "--test", "bpf", "--test", "m21"), count_cargo),
        Step(
            "dpdk-test",
            ("cargo", "test", *WITH_DPDK),
            count_cargo,
            lacks="" if has_dpdk() else "DPDK 22.11 or newer: apt-get install libdpdk-dev",
            tests=len(dpdk_tests()),
            required=True,
        ),
        Step("generated-docs", (python, "scripts/docs.py", "--check"), environment=binary),
        Step("site", (python, "scripts/website.py")),
        Step("stubs", (python, "scripts/stubs.py", "--check")),
        Step("ruff-format", (python, "-m", "ruff", "format", "--check")),
        Step("ruff", (python, "-m", "ruff", "check")),
        Step("mypy", (python, "-m", "mypy")),
        Step("maturin", (python, "-m", "maturin", "develop", "--locked")),
        Step("notebooks", (python, "scripts/notebooks.py", "--check"), count_lines),
        Step("pytest", (python, "-m", "pytest", f"--junitxml={LOGS / 'pytest.xml'}"), count_pytest, binary),
    ]


def run(step: Step) -> tuple[Counts, str]:
    """Run one step; return its counts and its log, which is also kept in a file."""
    path = LOGS / f"{step.name}.log"
    if step.lacks:
        is_failed = step.required and os.environ.get("FANIN_REQUIRE_PRIVILEGES") == "1"
        log = f"SKIPPED {step.name}: needs {step.lacks}\n"
        path.write_text(log)
        return Counts(failed=step.tests) if is_failed else Counts(skipped=step.tests), log
    environment = os.environ | {"CARGO_TERM_COLOR": "never", "VIRTUAL_ENV": sys.prefix} | step.environment
    with path.open("wb") as file:
        try:
            code = subprocess.run(
                step.command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=STEP_SECONDS_MAX,
                check=False,
            ).returncode
            end = f"exit code {code}"
        except subprocess.TimeoutExpired:
            code, end = 1, f"stopped after {STEP_SECONDS_MAX} s"
        except OSError as error:
            code, end = 1, str(error)
    log = path.read_text(errors="replace") + f"[{end}]\n"
    counts = step.count(log) if step.count else Counts(passed=int(code == 0))
    # A step that failed without a failed test, such as one that did not compile, is a failure itself. So is
    # a test step that ran nothing.
    if counts.failed == 0 and (code != 0 or counts.passed == 0):
        counts += Counts(failed=1)
    return counts, log


def failed_tests(log: str) -> list[str]:
    """Return what the failed tests of a Rust test run printed: other tests may stand behind it in the log."""
    return re.findall(r"^---- [^\n]+ stdout ----$.*?(?=^---- |^failures:$)", log, re.MULTILINE | re.DOTALL)


def report(name: str, log: str) -> None:
    """Print what a failed step's failed tests said, or where it names none, the end of its log."""
    lines = "".join(failed_tests(log)).splitlines() or log.splitlines()[-LOG_LINES_MAX:]
    print(f"\n--- {name} " + "-" * max(0, 90 - len(name)))
    print(f"(the whole log: {LOGS / name}.log)")
    print("\n".join(lines[-LOG_LINES_MAX:]))


def main(arguments: Sequence[str]) -> int:
    """Run the steps that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="STEP", help="run these steps only")
    parser.add_argument("--list", action="store_true", help="name the steps")
    options = parser.parse_args(arguments)

    wanted = steps()
    if options.list:
        print("\n".join(step.name for step in wanted))
        return 0
    if options.only:
        unknown = set(options.only) - {step.name for step in wanted}
        if unknown:
            parser.error(f"unknown steps: {' '.join(sorted(unknown))}; --list names them")
        wanted = [step for step in wanted if step.name in options.only]

    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / "pytest.xml").unlink(missing_ok=True)
    total = Counts()
    failures = []
    for step in wanted:
        start = time.monotonic()
        print(f"{step.name:<20}", end="", flush=True)
        counts, log = run(step)
        total += counts
        verdict = "FAILED" if counts.failed else "ok" if counts.passed else "skipped"
        detail = f"  {counts}" if step.count else ""
        print(f"{verdict:<8}{time.monotonic() - start:6.1f} s{detail}", flush=True)
        if counts.failed:
            failures.append((step.name, log))
        elif counts.skipped:
            print("\n".join(f"    {line}" for line in log.splitlines() if is_skip(line)))
    for name, log in failures:
        report(name, log)
    print(f"\n{total}", flush=True)
    return 1 if total.failed else 0


def is_skip(line: str) -> bool:
    """Return whether a line of a log says that a test was skipped, and why."""
    return line.startswith("SKIPPED") or bool(re.match(r"^test .* \.\.\. ignored", line))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
