"""Draws the papers' figures: `python -m fanin.figures [NAME]...`."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from fanin.figures import gallery
from fanin.figures.engine import Store, draw_all
from fanin.figures.spec import FULL, GALLERY
from fanin.figures.table import FIGURES, UNDRAWN, chosen

_INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Draw, list or check figures; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fanin.figures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a figure such as thesis-4.3, or a paper")
    parser.add_argument(
        "--out", type=Path, default=Path("out/figures"), help="folder of results and pictures"
    )
    parser.add_argument("--full", action="store_true", help="three seeds, three times as long")
    parser.add_argument(
        "--gallery", action="store_true", help="keep the pictures in docs/gallery, and write its page"
    )
    parser.add_argument(
        "--list", action="store_true", help="name all figures, and those that cannot be drawn"
    )
    parser.add_argument("--check", action="store_true", help="say what is out of date in the gallery")
    options = parser.parse_args(arguments)
    if options.list:
        for figure in FIGURES:
            print(f"{figure.name:16} {figure.shows}")
        for other in UNDRAWN:
            print(f"{other.name:16} not drawn: {other.reason}")
        return 0
    if (options.check or options.gallery) and not gallery.PAGE.is_file():
        parser.error("the gallery is part of a clone of the repository: run the package that lies there")
    if options.check:
        wrong = gallery.check()
        print("\n".join(wrong) or "the gallery is up to date")
        return 1 if wrong else 0
    if options.full and options.gallery:
        parser.error("the gallery shows figures of its own quality: leave out --full")
    try:
        figures = chosen(options.names)
    except ValueError as error:
        parser.error(str(error))
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"cannot write into {options.out}: {error.strerror}")
    quality = FULL if options.full else GALLERY
    store = Store(options.out / f"runs-{quality.name}", quality)
    try:
        drawn = draw_all(figures, store, options.out)
    except KeyboardInterrupt:
        print(f"stopped; the same command goes on with what {options.out} has", file=sys.stderr)
        return _INTERRUPTED
    for one in drawn:
        if one.failed:
            continue
        print(f"\n{one.figure.name}: {one.figure.shows}\n{one.caption}")
        if options.gallery:
            gallery.record(one.figure, one.paths[0], one.numbers, store.seconds)
    if options.gallery:
        gallery.write()
    failed = sum(bool(one.failed) for one in drawn)
    print(f"\n{len(drawn) - failed} drawn, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    # A reader that has enough, such as `head`, ends it without a word.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
