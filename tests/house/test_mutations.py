"""The bugs that `scripts/mutations.py` plants can be planted: each bug's text is in its file, once."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mutations

ROOT = Path(__file__).resolve().parents[2]


def test_each_bug_can_be_planted() -> None:
    script = [sys.executable, str(ROOT / "scripts" / "mutations.py"), "--check"]
    run = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_bug_whose_text_has_changed_is_named() -> None:
    bug = mutations.BUGS[0]
    gone, often = replace(bug, old="no such text"), replace(bug, old="self")
    elsewhere = replace(bug, path="crates/message/src/nowhere.rs")
    lines = mutations.mismatches([bug, gone, often, elsewhere])
    assert [line.partition(":")[0] for line in lines] == [bug.name] * 3
    assert f"0 times in {bug.path}" in lines[0]


def test_each_planted_text_is_in_a_function() -> None:
    for path in {bug.path for bug in mutations.BUGS}:
        bugs = [bug for bug in mutations.BUGS if bug.path == path]
        text = mutations.planted((ROOT / path).read_text(), bugs)
        assert all(f'crate::planted("{bug.name}")' in text for bug in bugs)
