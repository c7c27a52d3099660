"""Executes the notebooks of docs/notebooks and writes their outputs and pages; `--check` runs them shortly.

A notebook reads `FANIN_QUICK`: where it is set, simulations are short, and nothing is written.
"""

import argparse
import base64
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbclient
import nbformat

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "notebooks"
CELL_SECONDS_MAX = 300


def execute(path: Path) -> Any:
    """Return the notebook with the outputs of a run in a fresh kernel."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbclient.NotebookClient(
        notebook,
        timeout=CELL_SECONDS_MAX,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
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
            elif text := output.get("text") or data.get("text/plain"):
                parts.append(f"```text\n{text.rstrip()}\n```")
    parts.append(f"The notebook: [{name}.ipynb]({name}.ipynb).")
    return "\n\n".join(parts) + "\n", pictures


def write(path: Path) -> None:
    """Execute a notebook, and write it with its outputs, its page and its pictures."""
    notebook = execute(path)
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
    page, pictures = export(notebook, path.stem)
    path.with_suffix(".md").write_text(page)
    for name, picture in pictures.items():
        (FOLDER / name).write_bytes(picture)


def main(arguments: Sequence[str]) -> int:
    """Write or check the notebooks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="run them shortly, and write nothing")
    options = parser.parse_args(arguments)
    if options.check:
        os.environ["FANIN_QUICK"] = "1"
    failed = 0
    paths = sorted(FOLDER.glob("*.ipynb"))
    for path in paths:
        try:
            if options.check:
                kept = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
                if export(kept, path.stem)[0] != path.with_suffix(".md").read_text():
                    raise ValueError(
                        f"{path.stem}.md is not the page of its notebook: run scripts/notebooks.py"
                    )
                execute(path)
            else:
                write(path)
        except (nbclient.exceptions.CellExecutionError, OSError, ValueError) as error:
            failed += 1
            print(f"{path.name}: {error}")
    print(f"\n{len(paths) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
