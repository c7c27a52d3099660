"""Messages between Python and Rust, and between Python and those who misbehave."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fanin import message
from fanin.message import Connection, Message, Options, connect, serve

ROOT = Path(__file__).resolve().parent.parent.parent
QUICK = Options(greeting_max=0.3, heartbeat=0.02, silence_max=0.2, drain_max=1.0)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(bounded())


@pytest.fixture(scope="module")
def echo() -> Iterator[tuple[str, int]]:
    """Start the echo server written in Rust, and return where it is."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    build = ["cargo", "build", "--quiet", "--package", "fanin-message", "--example", "echo"]
    subprocess.run(build, cwd=ROOT, check=True)
    command = [str(target / "debug" / "examples" / "echo"), "rust"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            host, port = process.stdout.readline().strip().rsplit(":", 1)
            yield host, int(port)
        finally:
            process.kill()


@asynccontextmanager
async def echo_in_python(options: Options = QUICK, names: frozenset[str] = frozenset()) -> AsyncIterator[int]:
    async def answer(connection: Connection) -> None:
        async for received in connection:
            await connection.send(received.kind, received.stream, received.payload)

    server = await serve(answer, name="python", options=options, names=names)
    async with server:
        yield server.sockets[0].getsockname()[1]


def test_messages_of_all_sizes_come_back_from_rust(echo: tuple[str, int]) -> None:
    async def test() -> None:
        async with await connect(*echo, name="python", expects="rust") as connection:
            assert connection.name == "rust"
            bodies = [
                bytes(range(256)) * (size // 256) + bytes(size % 256)
                for size in (0, 1, 4097, 200_000, 3_000_000)
            ]
            for number, body in enumerate(bodies):
                await connection.send(7, number, body[:3], memoryview(body)[3:])
            for number, body in enumerate(bodies):
                assert await connection.receive() == Message(7, number, body)

    run(test)


def test_rust_checks_names_and_says_why(echo: tuple[str, int]) -> None:
    async def test() -> None:
        with pytest.raises(message.RefusedError, match='"other" is not accepted here'):
            await connect(*echo, name="python", expects="other")

    run(test)


def test_heartbeats_keep_a_quiet_connection_alive(echo: tuple[str, int]) -> None:
    async def test() -> None:
        options = Options(heartbeat=0.05, silence_max=0.0)
        async with await connect(*echo, name="quiet", options=options) as connection:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(connection.receive(), 1.3)
            assert connection.heartbeats_in >= 1

    run(test)


def test_python_serves_python() -> None:
    async def test() -> None:
        async with echo_in_python(names=frozenset({"friend"})) as port:
            async with await connect("127.0.0.1", port, name="friend", expects="python") as connection:
                await connection.send(1, 2, b"three")
                assert await connection.receive() == Message(1, 2, b"three")
                await asyncio.sleep(0.5)
                await connection.send(1, 3, b"after a silence")
                assert (await connection.receive() or Message(0, 0, b"")).stream == 3
            with pytest.raises(message.RefusedError, match="'stranger' is not accepted here, only friend"):
                await connect("127.0.0.1", port, name="stranger")

    run(test)


@pytest.mark.parametrize(
    ("sent", "error", "words"),
    [
        (b"\x01\0\0\0" * 2 + b"\0\0\0\x7f", message.OversizeError, "claims 2130706432 bytes"),
        (b"\x01\0\0\0" * 2 + b"\x05\0\0\0ab", message.TruncatedError, "after 2 of 5 bytes"),
        (b"\x01\0\0", message.TruncatedError, "3 bytes of a header"),
        (b"\xff\xff\xff\xff" + bytes(8), message.MessageError, "reserved type 0xffffffff"),
    ],
)
def test_bytes_that_make_no_sense_are_named(sent: bytes, error: type[Exception], words: str) -> None:
    async def test() -> None:
        async def misbehave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(message.HEADER.size + len(message.pack_hello("", "", 0)))
            hello = message.pack_hello("bad", "", 0)
            writer.write(message.HEADER.pack(message.HELLO, 0, len(hello)) + hello + sent)
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(misbehave, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            async with await connect("127.0.0.1", port, options=QUICK) as connection:
                with pytest.raises(error, match=words):
                    await connection.receive()

    run(test)


def test_silence_is_noticed() -> None:
    async def test() -> None:
        async def fall_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            hello = message.pack_hello("mute", "", 0.01)
            writer.write(message.HEADER.pack(message.HELLO, 0, len(hello)) + hello)
            await reader.read()
            writer.close()

        server = await asyncio.start_server(fall_silent, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            async with await connect("127.0.0.1", port, options=QUICK) as connection:
                with pytest.raises(message.SilentError, match=r"0\.2 s"):
                    await connection.receive()

    run(test)


def test_a_missing_greeting_is_named() -> None:
    async def test() -> None:
        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(message.GreetingError, match="no greeting within"):
                await connect("127.0.0.1", port, options=QUICK)

    run(test)


def test_sent_messages_are_checked() -> None:
    async def test() -> None:
        options = Options(heartbeat=0.0, by_kind={5: 10})
        async with (
            echo_in_python(options) as port,
            await connect("127.0.0.1", port, options=options) as connection,
        ):
            with pytest.raises(message.OversizeError, match="has 11 bytes; the limit is 10"):
                await connection.send(5, 0, bytes(11))
            with pytest.raises(ValueError, match="reserved"):
                await connection.send(message.HELLO, 0)

    run(test)


@pytest.mark.parametrize(
    "payload", [b"", b"FNIN", b"FNIN\x01\0\0\0\0\0\0\0\0\0", b"FNIN\x02\0\0\0\0\0\1\0\1\0\x05\0abc\0\0"]
)
def test_garbled_greetings_are_refused(payload: bytes) -> None:
    with pytest.raises(message.GreetingError):
        message.unpack_hello(payload)


def test_a_greeting_survives_the_wire() -> None:
    packed = message.pack_hello("ros-7", "", 0.25, (1, 3))
    assert packed == b"FNIN\x02\0\xfa\0\0\0\x01\0\x03\0\x05\0ros-7\0\0"
    assert message.unpack_hello(packed) == ("ros-7", "", 0.25, (1, 3))


def test_both_sides_use_the_highest_common_version(echo: tuple[str, int]) -> None:
    async def test() -> None:
        async with await connect(*echo, name="python", options=Options(versions=(1, 4))) as connection:
            assert connection.version == 1
        words = "this side speaks versions 2 to 4 .* upgrade 'the peer' to a release that speaks version 2"
        newer = Options(versions=(2, 4))
        with pytest.raises(message.RefusedError, match=words):
            await connect(*echo, name="python", options=newer)
        async with echo_in_python() as port:
            with pytest.raises(message.RefusedError, match=words):
                await connect("127.0.0.1", port, options=newer)

    run(test)
