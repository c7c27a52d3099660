"""Arguments of another type than needed: errors that name the argument, its value, and what is right."""

import numbers
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fanin._seeds import is_whole

# Letters of a value in a message; the rest is cut.
_SHOWN_MAX = 60


def wrong(name: str, right: str, value: object) -> TypeError:
    """Return the error for an argument of another type."""
    shown = repr(value)
    if len(shown) > _SHOWN_MAX:
        shown = f"{shown[:_SHOWN_MAX]}…"
    return TypeError(f"`{name}` is {right}, not {shown}")


def checked_path(name: str, value: Any, right: str = "a path, as a text or a pathlib.Path") -> str:
    """Return a path as a text."""
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        if isinstance(path, str):
            return path
    raise wrong(name, right, value)


def out_folder(out: Any, prefix: str) -> Path:
    """Return the folder to write into: `out`, or a new temporary one."""
    folder = Path(tempfile.mkdtemp(prefix=prefix) if out is None else checked_path("out", out)).absolute()
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"`out` is a folder, and {folder} is a file")
    return folder


def check_text(name: str, value: Any, right: str) -> None:
    """Raise `TypeError` unless a value is a text."""
    if not isinstance(value, str):
        raise wrong(name, right, value)


def checked_texts(name: str, value: Any, right: str) -> list[str]:
    """Return a text, or a list of texts, as a list."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
        raise wrong(name, right, value)
    texts = list(value)
    for text in texts:
        check_text(name, text, right)
    return texts


def check_settings(name: str, value: Any) -> None:
    """Raise `TypeError` unless a value maps keys to settings."""
    right = 'a dictionary of settings by dotted keys, such as {"tor.buffer": "1 MB"}'
    if not isinstance(value, Mapping):
        raise wrong(name, right, value)
    for key in value:
        if not isinstance(key, str):
            raise wrong(f"a key of {name}", 'a text such as "tor.buffer"', key)


def check_ranges(name: str, value: Any) -> None:
    """Raise `TypeError` unless a value maps keys to ranges or lists."""
    if not isinstance(value, Mapping):
        raise wrong(name, 'a dictionary of ranges or lists, such as {"tor.buffer": "64 kB..4 MB"}', value)


def checked_whole(name: str, value: Any, least: int) -> int:
    """Return a whole number as an int; raise `ValueError` below the least."""
    if not is_whole(value):
        raise wrong(name, f"a whole number from {least} on", value)
    if value < least:
        raise ValueError(f"`{name}` is a whole number from {least} on, not {value}")
    return int(value)


def check_seconds(name: str, value: Any) -> None:
    """Raise `TypeError` or `ValueError` unless a value is a time above 0 in seconds."""
    right = "a number of seconds above 0"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise wrong(name, right, value)
    # A time that is no number is not above 0 either.
    if not float(value) > 0:
        raise ValueError(f"`{name}` is {right}, not {value}")


def check_type(name: str, value: Any, types: type | tuple[type, ...], right: str) -> None:
    """Raise `TypeError` unless a value is of a type."""
    if not isinstance(value, types):
        raise wrong(name, right, value)


def checked_list(name: str, value: Any, right: str) -> Sequence[Any]:
    """Return an iterable that is no text as a list."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise wrong(name, right, value)
    return list(value)
