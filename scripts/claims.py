"""Simulates all claims of the papers, and compares the table and its counts with docs/reproduced.md.

Fails on a claim that does not hold and has no known reason, and on a figure outside its known range. It also
fails on a page that differs from the results. `--record` writes the counts and the table into the page.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
PAGE = ROOT / "docs" / "reproduced.md"
RUN_SECONDS_MAX = 3000
ROW = re.compile(r"^\| (\w\d+) \(.*\| (\w[^|]*?) \|$", re.MULTILINE)
COUNTS = re.compile(r"(?<=<!-- generated: counts -->\n).*?(?=\n<!-- end -->)", re.DOTALL)


def simulate() -> str:
    """Build the command in the release profile, and return the table that it prints."""
    build = ("cargo", "build", "--release", "--locked", "--quiet", "--package", "fanin-cli")
    subprocess.run(build, cwd=ROOT, check=True)
    command = (str(TARGET / "release" / "fanin"), "reproduce", "--markdown", "--quiet")
    run = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=RUN_SECONDS_MAX, check=False
    )
    # 1 says that a claim fails; the table says which.
    if run.returncode not in (0, 1):
        sys.exit(f"fanin reproduce ended with {run.returncode}")
    return run.stdout


def counts(table: str) -> str:
    """Return the sentences that count the rows of the table by their status."""
    statuses = [row[2] for row in ROW.finditer(table)]
    hold = sum(status.startswith("holds") for status in statuses)
    explained = sum(status.startswith("explained") for status in statuses)
    failing = len(statuses) - hold - explained
    return (
        f"`fanin reproduce --markdown` prints {len(statuses)} rows: one seed, each with its own time.\n"
        f"{hold} hold, {explained} do not for a reason that is understood, and {failing} for no known reason."
    )


def main(arguments: Sequence[str]) -> int:
    """Simulate, judge, and compare or record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the table into the page")
    options = parser.parse_args(arguments)
    table = simulate()
    rows = table.splitlines()
    if options.record:
        text = PAGE.read_text()
        kept = [line for line in text.splitlines() if not line.startswith("|")]
        PAGE.write_text(COUNTS.sub(counts(table), "\n".join(kept)).rstrip() + "\n\n" + table)
    page = PAGE.read_text()
    known = set(page.splitlines())
    passed = failed = 0
    for row in rows:
        match = ROW.match(row)
        if not match:
            continue
        is_sound = match[2].startswith(("holds", "explained"))
        if not is_sound or row not in known:
            print(row if not is_sound else f"docs/reproduced.md does not have this row: {row}")
            failed += 1
        else:
            passed += 1
    if COUNTS.findall(page) != [counts(table)]:
        print("docs/reproduced.md counts other rows")
        failed += 1
    stale = [line for line in page.splitlines() if ROW.match(line) and line not in rows]
    if failed or stale:
        print("\n".join(f"docs/reproduced.md has a row that did not come out: {line}" for line in stale))
        print("Understood and meant: `.venv/bin/python scripts/claims.py --record` writes the page.")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or stale or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
