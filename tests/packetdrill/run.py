#!/usr/bin/env python3
"""Plays packetdrill's scripts against `fanin-tcp` in simulated time, and against this machine's kernel.

    tests/packetdrill/run.py --scripts DIR --profile linux-6
    tests/packetdrill/run.py --scripts DIR --kernel PACKETDRILL

`docs/packetdrill.md` says where to get scripts and how to build packetdrill. A script passes, fails with the
line and the difference, or is not supported, with the reason. Exit code 1 if `known.py` names no reason for a
script that fails or is not supported, or if fewer scripts pass than `--least-pass` says.
"""

import argparse
import collections
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from calls import DifferenceError
from known import KNOWN, known_reason, lacking
from player import Player
from script import ScriptError, UnsupportedError
from sysctls import COMMON

ROOT = Path(__file__).resolve().parents[2]

ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
# How packetdrill's own runner and the kernel's call it.
KERNEL_OPTIONS = [
    "--ip_version=ipv4",
    "--local_ip=192.168.0.1",
    "--gateway_ip=192.168.0.1",
    "--netmask_ip=255.255.0.0",
    "--remote_ip=192.0.2.1",
    "-D", "CODE=host_unreachable",
    "-D", "CMSG_LEVEL_IP=SOL_IP",
    "-D", "CMSG_TYPE_RECVERR=IP_RECVERR",
    "-D", "TFO_COOKIE=3021b9d889017eeb",
    "--send_omit_free",
]  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The verdict on one script."""

    verdict: str
    """`pass`, `fail` or `unsupported`."""
    detail: str = ""


def build() -> Path:
    """Build the endpoint that scripts are played against. Return its path."""
    command = ["cargo", "build", "--quiet", "--package", "fanin-tcp", "--example", "packetdrill"]
    subprocess.run(command, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "debug" / "examples" / "packetdrill"


def play(binary: Path, profile: str, text: str) -> Outcome:
    """Play one script against the model.

    A script's times and the ticks of the timers, 4 ms apart, have no fixed relation. What holds in one of
    four phases counts, as the best of some attempts does on the kernel.
    """
    outcome = Outcome("pass")
    for phase in range(4):
        try:
            Player(binary, profile, origin=phase * 1_000_000).play(text)
        except DifferenceError as difference:
            outcome = Outcome("fail", str(difference)) if phase == 0 else outcome
        except UnsupportedError as reason:
            return Outcome("unsupported", str(reason))
        except ScriptError as reason:
            return Outcome("fail", f"cannot be read: {reason}")
        else:
            return Outcome("pass")
    return outcome


@contextmanager
def namespace() -> Iterator[str]:
    """Make a network namespace in which every congestion control may be set."""
    name = f"packetdrill-{os.getpid()}"
    allowed = ALLOWED.read_text()
    ALLOWED.write_text(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text())
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-netns", name, "link", "set", "lo", "up"], check=True)
        common = [f"net.ipv4.{key}={value}" for key, value in COMMON.items()]
        subprocess.run(["ip", "netns", "exec", name, "sysctl", "-q", *common], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)
        ALLOWED.write_text(allowed)


def play_on_kernel(packetdrill: Path, path: Path, attempts: int) -> Outcome:
    """Play one script against the kernel.

    A busy machine misses a script's times: the best of some attempts counts.
    """
    outcome = Outcome("fail", "not run")
    for _ in range(attempts):
        with namespace() as name:
            command = ["ip", "netns", "exec", name, str(packetdrill.resolve()), *KERNEL_OPTIONS, path.name]
            try:
                done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, timeout=120)
            except subprocess.TimeoutExpired:
                outcome = Outcome("fail", "did not end within 120 s")
                continue
        lines = [line for line in done.stderr.split("\n") if line.startswith(path.name) or "Error:" in line]
        if done.returncode == 0:
            return Outcome("pass")
        outcome = Outcome("fail", lines[-1] if lines else f"exit status {done.returncode}")
    return outcome


def find(folder: Path, only: list[str]) -> list[Path]:
    """Return the scripts of a folder, or those that match one of the patterns."""
    found = [folder] if folder.is_file() else sorted(folder.rglob("*.pkt"))
    return [path for path in found if not only or any(path.match(pattern) for pattern in only)]


def by_folder(names: list[str]) -> str:
    """Return paths as text, with each folder once."""
    folders: dict[str, list[str]] = collections.defaultdict(list)
    for name in names:
        folder, _, script = name.rpartition("/")
        folders[folder].append(script.removesuffix(".pkt"))
    return "; ".join(
        f"`{folder}: {', '.join(scripts)}`" if folder else f"`{', '.join(scripts)}`"
        for folder, scripts in folders.items()
    )


def main() -> int:
    """Play the scripts, print the table and the count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--scripts", type=Path, required=True, help="a folder with scripts (*.pkt), or one script"
    )
    parser.add_argument("--profile", default="linux-6", help="the profile of fanin-tcp")
    parser.add_argument(
        "--kernel", type=Path, help="packetdrill: play the scripts against the kernel as well (as root)"
    )
    parser.add_argument("--attempts", type=int, default=3, help="attempts of a script on the kernel")
    parser.add_argument("--only", nargs="*", default=[], help="patterns of scripts, such as 'cubic/*'")
    parser.add_argument(
        "--least-pass", type=int, default=0, metavar="N", help="fail unless the model passes N scripts"
    )
    parser.add_argument(
        "--exceptions", action="store_true", help="list the scripts that do not pass by reason, in Markdown"
    )
    parser.add_argument(
        "--summary", action="store_true", help="print a table of counts by folder, in Markdown"
    )
    arguments = parser.parse_args()
    paths = find(arguments.scripts, arguments.only)
    if not paths:
        parser.error(f"no scripts in {arguments.scripts}")
    binary = build()
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    unknown: list[str] = []
    mended: list[str] = []
    exceptions: dict[str, list[str]] = collections.defaultdict(list)
    for path in paths:
        outcomes = {"model": play(binary, arguments.profile, path.read_text())}
        if arguments.kernel:
            outcomes["kernel"] = play_on_kernel(arguments.kernel, path, arguments.attempts)
        shown = path.name if path == arguments.scripts else str(path.relative_to(arguments.scripts))
        folder = shown.rsplit("/", 1)[0] if "/" in shown else "."
        if outcomes["model"].verdict == "fail":
            reason = known_reason(path.name, outcomes["model"].detail)
            unknown += [] if reason else [shown]
            exceptions[f"fails: {reason}"].append(shown)
            known = f"{outcomes['model'].detail}; known: {reason}" if reason else outcomes["model"].detail
            outcomes["model"] = Outcome("fail", known)
        elif outcomes["model"].verdict == "pass" and path.name in KNOWN:
            mended.append(shown)
        elif outcomes["model"].verdict == "unsupported":
            missing = lacking(outcomes["model"].detail)
            unknown += [] if missing else [shown]
            exceptions[missing or "no reason has a name"].append(shown)
        for side, outcome in outcomes.items():
            counts[folder][f"{side} {outcome.verdict}"] += 1
        if not (arguments.summary or arguments.exceptions):
            verdicts = "  ".join(f"{outcome.verdict:<11}" for outcome in outcomes.values())
            details = "; ".join(
                f"{side}: {outcome.detail}" for side, outcome in outcomes.items() if outcome.detail
            )
            print(f"{verdicts}  {shown}  {details}".rstrip(), flush=True)
    columns = ["model pass", "model fail", "model unsupported"]
    if arguments.kernel:
        columns += ["kernel pass", "kernel fail"]
    if arguments.summary:
        print(f"| folder | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
        for folder, count in sorted(counts.items()):
            print(f"| `{folder}` | {' | '.join(str(count[column]) for column in columns)} |")
    if arguments.exceptions:
        print("| why | scripts | which |\n|---|---:|---|")
        for why, names in sorted(exceptions.items(), key=lambda item: (-len(item[1]), item[0])):
            print(f"| {why} | {len(names)} | {by_folder(names)} |")
    total = sum(counts.values(), collections.Counter[str]())
    print(f"{len(paths)} scripts: " + ", ".join(f"{column} {total[column]}" for column in columns))
    if unknown:
        print(f"fail or are not supported without a known reason: {', '.join(unknown)}")
    if mended:
        print(f"pass, though known.py says that they fail: {', '.join(mended)}")
    too_few = total["model pass"] < arguments.least_pass
    if too_few:
        print(f"the model passes fewer than {arguments.least_pass} scripts")
    return 1 if unknown or too_few else 0


if __name__ == "__main__":
    sys.exit(main())
