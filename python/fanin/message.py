"""Framed messages over TCP with asyncio, for scripts and monitors that take part in a live system.

The wire format is that of the Rust crate `fanin-message`. A frame has three little-endian 32-bit fields
(type, stream, size), then the payload. Greetings with names come first, heartbeats in between::

    async with await connect("127.0.0.1", port, name="monitor", expects="supervisor") as connection:
        await connection.send(100, 0, b"status?")
        async for message in connection:
            print(message.kind, message.stream, bytes(message.payload))
"""

import asyncio
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType

HEADER = struct.Struct("<III")
#: Types from here on belong to the protocol itself.
RESERVED_KINDS = 0xFFFF_FF00
HELLO, HEARTBEAT, REFUSAL, OTHER_VERSIONS = 0xFFFF_FF01, 0xFFFF_FF02, 0xFFFF_FF03, 0xFFFF_FF06
MAGIC, LAYOUT = b"FNIN", 2
VERSIONS = struct.Struct("<HH")
NAME_BYTES_MAX = 255
CONTROL_BYTES_MAX = 1024
#: Heartbeats of its own that a peer may miss before it counts as silent.
HEARTBEATS_MISSED_MAX = 3


class MessageError(Exception):
    """A connection that cannot go on."""


class OversizeError(MessageError):
    """A frame exceeds the limit of its type."""


class TruncatedError(MessageError):
    """The connection ended in the middle of a frame."""


class GreetingError(MessageError):
    """The greeting is missing, late, malformed, or names an unexpected peer."""


class VersionError(GreetingError):
    """The two sides speak no common version of the application's messages."""


class RefusedError(MessageError):
    """The peer refuses this side's greeting."""


class SilentError(MessageError):
    """Nothing was heard from the peer for too long."""


@dataclass(frozen=True)
class Message:
    """A message: its type, its stream, its bytes."""

    kind: int
    stream: int
    payload: bytes


@dataclass(frozen=True)
class Options:
    """Limits and times (in seconds) of a connection; the same, and with the same defaults, as in Rust."""

    message_bytes_max: int = 64 << 20
    #: Types with a limit of their own.
    by_kind: Mapping[int, int] = field(default_factory=dict)
    #: Bytes that may wait to be sent before `send` waits.
    outbox_bytes_max: int = 1 << 20
    greeting_max: float = 5.0
    #: A heartbeat is sent so often; 0 sends none.
    heartbeat: float = 1.0
    #: A peer that promised heartbeats is given up after so long without any; 0 waits for ever.
    silence_max: float = 5.0
    drain_max: float = 5.0
    #: Lowest and highest version of the application's messages that this side speaks.
    versions: tuple[int, int] = (1, 1)

    def size_max(self, kind: int) -> int:
        """Return how many bytes a message of this type may have."""
        if kind >= RESERVED_KINDS:
            return CONTROL_BYTES_MAX
        return self.by_kind.get(kind, self.message_bytes_max)


def pack_hello(name: str, expects: str, heartbeat: float, versions: tuple[int, int] = (1, 1)) -> bytes:
    """Return the payload of a greeting."""
    parts = [MAGIC, struct.pack("<HI", LAYOUT, round(heartbeat * 1000)), VERSIONS.pack(*versions)]
    for text in (name, expects):
        encoded = text.encode()
        if len(encoded) > NAME_BYTES_MAX:
            raise ValueError(f"the name {text!r} has more than {NAME_BYTES_MAX} bytes")
        parts += [struct.pack("<H", len(encoded)), encoded]
    return b"".join(parts)


def unpack_hello(payload: bytes) -> tuple[str, str, float, tuple[int, int]]:
    """Return name, expected name, heartbeat and versions of a greeting, or raise `GreetingError`."""
    if payload[:4] != MAGIC:
        raise GreetingError(f"it begins with {payload[:4]!r}, not with {MAGIC!r}")
    try:
        layout, heartbeat = struct.unpack_from("<HI", payload, 4)
        if layout != LAYOUT:
            side = "sent" if layout < LAYOUT else "received"
            raise GreetingError(
                f"a greeting of layout {layout} arrived where layout {LAYOUT} is needed; "
                f"upgrade the process that {side} it"
            )
        lowest, highest = VERSIONS.unpack_from(payload, 10)
        if lowest > highest:
            raise GreetingError(f"its versions are {lowest} to {highest}")
        names, at = [], 14
        for _ in range(2):
            (size,) = struct.unpack_from("<H", payload, at)
            encoded = payload[at + 2 : at + 2 + size]
            if len(encoded) != size or size > NAME_BYTES_MAX:
                raise GreetingError(f"a name of {size} bytes, where {len(encoded)} are left")
            names.append(encoded.decode())
            at += 2 + size
    except (struct.error, UnicodeDecodeError) as error:
        raise GreetingError(f"a greeting of {len(payload)} bytes is garbled: {error}") from None
    if at != len(payload):
        raise GreetingError(f"it has {len(payload)} bytes, its fields {at}")
    return names[0], names[1], heartbeat / 1000, (lowest, highest)


def common_version(ours: tuple[int, int], theirs: tuple[int, int]) -> int | None:
    """Return the highest version in both ranges; `None` if they have none in common."""
    highest = min(ours[1], theirs[1])
    return highest if highest >= max(ours[0], theirs[0]) else None


def _no_common_version(ours: tuple[int, int], peer: str, theirs: tuple[int, int]) -> str:
    older, needed = ("this side", theirs[0]) if ours[1] < theirs[0] else (repr(peer), ours[0])
    return (
        f"this side speaks versions {ours[0]} to {ours[1]} of the messages, "
        f"{peer!r} {theirs[0]} to {theirs[1]}; upgrade {older} to a release that speaks version {needed}"
    )


class Connection:
    """A connection whose greetings are done. Made by `connect` and `serve`."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str, options: Options
    ) -> None:
        """Take over a pair of streams; greetings are up to the caller."""
        self.name = name
        self.options = options
        #: The highest version of the application's messages that both sides speak.
        self.version = 0
        self._reader = reader
        self._writer = writer
        self._silence: float | None = None
        self._beat: asyncio.Task[None] | None = None
        self._heartbeats = 0
        writer.transport.set_write_buffer_limits(high=options.outbox_bytes_max)

    @property
    def peer(self) -> tuple[str, int]:
        """Return the address of the other side."""
        host, port, *_ = self._writer.get_extra_info("peername")
        return host, port

    @property
    def heartbeats_in(self) -> int:
        """Return how many heartbeats came so far."""
        return self._heartbeats

    async def send(self, kind: int, stream: int, *parts: bytes | memoryview) -> None:
        """Send a message whose payload is all `parts` together; wait while the send buffer is full.

        Raise `OversizeError` above the limit of its type, `ConnectionError` if no connection exists.
        """
        if not 0 <= kind < RESERVED_KINDS:
            raise ValueError(f"the type {kind:#x} is reserved for the protocol itself")
        size = sum(len(memoryview(part).cast("B")) for part in parts)
        if size > self.options.size_max(kind):
            limit = self.options.size_max(kind)
            raise OversizeError(f"a message of type {kind:#x} has {size} bytes; the limit is {limit}")
        self._writer.writelines([HEADER.pack(kind, stream, size), *parts])
        await self._writer.drain()

    async def receive(self) -> Message | None:
        """Return the next message, or `None` where the peer has closed the connection.

        Raise a `MessageError` or `ConnectionError` where the connection cannot go on. A call that is
        cancelled in the middle of a message leaves the connection useless.
        """
        while (message := await self._frame()) is not None:
            if message.kind < RESERVED_KINDS:
                return message
            if message.kind == HEARTBEAT:
                self._heartbeats += 1
            elif message.kind == REFUSAL:
                raise RefusedError(f"refused by the peer: {message.payload.decode(errors='replace')}")
            else:
                raise MessageError(f"message of the reserved type {message.kind:#x}")
        return None

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Iterate over the messages until the peer closes."""
        while (message := await self.receive()) is not None:
            yield message

    async def close(self) -> None:
        """Send what waits, and end the connection."""
        if self._beat is not None:
            self._beat.cancel()
        self._writer.close()
        # The other side may be gone already.
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), self.options.drain_max)

    async def __aenter__(self) -> "Connection":
        """Return itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self.close()

    async def _frame(self, *, greeting: bool = False) -> Message | None:
        try:
            header = await self._read(HEADER.size)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise TruncatedError(
                    f"the connection ended after {len(error.partial)} bytes of a header"
                ) from None
            return None
        kind, stream, size = HEADER.unpack(header)
        if greeting and kind not in (HELLO, REFUSAL, OTHER_VERSIONS):
            raise GreetingError(f"the first message has type {kind:#x}, not a greeting's {HELLO:#x}")
        limit = self.options.size_max(kind)
        if size > limit:
            raise OversizeError(f"a message of type {kind:#x} claims {size} bytes; the limit is {limit}")
        try:
            return Message(kind, stream, await self._read(size))
        except asyncio.IncompleteReadError as error:
            count = len(error.partial)
            raise TruncatedError(f"the connection ended after {count} of {size} bytes of a message") from None

    async def _read(self, size: int) -> bytes:
        if self._silence is None:
            return await self._reader.readexactly(size)
        # The whole message may take longer than the silence that is allowed; its parts may not.
        parts: list[bytes] = []
        left = size
        while left:
            try:
                part = await asyncio.wait_for(self._reader.read(left), self._silence)
            except TimeoutError:
                raise SilentError(f"no byte received for {self._silence:g} s") from None
            if not part:
                raise asyncio.IncompleteReadError(b"".join(parts), size)
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _control(self, kind: int, payload: bytes) -> None:
        self._writer.write(HEADER.pack(kind, 0, len(payload)) + payload)

    async def _hello(self) -> tuple[str, str, tuple[int, int]]:
        """Wait for the other side's greeting: its name, the expected name, its versions."""
        try:
            message = await asyncio.wait_for(self._frame(greeting=True), self.options.greeting_max)
        except TimeoutError:
            raise GreetingError(f"no greeting within {self.options.greeting_max:g} s") from None
        if message is None:
            raise GreetingError("the connection ended before a greeting")
        if message.kind == REFUSAL:
            raise RefusedError(f"refused by the peer: {message.payload.decode(errors='replace')}")
        if message.kind == OTHER_VERSIONS:
            if len(message.payload) != VERSIONS.size:
                raise GreetingError(f"versions of {len(message.payload)} bytes")
            words = _no_common_version(self.options.versions, "the peer", VERSIONS.unpack(message.payload))
            raise RefusedError(words)
        name, expects, heartbeat, versions = unpack_hello(message.payload)
        if heartbeat > 0 and self.options.silence_max > 0:
            self._silence = max(self.options.silence_max, HEARTBEATS_MISSED_MAX * heartbeat)
        return name, expects, versions

    def _agree(self, versions: tuple[int, int]) -> None:
        """Find the common version, or say which versions this side speaks."""
        version = common_version(self.options.versions, versions)
        if version is None:
            self._control(OTHER_VERSIONS, VERSIONS.pack(*self.options.versions))
            raise VersionError(_no_common_version(self.options.versions, self.name, versions))
        self.version = version

    def _start(self) -> None:
        if self.options.heartbeat > 0:
            self._beat = asyncio.create_task(self._beats())

    async def _beats(self) -> None:
        with contextlib.suppress(OSError):
            while not self._writer.is_closing():
                await asyncio.sleep(self.options.heartbeat)
                self._control(HEARTBEAT, b"")
                await self._writer.drain()


async def connect(
    host: str,
    port: int,
    *,
    name: str = "",
    expects: str = "",
    options: Options | None = None,
    tls: ssl.SSLContext | None = None,
) -> Connection:
    """Connect as `name` to the peer called `expects` (empty: any peer).

    Raise `OSError` where there is no connection, `GreetingError` or `RefusedError` where it is not the right
    one. With `tls`, the peer's certificate is checked for `expects`.
    """
    options = options or Options()
    server_name = (expects or host) if tls else None
    reader, writer = await asyncio.open_connection(host, port, ssl=tls, server_hostname=server_name)
    connection = Connection(reader, writer, "", options)
    try:
        connection._control(HELLO, pack_hello(name, expects, options.heartbeat, options.versions))
        connection.name, _, versions = await connection._hello()
        if expects and connection.name != expects:
            words = f"the peer is {connection.name!r}, expected {expects!r}"
            connection._control(REFUSAL, words.encode())
            raise GreetingError(words)
        connection._agree(versions)
        connection._start()
    except BaseException:
        await connection.close()
        raise
    return connection


async def serve(
    handler: Callable[[Connection], Awaitable[None]],
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    name: str = "",
    names: frozenset[str] = frozenset(),
    options: Options | None = None,
    tls: ssl.SSLContext | None = None,
) -> asyncio.Server:
    """Serve as `name`: call `handler` with each connection that greets well; close it when `handler` ends.

    `names` says who may connect; empty admits all peers. Connections that do not greet well are refused with
    a reason; a `MessageError` or `ConnectionError` out of the handler ends its connection, nothing else.
    """
    settings = options or Options()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer, "", settings)
        try:
            connection.name, expects, versions = await connection._hello()
            if expects and expects != name:
                raise GreetingError(f"{expects!r} is not accepted here, only {name}")
            if names and connection.name not in names:
                raise GreetingError(
                    f"{connection.name!r} is not accepted here, only {', '.join(sorted(names))}"
                )
            connection._agree(versions)
            hello = pack_hello(name, connection.name, settings.heartbeat, settings.versions)
            connection._control(HELLO, hello)
            connection._start()
            await handler(connection)
        except VersionError:
            pass
        except GreetingError as error:
            with contextlib.suppress(OSError):
                connection._control(REFUSAL, str(error).encode()[:CONTROL_BYTES_MAX])
        except (MessageError, ConnectionError):
            pass
        finally:
            await connection.close()

    return await asyncio.start_server(accept, host, port, ssl=tls)
