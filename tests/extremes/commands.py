"""Plays `plan`, `scenario check`, `compare` and sweeps with keys at their extremes, and judges how each ends.

The scenarios and keys are those of `extremes.py`. A command ends with a result, with a refusal that names a
key, or with a stated reason, within its processor time and memory. A sweep has all extremes of one key.

    python tests/extremes/commands.py --fanin target/debug/fanin                  every key with every command
    python tests/extremes/commands.py --fanin target/debug/fanin --cases 200 --seed 7
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extremes import (
    BASES,
    CPU_SECONDS,
    DONE,
    LOST,
    STOPPED,
    Case,
    Verdict,
    bases,
    companions,
    judge_end,
    keys,
    limits,
    may_stall,
    report,
    schema,
    singles,
    watched,
)

COMMANDS = ("plan", "check", "compare", "sweep")
# Each kind of technique: none, of hosts, of receivers, of switches, of the application, and schedules.
TECHNIQUES = (
    "none,deep-buffers",
    "static,dctcp",
    "diatcp,ictcp",
    "m21tcp,red-drop",
    "credits,paced-credits",
    "sird,swift",
    "pause,daqring",
    "fastpass,barrel-shifter",
)
Table = list[tuple[str, tuple[str, ...]]]


@dataclass(frozen=True)
class Job:
    """A command, the system that it gets, and the values of a sweep."""

    command: str
    case: Case
    techniques: str = ""
    values: tuple[str, ...] = ()

    def words(self, fanin: str, out: Path) -> list[str]:
        """Return the command line. Its result goes to a file in the folder."""
        preset, settings = BASES[self.case.base]
        merged = settings | dict(self.case.sets)
        sets = [f"--set={key}={value}" for key, value in merged.items()]
        result = f"--json={out / 'result.json'}"
        match self.command:
            case "plan":
                return [fanin, "plan", preset, *sets, "--cost", result]
            case "check":
                return [fanin, "scenario", "check", preset, *sets]
            case "compare":
                times = ["--duration=20 ms", "--warmup=5 ms", f"--techniques={self.techniques}"]
                return [fanin, "compare", preset, *sets, *times, "--threads=1", result]
            case _:
                sweep = f"--sweep={self.case.keys[0]}={','.join(self.values)}"
                return [fanin, "sim", preset, *sets, sweep, "--threads=1", result]


def every(table: Table) -> list[Job]:
    """Return each key at each extreme with each command, and a sweep over its extremes."""
    jobs = []
    # The keys of each base meet the techniques in turn.
    compared: Counter[str] = Counter()
    for case in singles(table):
        jobs += [Job(command, case) for command in ("plan", "check")]
        jobs.append(Job("compare", case, TECHNIQUES[compared[case.base] % len(TECHNIQUES)]))
        compared[case.base] += 1
    for key, values in table:
        # A comma and dots have a meaning in a sweep.
        plain = tuple(dict.fromkeys(value for value in values if value and not set(value) & set(',[{"')))
        if len(plain) > 1:
            needs = tuple((name, value) for name, value in companions(key).items() if name != key)
            jobs += [Job("sweep", Case(base, needs, (key,)), values=plain) for base in bases(key)]
    return jobs


def play(job: Job, fanin: str) -> Verdict:
    """Run a job, interrupt it after its processor time, and judge its end."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            job.words(fanin, Path(folder)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            preexec_fn=limits,
            env=os.environ | {"RUST_BACKTRACE": "0"},
        )
        said, watch = watched(process, CPU_SECONDS)
        file = Path(folder) / "result.json"
        result = json.loads(file.read_text()) if file.exists() else None
        return watch.verdict(judge(job, process.returncode, result, said))


def judge(job: Job, code: int, result: dict[str, Any] | None, said: str) -> Verdict:
    """Return the verdict on an exit code, the result that was written, and all output."""
    # A sweep gives its key, with each of the values, by `--sweep`.
    swept = ((key, value) for key in job.case.keys for value in job.values)
    case = Case(job.case.base, (*job.case.sets, *swept), job.case.keys)
    if verdict := judge_end(case, code, said):
        return verdict
    if code == STOPPED:
        if job.command in ("plan", "check"):
            return Verdict("hang", "arithmetic takes longer than the processor time")
        return Verdict("stopped") if "stopped" in said else Verdict("silence", f"stopped: {said[:300]}")
    if code == LOST and job.command in ("compare", "sweep"):
        if "error:" not in said:
            return Verdict("silence", "exit 1 without a reason")
        return Verdict("lost") if may_stall(case) else Verdict("stall", said[said.find("error:") :][:300])
    if code != DONE:
        return Verdict("exit", f"exit {code}: {said.strip()[:300]}")
    if job.command == "check":
        return Verdict("result") if said.strip() else Verdict("silence", "exit 0 without a word")
    if result is None:
        return Verdict("silence", "exit 0 without a result")
    if job.command == "sweep" and len(result.get("points", [])) != len(job.values):
        return Verdict("silence", f"{len(result.get('points', []))} points of {len(job.values)}, and exit 0")
    return Verdict("result")


def main() -> int:
    """Play what the arguments ask for; exit code 1 where there is a fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fanin", required=True, help="the command to test")
    parser.add_argument("--command", choices=COMMANDS, help="this command only")
    parser.add_argument("--seed", type=int, default=1, help="seed of the choice of cases")
    parser.add_argument("--cases", type=int, help="play that many random cases only")
    parser.add_argument("--only", default="", help="keys that contain this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    # Commands run in folders of their own.
    fanin = str(Path(options.fanin).resolve())
    table = [(key, values) for key, values in keys(schema(fanin)) if options.only in key]
    jobs = [job for job in every(table) if options.command in (None, job.command)]
    if options.cases is not None:
        jobs = random.Random(options.seed).sample(jobs, min(options.cases, len(jobs)))

    def shown(job: Job) -> str:
        return " ".join(f"'{word}'" for word in job.words("fanin", Path()))

    with ThreadPoolExecutor(options.jobs) as pool:
        verdicts = pool.map(lambda job: play(job, fanin), jobs)
        return report(zip(map(shown, jobs), verdicts, strict=True))


if __name__ == "__main__":
    sys.exit(main())
