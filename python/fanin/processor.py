"""A processing unit in Python: a function that sees an event and decides.

>>> import fanin
>>> def select(event):
...     return any(fragment.size > 2_000 for fragment in event)
>>> fanin.processor(select)  # doctest: +SKIP

The collector starts such a program where the scenario says ``live.processor = ["python3", "choose.py"]``,
and gives it the path of its socket. Events lie in memory that this process can only read; fragments are views
of it, and nothing is copied. A view is void when the function has returned: what is to be kept has to be
copied.
"""

from __future__ import annotations

import array
import mmap
import os
import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

__all__ = ["Event", "Fragment", "ProtocolError", "VersionError", "collect", "processor"]

_MESSAGE = struct.Struct("<IIQQQ")
_ENTRY = struct.Struct("<IIIIQQ")
_HELLO, _MEMORY, _EVENT, _DECISION, _OTHER_VERSIONS = 1, 2, 3, 4, 5
# The lowest and the highest version of the messages after the greeting, and the greeting's layout.
_VERSIONS = (1, 1)
_LAYOUT = 2
_ANY_UNIT = 65_535
_MISSING = 0x24
_WHOLE = 1_000_000


class ProtocolError(RuntimeError):
    """The collector sent what makes no sense."""


class VersionError(ProtocolError):
    """The collector speaks no version of the messages that this package speaks."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """One source's fragment of an event; its bytes are valid during the call only."""

    source: int
    status: int
    checksum: int
    data: memoryview

    @property
    def size(self) -> int:
        """Bytes of the fragment, without headers."""
        return len(self.data)

    @property
    def is_missing(self) -> bool:
        """Return whether the fragment is missing."""
        return self.status == _MISSING

    @property
    def is_sound(self) -> bool:
        """Return whether the checksum matches the bytes that the readout sent."""
        return zlib.crc32(self.data) == self.checksum

    def array(self, dtype: Any = "u1") -> Any:
        """Return a numpy array on the bytes; what does not fill a whole element is left out."""
        numpy = import_module("numpy")
        kind = numpy.dtype(dtype)
        return numpy.frombuffer(self.data, dtype=kind, count=len(self.data) // kind.itemsize)


class Event:
    """An event as far as it was collected: a sequence of its fragments."""

    __slots__ = ("_count", "_memory", "_places", "l1_id", "step")

    def __init__(self, memory: memoryview, count: int, l1_id: int, step: int) -> None:
        """Lay an event over the memory that holds it."""
        self.l1_id = l1_id
        self.step = step
        self._memory = memory
        self._count = count
        self._places: dict[int, int] | None = None

    def __len__(self) -> int:
        """Return how many fragments were collected so far."""
        return self._count

    def __getitem__(self, place: int) -> Fragment:
        """Return a fragment by its place."""
        if not -self._count <= place < self._count:
            raise IndexError(f"fragment {place} of {self._count}")
        entry = _ENTRY.unpack_from(self._memory, place % self._count * _ENTRY.size)
        source, status, checksum, _, offset, size = entry
        return Fragment(source, status, checksum, self._memory[offset : offset + size])

    def __iter__(self) -> Iterator[Fragment]:
        """Go through all fragments, in the order in which they came."""
        return (self[place] for place in range(self._count))

    def __contains__(self, source: object) -> bool:
        """Return whether there is a fragment of a source."""
        return source in self._index()

    def fragment(self, source: int) -> Fragment:
        """Return the fragment of a source; `KeyError` where there is none."""
        return self[self._index()[source]]

    @property
    def size(self) -> int:
        """Bytes of all fragments."""
        return int(sum(fragment.size for fragment in self))

    def table(self) -> Any:
        """Return source, status, checksum, offset and size of all fragments, as one numpy array on them."""
        numpy = import_module("numpy")
        fields = [("source", "<u4"), ("status", "<u4"), ("checksum", "<u4"), ("zero", "<u4")]
        kind = numpy.dtype([*fields, ("offset", "<u8"), ("size", "<u8")])
        return numpy.frombuffer(self._memory, dtype=kind, count=self._count)

    def _index(self) -> dict[int, int]:
        if self._places is None:
            entries = (_ENTRY.unpack_from(self._memory, n * _ENTRY.size) for n in range(self._count))
            self._places = {entry[0]: place for place, entry in enumerate(entries)}
        return self._places


@dataclass(frozen=True, slots=True)
class _Collect:
    code: int
    share: int


def collect(*, readouts: float | None = None, fragments: float | None = None) -> _Collect:
    """Ask for more before deciding: all the rest, or a share of the readouts or of each one's fragments."""
    for code, share in ((3, readouts), (4, fragments)):
        if share is not None:
            if not 0 <= share <= 1:
                raise ValueError(f"a share is between 0 and 1, not {share}")
            return _Collect(code, round(share * _WHOLE))
    return _Collect(2, 0)


def _receive(connection: socket.socket) -> tuple[tuple[int, ...], int | None] | None:
    space = socket.CMSG_SPACE(array.array("i").itemsize)
    data, control, _, _ = connection.recvmsg(_MESSAGE.size, space, socket.MSG_CMSG_CLOEXEC)
    descriptor = None
    for level, kind, content in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptor = array.array("i", content[:4])[0]
    if not data:
        return None
    while len(data) < _MESSAGE.size:
        more = connection.recv(_MESSAGE.size - len(data))
        if not more:
            raise ProtocolError("the collector's message was cut off")
        data += more
    return _MESSAGE.unpack(data), descriptor


def _greet(connection: socket.socket, unit: int) -> None:
    """Send a greeting, and check the collector's answer."""
    ours, (lowest, highest) = _VERSIONS[0] | _VERSIONS[1] << 16, _VERSIONS
    connection.sendall(_MESSAGE.pack(_HELLO, _LAYOUT, ours, unit, os.getpid()))
    received = _receive(connection)
    if received is None:
        raise ProtocolError(
            "the collector refused this unit: it expects no unit with this number, or is stopping"
        )
    kind, layout, versions, _, _ = received[0]
    if kind not in (_HELLO, _OTHER_VERSIONS) or layout != _LAYOUT:
        raise ProtocolError(
            f"the collector sent a message of kind {kind} and layout {layout}, not a greeting"
        )
    theirs = (versions & 0xFFFF, versions >> 16)
    if min(highest, theirs[1]) < max(lowest, theirs[0]):
        older, needed = ("this package", theirs[0]) if highest < theirs[0] else ("the collector", lowest)
        raise VersionError(
            f"this package speaks versions {lowest} to {highest} of the messages, the collector "
            f"{theirs[0]} to {theirs[1]}; upgrade {older} to a release that speaks version {needed}"
        )
    if kind != _HELLO:
        raise ProtocolError("the collector refused a version that it speaks")


def processor(
    decide: Callable[[Event], bool | _Collect], *, path: str | None = None, unit: int | None = None
) -> None:
    """Serve a collector until it ends the connection: each event is accepted where `decide` is true of it.

    `path` is the collector's socket and `unit` the place to take; both are in the environment where the
    collector started this program. An exception in `decide` ends the program, and the event goes to the debug
    stream.
    """
    path = path or os.environ.get("FANIN_COLLECTOR")
    if path is None:
        raise ProtocolError(
            "no collector: give `path`, or let a collector start this program (live.processor)"
        )
    if unit is None:
        unit = int(os.environ.get("FANIN_UNIT", _ANY_UNIT))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        _greet(connection, unit)
        memory: memoryview | None = None
        while (received := _receive(connection)) is not None:
            (kind, small, l1_id, first, _), descriptor = received
            if kind == _MEMORY and descriptor is not None:
                # The old map goes when the last view of it does.
                memory = memoryview(mmap.mmap(descriptor, first, mmap.MAP_SHARED, mmap.PROT_READ))
                os.close(descriptor)
            elif kind == _EVENT and memory is not None:
                decision = decide(Event(memory, first, l1_id, small))
                if isinstance(decision, _Collect):
                    code, share = decision.code, decision.share
                else:
                    code, share = int(bool(decision)), 0
                connection.sendall(_MESSAGE.pack(_DECISION, code, l1_id, share, 0))
            else:
                raise ProtocolError(f"a message of kind {kind}")
