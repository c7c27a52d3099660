"""The command `fanin` as a process: what needs namespaces, or a search that the command makes."""

import html
import json
import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fanin import _fanin
from fanin._arguments import checked_list, checked_path, checked_texts, out_folder
from fanin._seeds import checked_seed, is_whole
from fanin.result import Result, RunWarning, load

__all__ = ["Advice", "AdviceLine", "advise", "run"]

_FAILED, _WRONG, _UNPRIVILEGED, _BOTTLENECK, _INTERRUPTED = 1, 2, 3, 4, 130
_PLACES = ("auto", "loopback", "namespaces")
_SEEDS_MAX = 1000
_PARTS = ("buffers", "laboratory", "ranges", "techniques", "gear")
# So long a command has to write what it measured after Ctrl-C.
_STOP_SECONDS = 60.0

#: A file or preset, or a name and its text.
Source = str | tuple[str, str]


@dataclass(frozen=True)
class AdviceLine:
    """One answer, found by simulations of its own."""

    #: `buffers`, `laboratory`, `ranges`, `techniques` or `gear`.
    part: str
    name: str
    #: The answer in words.
    answer: str
    #: What it needs, or what it is.
    about: str
    #: Whether it meets the constraints; None where nothing was simulated.
    meets: bool | None
    #: The search behind it, as in ``tune.json``.
    search: Mapping[str, Any] | None
    #: Where its simulations are, with `out`.
    folder: Path | None


@dataclass(frozen=True)
class Advice:
    """The answers of ``fanin advise``: buffers, settings, techniques and switches that do."""

    #: The constraints that each answer was judged by.
    subject: tuple[str, ...]
    lines: tuple[AdviceLine, ...]

    def part(self, name: str) -> tuple[AdviceLine, ...]:
        """Return the lines of a part: `buffers`, `laboratory`, `ranges`, `techniques` or `gear`."""
        _check("part", name, _PARTS)
        return tuple(line for line in self.lines if line.part == name)

    def __repr__(self) -> str:
        """Return the lines as text, in which a search is left out."""
        return f"<fanin.Advice, {', '.join(self.subject)}>\n{self}"

    def _repr_html_(self) -> str:
        """Return the lines as a table for a notebook."""
        marks = {True: "&#10003;", False: "&#10007;", None: ""}
        rows = [
            f"<tr><td>{marks[line.meets]}</td><td>{html.escape(line.name)}</td><td>{html.escape(line.answer)}</td></tr>"
            for line in self.lines
        ]
        caption = f"<caption>{html.escape(', '.join(self.subject))}</caption>"
        return f"<table>{caption}<tbody>{''.join(rows)}</tbody></table>"

    def __str__(self) -> str:
        """Return the lines as text."""
        width = max((len(line.name) for line in self.lines), default=0)
        return "\n".join(f"{line.name:<{width}}  {line.answer}" for line in self.lines)


def run(
    source: Source,
    sets: Sequence[str],
    seed: int | None,
    out: str | os.PathLike[str] | None,
    place: str,
    command: str | os.PathLike[str] | None,
) -> Result:
    """Do what `Scenario.run` says."""
    _check("place", place, _PLACES)
    seed = None if seed is None else checked_seed(seed)
    program = _find(command)
    folder = out_folder(out, "fanin-run-python-")
    options = ["--place", place, "--out", str(folder), *([] if seed is None else ["--seed", str(seed)])]
    code, _, text = _play(program, "run", source, sets, options)
    if code in (_FAILED, _BOTTLENECK) and (folder / "summary.json").is_file():
        warnings.warn(text, RunWarning, stacklevel=3)
    elif code != 0:
        _raise(code, text.replace("`--loopback` needs none", 'place="loopback" needs none'))
    return load(folder)


def advise(
    source: Source,
    sets: Sequence[str],
    subject: str | Sequence[str],
    only: str | Sequence[str],
    seeds: int,
    catalogue: str | os.PathLike[str] | None,
    measured: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None,
    command: str | os.PathLike[str] | None,
) -> Advice:
    """Do what `Scenario.advise` says."""
    parts = checked_texts("only", only, 'a part such as "buffers", or a list of them')
    for part in parts:
        _check("part", part, _PARTS)
    if not is_whole(seeds) or not 1 <= seeds <= _SEEDS_MAX:
        raise ValueError(f"`seeds` is their number, from 1 to {_SEEDS_MAX}, not {seeds!r}")
    right = "a folder, or a list of them"
    given = [measured] if isinstance(measured, str | os.PathLike) else measured
    folders = checked_list("measured", given, right)
    for folder in folders:
        checked_path("measured", folder, right)
        if not Path(folder).is_dir():
            raise FileNotFoundError(f"there is no folder {os.fspath(folder)} of a measured laboratory")
    constraints = checked_texts("subject", subject, 'a constraint such as "drops=0", or a list of them')
    # The command's own complaint would speak of its options.
    _fanin.TuningGoal("mean", False, constraints)
    program = _find(command)
    options = ["--json", "-", "--seeds", str(seeds)]
    for text in constraints:
        options += ["--subject", text]
    if parts:
        options += ["--only", ",".join(parts)]
    if catalogue is not None:
        options += ["--catalogue", checked_path("catalogue", catalogue)]
    for folder in folders:
        options += ["--measured", os.fspath(folder)]
    if out is not None:
        options += ["--out", checked_path("out", out)]
    code, answer, text = _play(program, "advise", source, sets, options)
    if code != 0:
        _raise(code, text)
    found = json.loads(answer)
    lines = [_line(part, line, out) for part in _PARTS for line in found.get(part, [])]
    return Advice(tuple(found["subject"]), tuple(lines))


def _line(part: str, line: Mapping[str, Any], out: str | os.PathLike[str] | None) -> AdviceLine:
    folder = line.get("folder")
    return AdviceLine(
        part=part,
        name=line["name"],
        answer=line["answer"],
        about=line.get("about", ""),
        meets=line.get("meets"),
        search=line.get("search"),
        folder=None if folder is None or out is None else Path(out) / folder,
    )


def _check(kind: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise ValueError(f"there is no {kind} `{given}`; choose from {', '.join(known)}")


def _find(command: str | os.PathLike[str] | None) -> str:
    """Return the path of the command."""
    wanted = checked_path("command", command) if command is not None else os.environ.get("FANIN_BIN", "fanin")
    found = shutil.which(wanted)
    if found is None:
        raise FileNotFoundError(
            f"the command `{wanted}` is not found: install it with `cargo install --path crates/cli`, "
            "or give its path as `command` or in FANIN_BIN"
        )
    return found


@contextmanager
def _file(source: Source) -> Iterator[str]:
    """Give the name of the scenario for the command; text goes into a file of its name."""
    if isinstance(source, str):
        yield source
        return
    name, text = source
    with tempfile.TemporaryDirectory(prefix="fanin-scenario-") as folder:
        path = Path(folder, f"{name}.toml")
        path.write_text(text)
        yield str(path)


def _play(
    program: str, verb: str, source: Source, sets: Sequence[str], options: Sequence[str]
) -> tuple[int, str, str]:
    """Run the command; return its exit code, what it printed, and its error in one text."""
    with _file(source) as name:
        arguments = [program, verb, name, "--quiet", *options]
        for setting in sets:
            arguments += ["--set", setting]
        # In a session of its own, Ctrl-C reaches it once: from here.
        with subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                printed, errors = process.communicate()
            except BaseException:
                process.send_signal(signal.SIGINT)
                try:
                    process.communicate(timeout=_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise
    return process.returncode, printed, errors.strip().removeprefix("error: ")


def _raise(code: int, text: str) -> None:
    """Raise what an exit code of the command stands for."""
    if code == _UNPRIVILEGED:
        raise PermissionError(text)
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    if code == _WRONG:
        raise ValueError(text)
    raise RuntimeError(text or f"the command `fanin` ended with code {code}")
