"""A processor in Python, with a collector of the test's own on the other end of the socket."""

import array
import fcntl
import os
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fanin

# The function hides the module of the same name.
ProtocolError = sys.modules["fanin.processor"].ProtocolError

MESSAGE = struct.Struct("<IIQQQ")
ENTRY = struct.Struct("<IIIIQQ")
CAPACITY = 1 << 16
# Version 1 alone, in a greeting.
VERSION_1 = 1 | 1 << 16
# F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_FUTURE_WRITE (linux/fcntl.h).
SEALS = 0x1 | 0x2 | 0x4 | 0x10


def sealed_memory(content: bytes) -> int:
    descriptor = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, CAPACITY)
    os.pwrite(descriptor, content, 0)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
    return descriptor


def laid_out(fragments: list[tuple[int, int, bytes]]) -> bytes:
    table, data = b"", b""
    start = len(fragments) * ENTRY.size
    for source, status, content in fragments:
        table += ENTRY.pack(source, status, zlib.crc32(content), 0, start + len(data), len(content))
        data += content + bytes(-len(content) % 8)
    return table + data


class Collector:
    """Listens, hands over the memory, shows one event, and notes what is decided."""

    def __init__(self, path: Path, fragments: list[tuple[int, int, bytes]]) -> None:
        """Begin to listen."""
        self.decisions: list[tuple[int, ...]] = []
        self.hello: tuple[int, ...] = ()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._fragments = fragments
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            self.hello = MESSAGE.unpack(connection.recv(MESSAGE.size))
            connection.sendall(MESSAGE.pack(1, 2, VERSION_1, self.hello[3], 0))
            descriptor = sealed_memory(laid_out(self._fragments))
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
            connection.sendmsg([MESSAGE.pack(2, 0, 0, CAPACITY, 0)], rights)
            os.close(descriptor)
            connection.sendall(MESSAGE.pack(3, 0, 42, len(self._fragments), 0))
            answer = connection.recv(MESSAGE.size)
            if answer:
                self.decisions.append(MESSAGE.unpack(answer))
        self._listener.close()


FRAGMENTS = [(7, 0, b"\x01\x02\x03\x04\x05"), (0x30000007, 0, bytes(2_500)), (9, 0x24, b"")]


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[tuple[Collector, str]]:
    path = tmp_path / "collector.socket"
    one = Collector(path, FRAGMENTS)
    yield one, str(path)
    one.thread.join(10)


def decide(collector: tuple[Collector, str], function: Callable[[Any], Any]) -> tuple[int, ...]:
    server, path = collector
    fanin.processor(function, path=path, unit=3)
    server.thread.join(10)
    assert server.hello[:3] == (1, 2, VERSION_1)
    assert server.hello[3:] == (3, os.getpid())
    (decision,) = server.decisions
    assert (decision[0], decision[2]) == (4, 42)
    return decision


def test_a_function_sees_the_event_and_decides(collector: tuple[Collector, str]) -> None:
    seen: list[Any] = []

    def select(event: Any) -> bool:
        seen.append((event.l1_id, event.step, len(event), event.size, [f.size for f in event]))
        assert event.fragment(7).data == b"\x01\x02\x03\x04\x05"
        assert 9 in event
        assert 10 not in event
        assert all(fragment.is_sound for fragment in event)
        assert [fragment.is_missing for fragment in event] == [False, False, True]
        with pytest.raises(KeyError):
            event.fragment(10)
        with pytest.raises(IndexError):
            event[3]
        return bool(event[-2].size > 2_400)

    assert decide(collector, select)[1] == 1
    assert seen == [(42, 0, 3, 2_505, [5, 2_500, 0])]


def test_views_cannot_be_written(collector: tuple[Collector, str]) -> None:
    def select(event: Any) -> bool:
        with pytest.raises(TypeError, match="read-only"):
            event[0].data[0] = 1
        return False

    assert decide(collector, select)[1] == 0


def test_arrays_share_the_memory(collector: tuple[Collector, str]) -> None:
    numpy = pytest.importorskip("numpy")

    def select(event: Any) -> bool:
        words = event[1].array("<u4")
        assert len(words) == 625
        assert not words.flags.writeable
        assert not words.flags.owndata
        table = event.table()
        assert list(table["source"]) == [7, 0x30000007, 9]
        return bool(numpy.all(table["size"] == [5, 2_500, 0]))

    assert decide(collector, select)[1] == 1


@pytest.mark.parametrize(
    ("wish", "code", "share"),
    [({}, 2, 0), ({"readouts": 0.5}, 3, 500_000), ({"fragments": 1}, 4, 1_000_000)],
)
def test_more_can_be_asked_for(
    collector: tuple[Collector, str], wish: dict[str, float], code: int, share: int
) -> None:
    decision = decide(collector, lambda _: fanin.collect(**wish))
    assert (decision[1], decision[3]) == (code, share)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (MESSAGE.pack(5, 2, 2 | 3 << 16, 0, 0), "upgrade this package to a release that speaks version 2"),
        (MESSAGE.pack(1, 2, 2 | 2 << 16, 0, 0), "upgrade this package to a release that speaks version 2"),
        (MESSAGE.pack(5, 2, 0, 0, 0), "upgrade the collector to a release that speaks version 1"),
        (MESSAGE.pack(5, 2, VERSION_1, 0, 0), "refused a version that it speaks"),
        (MESSAGE.pack(3, 0, 0, 0, 0), "not a greeting"),
        (b"", "expects no unit with this number, or is stopping"),
    ],
)
def test_a_refusal_says_who_has_to_be_upgraded(tmp_path: Path, answer: bytes, words: str) -> None:
    path = tmp_path / "collector.socket"

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(MESSAGE.size)
            connection.sendall(answer)

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        with pytest.raises(ProtocolError, match=words):
            fanin.processor(lambda _: True, path=str(path), unit=0)
        thread.join(10)


def test_a_share_is_a_share() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        fanin.collect(readouts=1.5)


def test_without_a_collector_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FANIN_COLLECTOR", raising=False)
    with pytest.raises(ProtocolError, match=r"live\.processor"):
        fanin.processor(lambda _: True)


def test_a_real_system_takes_it(tmp_path: Path) -> None:
    binary = os.environ.get("FANIN_BIN")
    if binary is None:
        pytest.skip("FANIN_BIN names no fanin binary to run a system with")
    script = tmp_path / "choose.py"
    script.write_text(
        textwrap.dedent(
            """
            import fanin

            # One in two of the sample's slices, by what is in it.
            fanin.processor(lambda event: sum(fragment.data[0] for fragment in event) % 2 == 0)
            """
        )
    )
    scenario = tmp_path / "mine.toml"
    # The script lies in the folder of the scenario, and the command is run elsewhere.
    command = f'["{sys.executable}", "choose.py"]'
    scenario.write_text(
        'extends = "replay"\n[run]\nduration = "1 s"\nwarmup = "100 ms"\n[supervisor]\nrate = "40 Hz"\n'
        "[readout]\nhosts = 4\n[collectors]\nhosts_per_rack = 1\nunits_per_host = 2\n"
        f"[live]\nprocessor = {command}\n"
    )
    arguments = [binary, "run", str(scenario), "--loopback", "--out", str(tmp_path / "out")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "0 lost" in done.stdout
    assert "+ 0 in the debug stream" in done.stdout
