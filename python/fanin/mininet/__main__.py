"""Writes a Mininet topology script as a scenario: `python -m fanin.mininet FILE.py [TOPOLOGY]`.

The script is executed. Hosts that are not named as collectors are readouts.
"""

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from fanin.mininet import import_script
from fanin.scenario import Scenario

_WRONG = 2


def _names(text: str) -> list[str]:
    return text.split(",")


def main(arguments: Sequence[str]) -> int:
    """Print the scenario; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fanin.mininet", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE.py", help="the script, which is executed")
    parser.add_argument(
        "topology",
        nargs="?",
        default="",
        metavar="TOPOLOGY",
        help="a key of its `topos` or a class, with arguments as mn takes them: NAME,3,bw=10",
    )
    parser.add_argument(
        "--collector", type=_names, default=[], metavar="HOST,...", help="hosts that collect; * ends a name"
    )
    parser.add_argument(
        "--switch", type=_names, default=[], metavar="NODE,...", help="hosts that forward, such as routers"
    )
    parser.add_argument("--extends", metavar="SCENARIO", help="the scenario that the result extends")
    options = parser.parse_args(arguments)
    try:
        text = import_script(
            options.file,
            options.topology,
            collectors=options.collector,
            switches=options.switch,
            extends=options.extends,
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Scenario.load_text(options.file.stem, text)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _WRONG
    print(text, end="")
    count = sum(line.startswith("# - ") for line in text.splitlines())
    if count:
        print(
            f"note: {count} keys of {options.file} were not taken; the end of the scenario names them",
            file=sys.stderr,
        )
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
