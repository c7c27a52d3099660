"""Seeds as arguments: one rule for every function that takes some."""

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

SEED_MAX = 2**63 - 1
# As many as `fanin sim --repeat` takes.
_SEEDS_MAX = 65_535


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number, also one of numpy."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def checked_seed(seed: Any) -> int:
    """Return a seed as an int; raise `ValueError` or `TypeError` where it is none."""
    if not is_whole(seed):
        raise TypeError(f"a seed is a whole number from 0 to {SEED_MAX}, not {seed!r}")
    if not 0 <= seed <= SEED_MAX:
        raise ValueError(f"a seed is a whole number from 0 to {SEED_MAX}, not {seed}")
    return int(seed)


def checked_seeds(seeds: Any, first: int, most: int = _SEEDS_MAX) -> list[int]:
    """Return seeds, each once: those of a list, or a number of them from `first` on."""
    if is_whole(seeds):
        if not 1 <= seeds <= most:
            raise ValueError(f"there are 1 to {most} seeds, not {seeds}")
        seeds = range(first, first + int(seeds))
    elif isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise TypeError(f"`seeds` is a list of seeds, or their number, not {seeds!r}")
    chosen = list(dict.fromkeys(map(checked_seed, seeds)))
    if not 1 <= len(chosen) <= most:
        raise ValueError(f"there are 1 to {most} seeds, not {len(chosen)}")
    return chosen


def sets_seed(settings: Mapping[str, object]) -> bool:
    """Return whether settings by dotted keys choose the seed."""
    section = settings.get("run")
    return "run.seed" in settings or (isinstance(section, Mapping) and "seed" in section)
