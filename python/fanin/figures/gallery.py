"""The page docs/gallery.md: every figure with its caption, from a record that the runs wrote.

The record, docs/gallery/figures.json, keeps each figure's numbers and a hash of all that decided them. So a
gallery that is out of date is noticed without a simulation.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from fanin.figures.spec import GALLERY, PAPERS, Figure, Run
from fanin.figures.table import FIGURES, UNDRAWN

__all__ = ["PAGE", "check", "read_record", "record", "render"]

_DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = _DOCS / "gallery.md"
FOLDER = _DOCS / "gallery"
RECORD = FOLDER / "figures.json"
_MISSING = "Not run for the gallery yet: `make figures ONLY={name}` draws it."
_INTRODUCTION = """# The papers' figures, from our own runs

Every result figure of the five papers, and one figure for each technique that Fanin has to compare with.
`make figures` draws them from simulations of this repository. Numbers under "We get" come from the runs. The
papers' values come from their texts, since their figures are pictures. Dotted lines mark values that a paper
states, and limits.

- `make figures` simulates what is not stored yet in `out/figures`, and draws SVG and PNG there. An
  interrupted run goes on where it was.
- `make figures ONLY=thesis-4.3` draws one; `ONLY="thesis icc15-7"` all of a paper, and one more.
- `make figures FULL=1` takes three seeds and three times the measured time.
- `make figures GALLERY=1` also writes this page. From Python:
  [`fanin.figures`](python.md#figures-of-the-papers).

Boxes have whiskers at the 1st and 99th percentile, as in the thesis. The last bin of a histogram counts all
times beyond the axis. The measured time is shorter than that
of [the claims](reproduced.md). All figures took {minutes:.0f} minutes of processor time. Settings that papers
leave open: [the papers](papers.md#how-the-claims-are-set-up).
"""


def read_record() -> dict[str, Any]:
    """Return the record by the names of figures; empty where there is none."""
    if not RECORD.is_file():
        return {}
    kept: dict[str, Any] = json.loads(RECORD.read_text())
    return kept


def record(figure: Figure, picture: Path, numbers: str, seconds: Callable[[Run], float]) -> None:
    """Keep a figure that was drawn at the gallery's quality: its picture, its numbers and its cost."""
    runs = figure.runs(GALLERY)
    # A run that an earlier figure shows too is counted there.
    earlier = {run for one in FIGURES[: FIGURES.index(figure)] for run in one.runs(GALLERY)}
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = FOLDER / picture.name
    shutil.copyfile(picture, kept)
    entries = read_record()
    entries[figure.name] = {
        "numbers": numbers,
        "digest": figure.digest(),
        "picture": hashlib.sha256(kept.read_bytes()).hexdigest()[:16],
        "runs": len(runs),
        "seconds": round(sum(map(seconds, runs)), 1),
        "own_seconds": round(sum(seconds(run) for run in runs if run not in earlier), 1),
    }
    order = [one.name for one in FIGURES]
    known = {name: entries[name] for name in order if name in entries}
    RECORD.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")


def render(entries: Mapping[str, Any]) -> str:
    """Return the page."""
    minutes = sum(entry["own_seconds"] for entry in entries.values()) / 60
    parts = [_INTRODUCTION.format(minutes=minutes)]
    for paper, title in PAPERS.items():
        parts.append(f"## {title}\n")
        figures = [figure for figure in FIGURES if figure.paper == paper and figure.name in entries]
        for figure in figures:
            parts.append(
                f"### {heading(paper)} {figure.number}: {figure.shows}\n\n"
                f"![{figure.shows}](gallery/{figure.name}.svg)\n\n"
                f"- **The paper states** ({figure.place}): {figure.stated}\n"
                f"- **We get:** {entries[figure.name]['numbers']}\n"
                f"- **Why:** {figure.why}\n"
            )
        missing = [one for one in FIGURES if one.paper == paper and one.name not in entries]
        rows = [(one.number, one.shows, _MISSING.format(name=one.name)) for one in missing]
        rows += [(one.number, one.shows, one.reason) for one in UNDRAWN if one.paper == paper]
        if rows:
            parts.append(f"### {heading(paper)}, not drawn\n\n| figure | shows | why not |\n|---|---|---|")
            parts += [f"| {number} | {shows} | {reason} |" for number, shows, reason in rows]
            parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def heading(paper: str) -> str:
    """Return how a figure's heading names its paper."""
    return {
        "thesis": "Thesis",
        "icc15": "ICC'15",
        "lcn15": "LCN'15",
        "multihost": "Multi-host",
        "m21tcp": "M21TCP",
        "technique": "Technique",
    }[paper]


def write() -> None:
    """Write the page from the record."""
    PAGE.write_text(render(read_record()))


def check(figures: Iterable[Figure] = FIGURES) -> list[str]:
    """Return what is out of date: missing and changed figures, and the page. Nothing is simulated."""
    entries = read_record()
    wrong = []
    for figure in figures:
        entry = entries.get(figure.name)
        picture = FOLDER / f"{figure.name}.svg"
        if entry is None or not picture.is_file():
            wrong.append(f"{figure.name}: not in the gallery")
        elif entry["digest"] != figure.digest():
            wrong.append(f"{figure.name}: its runs or its caption have changed")
        elif entry["picture"] != hashlib.sha256(picture.read_bytes()).hexdigest()[:16]:
            wrong.append(f"{figure.name}: its picture is not the one that was drawn")
    names = {figure.name for figure in FIGURES}
    wrong += [f"{name}: no such figure" for name in entries if name not in names]
    wrong += [f"{path.name}: no such figure" for path in FOLDER.glob("*.svg") if path.stem not in names]
    if not PAGE.is_file() or PAGE.read_text() != render(entries):
        wrong.append("gallery.md: not the page of its record")
    return wrong
