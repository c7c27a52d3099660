"""Records a conversation of this machine's kernel with itself, over a path that loses chosen packets.

Two network namespaces have a tun device each. This process carries packets from one to the other: after a
fixed delay, without some of them, with marks on some, or later than others. It also plays both applications.
A packet socket on each device records every packet with the kernel's own time. Needs root.
"""

import ctypes
import fcntl
import heapq
import os
import select
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

CLIENT, SERVER = 0, 1
REQUEST_BYTES = 64
PORT = 9000
MS = 1_000_000
# Time without any packet, lost ones included, after which a conversation has failed. It is more than the
# kernel's longest RTO (TCP_RTO_MAX, 120 s), to which a head that is lost ten times backs off.
SILENCE = 130_000 * MS
SYSCTLS = {
    "tcp_rmem": "4096 131072 6291456",
    # The send buffer never limits the sender, which the model does not have.
    "tcp_wmem": "4096 4000000 8000000",
    "tcp_no_metrics_save": "1",
}
CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 1, 0x1000
SIOCSIFNAME = "tun0"
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
PACKET_OUTGOING = 4
ETH_P_ALL = 3
CE = 3


@dataclass(frozen=True)
class Plan:
    """A conversation: the settings of both kernels, the answers, and the path.

    Packets are counted for each direction from 0, the handshake's included, retransmissions as well.
    """

    mss: int
    sack: bool
    timestamps: bool
    ecn: bool
    answers: tuple[int, ...]
    """Bytes of each answer."""
    pauses: tuple[int, ...]
    """Before each request, in milliseconds."""
    lost: tuple[frozenset[int], frozenset[int]]
    """Of the client's and of the server's packets."""
    marked: frozenset[int] = frozenset()
    """Of the server's packets."""
    late: dict[int, int] = field(default_factory=dict)
    """Milliseconds by which some of the server's packets are late."""
    delay: int = 20 * MS
    """Of each direction, in nanoseconds."""
    congestion: str = "cubic"
    """Name of the kernel's congestion control, at both ends."""
    rate: int = 0
    """Bytes a second of a link that the server's packets share, 0 for no such link."""
    buffer: int = 0
    """Bytes that wait for this link at most; more are lost."""


@dataclass(frozen=True)
class Event:
    """A packet or a call at one end, at a time of the real-time clock in nanoseconds.

    `in` and `out` have a packet; `send`, `read`, `connect` and `listen` a number of bytes.
    """

    time: int
    kind: str
    packet: bytes = b""
    count: int = 0


class ConversationError(Exception):
    """The kernel did not finish a conversation."""


def in_new_namespace() -> int:
    """Move this thread into a new network namespace. Return its descriptor."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "a new network namespace needs root")
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY)


def enter(namespace: int) -> None:
    """Move this thread into a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "cannot enter the network namespace")


class End:
    """One end: its device, its record and its application's socket."""

    def __init__(self, side: int, plan: Plan) -> None:
        self.side = side
        self.events: list[Event] = []
        self.namespace = in_new_namespace()
        self.tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.tun, TUNSETIFF, struct.pack("16sH22x", SIOCSIFNAME.encode(), IFF_TUN | IFF_NO_PI))
        Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
        values = SYSCTLS | {"tcp_sack": str(int(plan.sack)), "tcp_timestamps": str(int(plan.timestamps))}
        values["tcp_ecn"] = str(int(plan.ecn))
        for name, value in values.items():
            Path("/proc/sys/net/ipv4", name).write_text(value)
        link = ["ip", "link", "set", SIOCSIFNAME, "mtu", str(plan.mss + 40), "txqueuelen", "10000", "up"]
        subprocess.run(link, check=True)
        subprocess.run(["ip", "addr", "add", f"{address(side)}/24", "dev", SIOCSIFNAME], check=True)
        self.record = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.record.bind((SIOCSIFNAME, ETH_P_ALL))
        self.record.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.record.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.record.setblocking(False)
        self.socket = self.new_socket(plan.congestion)
        self.is_open = False

    def new_socket(self, congestion: str) -> socket.socket:
        """Make the application's socket in the present namespace."""
        made = socket.socket()
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def note(self, kind: str, count: int = 0) -> None:
        """Record what the application is about to do."""
        self.events.append(Event(time.time_ns(), kind, count=count))

    def recorded(self) -> list[Event]:
        """Return all that happened, in order of time."""
        packets = []
        while True:
            try:
                packet, ancillary, _, origin = self.record.recvmsg(65536, 256)
            except BlockingIOError:
                break
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            kind = "out" if origin[2] == PACKET_OUTGOING else "in"
            packets.append(Event(seconds * 1_000_000_000 + nanoseconds, kind, packet))
        return sorted(self.events + packets, key=lambda event: event.time)

    def close(self) -> None:
        """Give everything back; the namespace ends with its last descriptor."""
        # Nothing is sent any more.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
        self.record.close()
        os.close(self.tun)
        os.close(self.namespace)


def address(side: int) -> str:
    """Return the address of an end."""
    return f"10.99.0.{side + 1}"


def with_mark(packet: bytes) -> bytes:
    """Return a packet marked with congestion experienced, if its sender is capable of ECN."""
    if packet[1] & CE == 0:
        return packet
    header = bytearray(packet[:20])
    header[1] |= CE
    header[10:12] = b"\0\0"
    total = sum(struct.unpack("!10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = struct.pack("!H", ~total & 0xFFFF)
    return bytes(header) + packet[20:]


@dataclass
class Conversation:
    """A conversation that is under way."""

    plan: Plan
    ends: list[End]
    numbers: list[int] = field(default_factory=lambda: [0, 0])
    pending: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    order: int = 0
    asked: int = 0
    received: int = 0
    requested: int = 0
    answered: int = 0
    request_at: int | None = None
    # Time of the last packet.
    quiet_since: int = field(default_factory=time.monotonic_ns)
    idle_at: int = 0
    """When the link has sent what waits for it."""

    def carry(self, side: int) -> None:
        """Take packets from a device, and let them arrive later at the other one."""
        while True:
            try:
                packet = os.read(self.ends[side].tun, 65536)
            except BlockingIOError:
                return
            self.quiet_since = time.monotonic_ns()
            number = self.numbers[side]
            self.numbers[side] += 1
            if number in self.plan.lost[side]:
                continue
            due = self.depart(side, len(packet))
            if due is None:
                continue
            due += self.plan.delay
            if side == SERVER:
                due += self.plan.late.get(number, 0) * MS
                packet = with_mark(packet) if number in self.plan.marked else packet
            self.order += 1
            heapq.heappush(self.pending, (due, self.order, 1 - side, packet))

    def depart(self, side: int, size: int) -> int | None:
        """Send a packet over the link. Return when it has left, or None if the buffer is full."""
        now = time.monotonic_ns()
        if side == CLIENT or self.plan.rate == 0:
            return now
        waiting = max(0, self.idle_at - now) * self.plan.rate // 1_000_000_000
        if waiting + size > self.plan.buffer:
            return None
        self.idle_at = max(now, self.idle_at) + size * 1_000_000_000 // self.plan.rate
        return self.idle_at

    def read(self, side: int) -> int:
        """Read what is readable, if anything. Return the number of bytes."""
        end = self.ends[side]
        if not end.is_open:
            return 0
        before = len(end.events)
        end.note("read")
        try:
            count = len(end.socket.recv(1 << 20))
        except BlockingIOError:
            count = 0
        if count == 0:
            del end.events[before]
            return 0
        end.events[before] = Event(end.events[before].time, "read", count=count)
        return count

    def serve(self) -> None:
        """Accept the connection, and answer a request."""
        end = self.ends[SERVER]
        if not end.is_open:
            try:
                accepted, _ = end.socket.accept()
            except BlockingIOError:
                return
            accepted.setblocking(False)
            end.socket.close()
            end.socket, end.is_open = accepted, True
        self.asked += self.read(SERVER)
        while (self.answered + 1) * REQUEST_BYTES <= self.asked:
            answer = self.plan.answers[self.answered]
            self.answered += 1
            end.note("send", answer)
            if end.socket.send(bytes(answer)) != answer:
                raise ConversationError("the send buffer is full")

    def ask(self) -> None:
        """Read the answer, and send the next request when it is time."""
        end = self.ends[CLIENT]
        now = time.monotonic_ns()
        if not end.is_open:
            if not select.select([], [end.socket], [], 0)[1]:
                return
            end.is_open = True
        self.received += self.read(CLIENT)
        whole = sum(self.plan.answers[: self.requested])
        is_complete = self.received == whole and self.requested < len(self.plan.answers)
        if self.request_at is None and is_complete:
            self.request_at = now + self.plan.pauses[self.requested] * MS
        if self.request_at is not None and now >= self.request_at:
            self.request_at = None
            self.requested += 1
            end.note("send", REQUEST_BYTES)
            end.socket.send(bytes(REQUEST_BYTES))

    def play(self) -> None:
        """Play all rounds."""
        client, server = self.ends
        enter(server.namespace)
        server.socket.bind((address(SERVER), PORT))
        server.note("listen")
        server.socket.listen()
        enter(client.namespace)
        client.note("connect")
        client.socket.connect_ex((address(SERVER), PORT))
        total = sum(self.plan.answers)
        while self.received < total or self.pending:
            for side in (CLIENT, SERVER):
                self.carry(side)
            now = time.monotonic_ns()
            if self.pending and self.pending[0][0] <= now:
                _, _, side, packet = heapq.heappop(self.pending)
                os.write(self.ends[side].tun, packet)
                self.quiet_since = now
                continue_with = (self.serve, self.ask)[side == CLIENT]
                continue_with()
                continue
            self.ask()
            if now > self.quiet_since + SILENCE:
                raise ConversationError(f"nothing moves after {self.received} of {total} bytes")
            dues = [self.pending[0][0]] if self.pending else []
            dues += [self.request_at] if self.request_at is not None else []
            wait = max(0, min(dues, default=now + 50 * MS) - now) / 1e9
            tuns = [end.tun for end in self.ends]
            select.select(tuns, [], [], min(wait, 0.05))


@contextmanager
def home() -> Iterator[None]:
    """Return to the present network namespace afterwards."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        yield
    finally:
        enter(before)
        os.close(before)


def record(plan: Plan) -> list[list[Event]]:
    """Play a conversation. Return the events of the client and of the server."""
    with home():
        ends = [End(side, plan) for side in (CLIENT, SERVER)]
        try:
            Conversation(plan, ends).play()
            return [end.recorded() for end in ends]
        finally:
            for end in ends:
                end.close()
