"""The check of the notebooks notices outputs that changed, and one command writes them again."""

from pathlib import Path

import nbformat
import notebooks
import pytest


def test_texts_are_compared_cell_by_cell() -> None:
    kept = ["always loses frames", "", "2 frames\n3 ms"]
    assert notebooks.differences(kept, kept) == []
    now = ["is likely to lose frames", "", "2 frames\n4 ms"]
    assert notebooks.differences(kept, now) == [
        "cell 1: -always loses frames",
        "cell 1: +is likely to lose frames",
        "cell 3: -3 ms",
        "cell 3: +4 ms",
    ]
    assert notebooks.differences(kept, kept[:2]) == ["3 cells are stored, and 2 ran"]


def test_a_stale_output_fails_the_check_until_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path)
    monkeypatch.setenv("FANIN_QUICK", "")
    number = tmp_path / "number"
    number.write_text("7")
    code = "import os\nprint('short' if 'FANIN_QUICK' in os.environ else 'long', open('number').read())"
    new = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])  # type: ignore[no-untyped-call]
    nbformat.write(new, tmp_path / "one.ipynb")  # type: ignore[no-untyped-call]
    assert notebooks.main([]) == 0
    assert "long 7" in (tmp_path / "one.md").read_text()
    assert notebooks.main(["--check"]) == 0
    number.write_text("8")
    capsys.readouterr()
    assert notebooks.main(["--check", "one"]) == 1
    said = capsys.readouterr().out
    assert "run scripts/notebooks.py" in said
    assert "cell 1: -short 7\ncell 1: +short 8" in said
    assert notebooks.main(["one"]) == 0
    assert "long 8" in (tmp_path / "one.md").read_text()
    assert notebooks.main(["--check"]) == 0
