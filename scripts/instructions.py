"""Counts the instructions of small fixed simulations and compares them with those on record.

Counts do not depend on the machine's load. They may differ by 15 % from the record, so that code may be
rearranged. A hop may not take more than a fixed baseline allows, so that small steps do not add up.
Packet-hops may not differ, since they follow from the results alone. `--record WHY` makes the present
counts the record, and adds a row to its table of the trend.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
RECORD = ROOT / "crates" / "sim" / "examples" / "instructions.toml"
CASES = ("incast", "collapse", "rack")
# The largest difference from the record, in percent.
PERCENT_MAX = 15
# Instructions a packet-hop before the redesign (commit 74801fd), and the most in percent above them that the
# design grants to the plain path. The collapse has other rules of TCP since, so that only its record binds.
BASELINE = {"incast": 671, "rack": 598}
ABOVE_BASELINE_MAX = 15
RUN_SECONDS_MAX = 300


def compiler() -> str:
    """Return the version and host of the compiler: counts of others differ by some percent."""
    text = subprocess.run(("rustc", "-vV"), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    return f"{fields['release']} {fields['host']}"


def build() -> None:
    """Build in the release profile, whatever the environment says about it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("CARGO_PROFILE_")}
    own |= {"RUSTFLAGS": "", "CARGO_INCREMENTAL": "0"}
    command = ("cargo", "build", "--release", "--locked", "-p", "fanin-sim", "--example", "instructions")
    subprocess.run(command, cwd=ROOT, env=own, check=True)


def count(case: str) -> tuple[int, int]:
    """Run one case under valgrind; return its instructions and its packet-hops."""
    program = TARGET / "release" / "examples" / "instructions"
    command = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), case)
    # An environment of its own: its size moves the stack.
    log = subprocess.run(
        command,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    collected = re.search(r"Collected : (\d+)", log.stderr)
    hops = re.search(r"packet-hops: (\d+)", log.stderr)
    if log.returncode != 0 or not collected or not hops:
        sys.exit(f"valgrind counted nothing for {case}:\n{log.stderr}")
    return int(collected.group(1)), int(hops.group(1))


def written(compiler: str, counts: Mapping[str, tuple[int, int]], trend: Sequence[Mapping[str, Any]]) -> str:
    """Return the record's text."""
    lines = [
        "# Instructions of small fixed simulations, as callgrind counts them; written by",
        "# `python scripts/instructions.py --record WHY`. `make test` allows 15 % of difference.",
        f'compiler = "{compiler}"',
    ]
    for case, (instructions, hops) in counts.items():
        lines += ["", f"[{case}]", f"instructions = {instructions}", f"packet_hops = {hops}"]
    lines += ["", "# The trend, in million instructions."]
    for row in trend:
        # A string of TOML is quoted as one of JSON; so is a number.
        lines += ["", "[[trend]]", *(f"{key} = {json.dumps(value)}" for key, value in row.items())]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Count, and compare or record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", metavar="WHY", help="make the present counts the record, for this reason")
    options = parser.parse_args(arguments)

    present = compiler()
    build()
    counts = {case: count(case) for case in CASES}
    if options.record:
        trend = tomllib.loads(RECORD.read_text()).get("trend", [])
        millions = {case: round(instructions / 1e6, 1) for case, (instructions, _) in counts.items()}
        trend.append({"date": datetime.date.today().isoformat(), **millions, "why": options.record})
        RECORD.write_text(written(present, counts, trend))

    record = tomllib.loads(RECORD.read_text())
    if record["compiler"] != present:
        print(f"note: the record is of rustc {record['compiler']}, this is {present}")
    failed = 0
    for case, (instructions, hops) in counts.items():
        before = record[case]["instructions"]
        percent = 100 * (instructions - before) / before
        is_same = hops == record[case]["packet_hops"]
        a_hop = instructions / hops
        baseline = BASELINE.get(case, a_hop)
        above = 100 * (a_hop - baseline) / baseline
        is_granted = abs(percent) <= PERCENT_MAX and above <= ABOVE_BASELINE_MAX
        verdict = "ok" if is_granted and is_same else "FAILED"
        failed += verdict != "ok"
        limit = f", {above:+.1f} % of the baseline (at most {ABOVE_BASELINE_MAX})" if case in BASELINE else ""
        print(
            f"{case:<9} {verdict:<6} {instructions} instructions, {a_hop:.0f} a packet-hop, "
            f"{percent:+.2f} % of the record{limit}"
        )
        if not is_same:
            print(f"          results changed: {hops} packet-hops, {record[case]['packet_hops']} on record")
    if failed:
        print(
            f"More than {PERCENT_MAX} % from {RECORD.relative_to(ROOT)}, above the baseline, or other "
            "results. Find out why. "
            "Meant: record it anew with `.venv/bin/python scripts/instructions.py --record WHY`."
        )
    print(f"{len(counts) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
