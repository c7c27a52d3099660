"""Checks wheels of the Python package: tags, contents, and what the library of a Mac needs from its system.

Usage: wheels.py WHEEL...

A wheel serves every Python from 3.11 on (`cp311-abi3`), and holds the typed package with its library. One for
macOS may need libraries of the system alone. What it expects from the process that loads it is Python's.
A Mac with an ARM processor loads nothing without a signature, so that its hashes are computed again.
"""

import hashlib
import struct
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LIBRARY = "fanin/_fanin.abi3.so"
NEEDED = (LIBRARY, "fanin/__init__.py", "fanin/_fanin.pyi", "fanin/py.typed")
SYSTEM = ("/usr/lib/", "/System/Library/")
# Functions of Python's stable interface, with the underscore of all names in C.
PYTHON = ("_Py", "__Py")

# From <mach-o/loader.h>, <mach/machine.h> and <mach-o/nlist.h>.
_MAGIC_64 = 0xFEEDFACF
_CPUS = {0x01000007: "x86_64", 0x0100000C: "arm64"}
_LOAD_COMMANDS = {0xC, 0x80000018, 0x8000001F}
_SYMBOL_TABLE = 0x2
_SIGNATURE = 0x1D
# From <kern/cs_blobs.h>: big-endian, unlike the rest.
_CODE_DIRECTORY = 0xFADE0C02
_SHA256 = 2
_TYPE_MASK, _UNDEFINED, _DEBUG_MASK = 0x0E, 0x0, 0xE0
# Zig leaves 0 where others write that a symbol is looked up in the whole process.
_LOOKED_UP = {0xFE, 0x0}


@dataclass(frozen=True)
class MachLibrary:
    """A library for macOS: its processor, the libraries that it loads, and names in none of them."""

    cpu: str
    libraries: tuple[str, ...]
    looked_up: tuple[str, ...]
    #: True if a signature has the right hash of each page.
    is_signed: bool


def read_mach(code: bytes) -> MachLibrary:
    """Read the load commands and the symbols of a 64-bit library; raise `ValueError` for anything else."""
    magic, cpu, _, _, commands = struct.unpack_from("<IIIII", code)
    if magic != _MAGIC_64 or cpu not in _CPUS:
        raise ValueError("it is no 64-bit Mach-O of a known processor")
    libraries: list[str] = []
    looked_up: list[str] = []
    is_signed = False
    at = 32
    for _ in range(commands):
        kind, size = struct.unpack_from("<II", code, at)
        if kind in _LOAD_COMMANDS:
            (name,) = struct.unpack_from("<I", code, at + 8)
            libraries.append(_text(code, at + name))
        if kind == _SYMBOL_TABLE:
            looked_up += _looked_up(code, *struct.unpack_from("<IIII", code, at + 8))
        if kind == _SIGNATURE:
            (start,) = struct.unpack_from("<I", code, at + 8)
            is_signed = _is_signed(code, start)
        at += size
    return MachLibrary(_CPUS[cpu], tuple(libraries), tuple(looked_up), is_signed)


def _is_signed(code: bytes, start: int) -> bool:
    """Compute the pages' hashes again, and compare them with those of a signature."""
    (blobs,) = struct.unpack_from(">I", code, start + 8)
    for blob in range(blobs):
        (offset,) = struct.unpack_from(">I", code, start + 16 + 8 * blob)
        at = start + offset
        magic, _, _, _, hashes, _, _, pages, limit = struct.unpack_from(">9I", code, at)
        if magic != _CODE_DIRECTORY:
            continue
        size, kind, _, shift = struct.unpack_from(">4B", code, at + 36)
        page = 1 << shift
        return kind == _SHA256 and all(
            hashlib.sha256(code[number * page : min((number + 1) * page, limit)]).digest()[:size]
            == code[at + hashes + number * size : at + hashes + (number + 1) * size]
            for number in range(pages)
        )
    return False


def _looked_up(code: bytes, symbols: int, count: int, strings: int, _size: int) -> Iterator[str]:
    """Go through the undefined symbols that are searched for in the whole process."""
    for place in range(count):
        name, kind, _, described, _ = struct.unpack_from("<IBBHQ", code, symbols + 16 * place)
        is_undefined = kind & _TYPE_MASK == _UNDEFINED and not kind & _DEBUG_MASK
        if is_undefined and described >> 8 in _LOOKED_UP:
            yield _text(code, strings + name)


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()


def faults_of_mach(code: bytes, platform: str) -> list[str]:
    """Return what is wrong with a library for macOS."""
    library = read_mach(code)
    faults = [f"needs {name}" for name in library.libraries if not name.startswith(SYSTEM)]
    faults += [f"expects {name} of its process" for name in library.looked_up if not name.startswith(PYTHON)]
    if not platform.endswith(library.cpu):
        faults.append(f"is for {library.cpu}")
    if library.cpu == "arm64" and not library.is_signed:
        faults.append("has no valid signature, so that no Mac loads it")
    return faults


def faults_of_wheel(path: Path) -> list[str]:
    """Return what is wrong with a wheel."""
    _, _, python, abi, platform = path.stem.split("-")
    faults = [] if (python, abi) == ("cp311", "abi3") else [f"is for {python}-{abi}, not cp311-abi3"]
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        faults += [f"lacks {name}" for name in NEEDED if name not in names]
        if not any(name.endswith("/licenses/LICENSE") for name in names):
            faults.append("lacks its licence")
        if platform.startswith("macosx") and LIBRARY in names:
            faults += [f"{LIBRARY} {fault}" for fault in faults_of_mach(wheel.read(LIBRARY), platform)]
    return faults


def main(arguments: Sequence[str]) -> int:
    """Check wheels, and print what each is or what is wrong with it."""
    is_wrong = False
    for path in map(Path, arguments):
        faults = faults_of_wheel(path)
        is_wrong |= bool(faults)
        print(f"{path}: {'; '.join(faults) or 'whole'}")
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
