"""Executes the notebooks of docs/notebooks and writes their outputs, pages and pictures.

A notebook reads `FANIN_QUICK`: where it is set, simulations are short. The texts that each cell prints then
are kept in quick.json. `--check` runs the notebooks so, compares their texts, and writes nothing.
"""

import argparse
import base64
import difflib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbclient
import nbformat

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "notebooks"
#: What the cells of each notebook print in a short run.
QUICK = "quick.json"
CELL_SECONDS_MAX = 300
_REMEDY = "run scripts/notebooks.py, then read the sentences around the outputs"


def execute(path: Path, is_quick: bool) -> Any:
    """Return the notebook with the outputs of a run in a fresh kernel."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    os.environ.pop("FANIN_QUICK", None)
    if is_quick:
        os.environ["FANIN_QUICK"] = "1"
    nbclient.NotebookClient(
        notebook,
        timeout=CELL_SECONDS_MAX,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    for cell in notebook.cells:
        # Times of the run, which differ each time.
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("language_info", None)
    return notebook


def export(notebook: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """Return the page of an executed notebook, and its pictures by name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                picture = f"{name}-{len(pictures) + 1}.png"
                pictures[picture] = base64.b64decode(data["image/png"])
                parts.append(f"![What the cell above draws]({picture})")
            elif text := _text(output):
                parts.append(f"```text\n{text.rstrip()}\n```")
    parts.append(f"The notebook: [{name}.ipynb]({name}.ipynb).")
    return "\n\n".join(parts) + "\n", pictures


def _text(output: Any) -> str:
    """Return what an output prints; nothing for a picture, whose text is the address of an object."""
    data = output.get("data", {})
    return "" if "image/png" in data else str(output.get("text") or data.get("text/plain", ""))


def texts(notebook: Any) -> list[str]:
    """Return what each cell of code prints."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(map(_text, cell.outputs)).rstrip() for cell in cells]


def differences(kept: Sequence[str], now: Sequence[str]) -> list[str]:
    """Return the lines in which the texts of cells differ, each with the number of its cell."""
    if len(kept) != len(now):
        return [f"{len(kept)} cells are stored, and {len(now)} ran"]
    lines: list[str] = []
    for number, (before, after) in enumerate(zip(kept, now, strict=True), 1):
        compared = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        lines += [f"cell {number}: {line}" for line in list(compared)[2:] if not line.startswith("@@")]
    return lines


def write(path: Path) -> list[str]:
    """Execute a notebook, write outputs, page and pictures, and return the texts of a short run."""
    notebook = execute(path, is_quick=False)
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
    page, pictures = export(notebook, path.stem)
    path.with_suffix(".md").write_text(page)
    for name, picture in pictures.items():
        (path.parent / name).write_bytes(picture)
    return texts(execute(path, is_quick=True))


def check(path: Path, kept: Sequence[str]) -> None:
    """Raise `ValueError` where the page or the texts of a short run are not those that are stored."""
    stored = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    if export(stored, path.stem)[0] != path.with_suffix(".md").read_text():
        raise ValueError(f"{path.stem}.md is not the page of its notebook: {_REMEDY}")
    if changed := differences(kept, texts(execute(path, is_quick=True))):
        raise ValueError("\n".join([f"the outputs have changed: {_REMEDY}", *changed]))


def main(arguments: Sequence[str]) -> int:
    """Write or check the notebooks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these notebooks")
    parser.add_argument("--check", action="store_true", help="run them shortly, and write nothing")
    options = parser.parse_args(arguments)
    record = FOLDER / QUICK
    kept: dict[str, list[str]] = json.loads(record.read_text()) if record.is_file() else {}
    every = sorted(FOLDER.glob("*.ipynb"))
    paths = [path for path in every if not options.names or path.stem in options.names]
    if unknown := set(options.names) - {path.stem for path in paths}:
        parser.error(f"there is no notebook {', '.join(sorted(unknown))}")
    failed = 0
    for path in paths:
        try:
            if options.check:
                check(path, kept.get(path.stem, []))
            else:
                kept[path.stem] = write(path)
        except (nbclient.exceptions.CellExecutionError, OSError, ValueError) as error:
            failed += 1
            print(f"{path.name}: {error}")
    if not options.check:
        known = {path.stem: kept[path.stem] for path in every if path.stem in kept}
        record.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
    print(f"\n{len(paths) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
