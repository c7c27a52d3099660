"""The examples of docs/python.md run as they stand, with a smaller rack and fewer points."""

import re
from pathlib import Path
from typing import Any

import pytest

import fanin

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"
#: What the page has, and what runs here in its place.
SMALLER = {
    '{"run.duration": "1 s"}': '{"readout.hosts": 8, "run.warmup": "10 ms", "run.duration": "150 ms"}',
    "seeds=range(5)": "seeds=range(2)",
    "trials=60": "trials=2",
    'of=["mean", "drops"]': 'of=["mean", "drops"], samples=2',
}


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    small = "\n".join(blocks)
    for old in SMALLER:
        assert old in small, f"the page has no {old}"
    names: dict[str, Any] = {}
    ran = 0
    for block in blocks:
        if "dask" in block or "submitit" in block:
            # Clusters have tests of their own.
            continue
        for old, new in SMALLER.items():
            block = block.replace(old, new)
        exec(compile(block, str(PAGE), "exec"), names)
        ran += 1
    assert ran == len(blocks) - 2
    assert isinstance(names["shallow"], fanin.Result)
    assert len(names["points"]) == 12
    assert len(names["found"].points) == 2
    assert names["table"]["key"] == ["shaping.credits", "tor.buffer", "transport.rto_min"] * 2
    assert names["drawn"].numbers
