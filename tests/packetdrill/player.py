"""Plays a script against the model, in simulated time."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from calls import DifferenceError, SystemCalls, verify
from endpoint import Connection, Sent
from script import Call, Code, Command, Event, Packet, ScriptError, UnsupportedError, parse

SECOND = 1_000_000_000
# Packetdrill's default tolerance: 4 ms, or an eighth of the time since the last event.
TOLERANCE = 4_000_000
TOLERANCE_SHARE = 0.125
# How long an expected packet is waited for.
PATIENCE = 2 * SECOND
# How long packetdrill takes from one event to the next: some kernel rules hold up to a millisecond exactly.
EVENT_COST = 20_000

CONSTANTS = {
    "TCP_ESTABLISHED": 1,
    "TCP_SYN_SENT": 2,
    "TCP_SYN_RECV": 3,
    "TCP_FIN_WAIT1": 4,
    "TCP_FIN_WAIT2": 5,
    "TCP_TIME_WAIT": 6,
    "TCP_CLOSE": 7,
    "TCP_CLOSE_WAIT": 8,
    "TCP_LAST_ACK": 9,
    "TCP_LISTEN": 10,
    "TCP_CLOSING": 11,
    "TCP_CA_Open": 0,
    "TCP_CA_Disorder": 1,
    "TCP_CA_CWR": 2,
    "TCP_CA_Recovery": 3,
    "TCP_CA_Loss": 4,
    "TCPI_OPT_TIMESTAMPS": 1,
    "TCPI_OPT_SACK": 2,
    "TCPI_OPT_WSCALE": 4,
    "TCPI_OPT_ECN": 8,
    "TCPI_OPT_ECN_SEEN": 16,
    "TCPI_OPT_SYN_DATA": 32,
}


@dataclass
class Waiting:
    """A blocking call that has not returned."""

    call: Call
    handler: Callable[[Call], tuple[int, str | None]]
    end: int
    line: int

    def would_block(self) -> bool:
        """Try the call. Return whether it still blocks."""
        result, error = self.handler(self.call)
        if error in ("EAGAIN", "EINPROGRESS") or (self.call.name == "poll" and result == 0):
            return True
        verify(self.call, result, error)
        return False


@dataclass
class Player(SystemCalls):
    """The state of one script."""

    waiting: list[Waiting] = field(default_factory=list)
    tolerance: int = TOLERANCE
    timestamp_tick: int = 0
    timestamps: dict[int, int] = field(default_factory=dict)
    """The connection's timestamps by those of the script."""
    first_timestamp: tuple[int, int] | None = None
    names: dict[str, object] = field(default_factory=lambda: dict(CONSTANTS))

    def play(self, text: str) -> None:
        """Play a script."""
        script = parse(text)
        self.tolerance = int(script.options.get("tolerance_usecs", TOLERANCE // 1000)) * 1000
        self.timestamp_tick = int(script.options.get("tcp_ts_tick_usecs", 0)) * 1000
        for option in script.options:
            if option in ("mtu",):
                raise UnsupportedError(f"option --{option}")
        self.now = self.origin
        was_inbound, last_time, line = False, self.now, 0
        try:
            for event in script.events:
                line = event.line
                action = event.action
                is_inbound = isinstance(action, Packet) and action.inbound
                base = self.origin
                if event.relative or event.any_time:
                    base = last_time if was_inbound and is_inbound else self.now
                time = base + round(event.time * SECOND)
                if isinstance(action, Packet) and not action.inbound:
                    self.expect(action, event, time, base, last_time)
                else:
                    self.advance(time)
                    if isinstance(action, Packet):
                        self.inject(action)
                    elif isinstance(action, Call):
                        self.call(action, base, event.line)
                    elif isinstance(action, Code):
                        self.check(action)
                    elif isinstance(action, Command):
                        pause = self.sysctls.run(action.text)
                        self.now += round(pause * SECOND)
                        self.advance(self.now)
                self.finish_calls()
                last_time = time if is_inbound else self.now
                was_inbound = is_inbound
                self.now += EVENT_COST
            for wait in self.waiting:
                line = wait.line
                self.advance(wait.end + self.tolerance)
        except (DifferenceError, UnsupportedError, ScriptError) as problem:
            raise type(problem)(f"line {line}: {problem}") from None
        finally:
            for connection in self.connections:
                connection.stop()

    # Time.

    def advance(self, until: int) -> None:
        """Run timers and finish blocking calls up to a time."""
        while (following := self.following()) is not None and following <= until:
            self.now = max(self.now, following)
            for connection in self.connections:
                at = connection.deadline()
                if at is not None and at <= self.now:
                    connection.call("deadline", self.now)
            self.finish_calls()
        self.now = max(self.now, until)

    def following(self) -> int | None:
        """When a timer may expire, or a blocking call must have returned."""
        ends = [wait.end + self.tolerance for wait in self.waiting]
        deadlines = [at for connection in self.connections if (at := connection.deadline()) is not None]
        return min([*ends, *deadlines], default=None)

    def finish_calls(self) -> None:
        """Finish the blocking calls that can return now."""
        for wait in list(self.waiting):
            if not wait.would_block():
                self.waiting.remove(wait)
                if abs(self.now - wait.end) > self.tolerance:
                    times = f"{wait.end / SECOND:.4f} s, returned at {self.now / SECOND:.4f} s"
                    raise DifferenceError(
                        f"{wait.call.name} of line {wait.line}: expected to return at {times}"
                    )
            elif wait.end + self.tolerance <= self.now:
                self.waiting.remove(wait)
                verify(wait.call, *wait.handler(wait.call))

    # Packets.

    @property
    def current(self) -> Connection:
        """The connection that packets belong to: the newest."""
        if not self.connections:
            raise UnsupportedError("packets without a connection")
        return self.connections[-1]

    def inject(self, packet: Packet) -> None:
        """Let a packet arrive."""
        is_syn = "S" in packet.flags
        if is_syn and "." not in packet.flags and self.listener:
            is_live = self.connections and self.current.state.get("state") not in (None, "Closed")
            if not is_live:
                self.open(self.listener, is_passive=True)
        connection = self.current
        options = dict(packet.options or [])
        if is_syn:
            connection.has_syn = True
            connection.peer_scale = options.get("wscale", [None])[0]
            if "." not in packet.flags and connection.peer_scale is None:
                connection.own_scale = None
        window = packet.window or 0
        if not is_syn and connection.own_scale is not None and connection.peer_scale is not None:
            window <<= connection.peer_scale
        flags = packet.flags.replace("-", "")
        if packet.ecn in ("ect0", "ect1", "ect01", "ce"):
            flags += "ec" if packet.ecn == "ce" else "e"
            connection.is_ect_seen = True
        stamp, echo = options.get("TS", [None, None])
        if echo:
            echo = self.timestamps.get(echo, echo)
        ack = max((packet.ack or 0) - 1, 0)
        offset = packet.seq if is_syn else packet.seq - 1
        if is_syn and packet.payload:
            raise UnsupportedError("data on a SYN (fast open)")
        if offset < 0 and "R" in packet.flags and connection.state["state"] == "SynSent":
            # A RST of a SYN has no number that counts.
            offset = 0
        if offset < 0:
            raise UnsupportedError("a sequence number below the SYN's")
        blocks = [edge - 1 for edge in options.get("sack", [])]
        pairs = list(zip(blocks[::2], blocks[1::2], strict=True))
        fields: list[object] = [flags or "-", offset, ack, window, packet.payload]
        fields += ["-" if stamp is None else stamp, echo or 0]
        mss = options.get("mss", [536 if options else None])[0]
        fields += ["-" if mss is None else mss, *options.get("wscale", ["-"]), int("sackOK" in options)]
        if is_duplicate_report(pairs, ack):
            fields.append("dsack")
        fields += [f"{start}:{end}" for start, end in pairs]
        connection.call("segment", self.now, *fields)

    def expect(self, packet: Packet, event: Event, time: int, base: int, last_time: int) -> None:
        """Wait for a packet, and compare it with what the script expects."""
        connection = self.current
        until = base + round((event.time_end or event.time) * SECOND)
        patience = 100 * SECOND if event.any_time else PATIENCE
        expected = f"expected {describe(packet)}"
        taken: list[Sent] = []
        while not taken or sum(sent.payload for sent in taken) < packet.payload:
            while not connection.sent:
                at = self.following()
                if at is None or at > until + patience:
                    sent_bytes = sum(sent.payload for sent in taken)
                    part = f", of which {sent_bytes} bytes were sent" if taken else ""
                    raise DifferenceError(f"{expected}{part}: no packet")
                self.advance(at)
            taken.append(connection.sent.pop(0))
        actual = joined(taken)
        self.now = max(self.now, actual.time)
        problem = self.compare(packet, actual, connection)
        if problem:
            raise DifferenceError(f"{problem}: {expected}, not {actual}")
        if event.any_time:
            return
        tolerance = max(self.tolerance, round(TOLERANCE_SHARE * (time - last_time)))
        if not time - tolerance <= actual.time <= until + tolerance:
            early, late, when = ((moment - self.origin) / SECOND for moment in (time, until, actual.time))
            wanted = f"{early:.4f}" + (f" to {late:.4f}" if event.time_end else "")
            raise DifferenceError(f"{expected} at {wanted} s, found it at {when:.4f} s")

    def compare(self, packet: Packet, actual: Sent, connection: Connection) -> str | None:
        """Return how a packet differs from what the script expects."""
        wanted = set(packet.flags.replace("-", ""))
        flags = set(actual.flags) - {"e", "c"}
        # PSH depends on where the kernel's buffers end, which the model does not have: it may be missing.
        # Retransmissions have it or not by what the kernel has joined.
        if "P" not in flags or actual.is_retransmission:
            flags.discard("P")
            wanted.discard("P")
        if wanted != flags:
            return "flags"
        if (packet.seq, packet.payload) != (actual.seq, actual.payload):
            return "bytes"
        if "." in packet.flags and packet.ack != actual.ack:
            return "acknowledgement"
        if packet.window is not None and packet.window != actual.window:
            return "window"
        has_ect = "e" in actual.flags
        if packet.ecn is not None and (packet.ecn == "noecn") == has_ect:
            return "ECN"
        if packet.ecn == "ect1":
            return "ECN"
        if packet.options is None:
            return None
        options = dict(packet.options)
        names = {"TS": "ts", "sackOK": "sackok"}
        if {names.get(name, name) for name in options} != set(actual.options):
            return "options"
        for name in ("mss", "wscale", "sack"):
            if name in options and options[name] != actual.options[name]:
                return name
        if "TS" in options:
            return self.compare_timestamps(options["TS"], actual)
        return None

    def compare_timestamps(self, wanted: list[int], actual: Sent) -> str | None:
        """Note the connection's timestamp by the script's, and compare the echo."""
        value, echo = actual.options["ts"]
        if echo != wanted[1]:
            return "timestamp echoed"
        self.timestamps[wanted[0]] = value
        if self.first_timestamp is None:
            self.first_timestamp = (wanted[0], value)
        if self.timestamp_tick:
            first_wanted, first_value = self.first_timestamp
            apart = abs((wanted[0] - first_wanted) * self.timestamp_tick - (value - first_value) * 1_000_000)
            if apart > self.tolerance + self.timestamp_tick:
                return "timestamp"
        return None

    # Code.

    def check(self, code: Code) -> None:
        """Run code with what `tcp_info` says."""
        used = set(re.findall(r"\btcpi_\w+", code.text))
        if used:
            info = self.current.info(self.now)
            if missing := used - set(info):
                raise UnsupportedError(f"{sorted(missing)[0]} is not in the model")
            self.names.update(info)
        try:
            exec(code.text, self.names)
        except AssertionError as problem:
            statement = self.failed_statement(problem, code.text)
            raise DifferenceError(f"{statement}, not {problem}") from None
        except (SyntaxError, NameError) as problem:
            raise UnsupportedError(f"code: {problem}") from None

    @staticmethod
    def failed_statement(problem: AssertionError, text: str) -> str:
        """Return the line of code that failed."""
        trace = problem.__traceback__
        while trace and trace.tb_next:
            trace = trace.tb_next
        lines = text.split("\n")
        return lines[trace.tb_lineno - 1].strip() if trace and trace.tb_lineno <= len(lines) else text

    # System calls.

    def call(self, call: Call, base: int, line: int) -> None:
        """Make a system call."""
        handler = getattr(self, f"call_{call.name}", None)
        if handler is None:
            raise UnsupportedError(f"call {call.name}")
        if call.error in ("EFAULT", "EINVAL", "EBADF", "ENOTSUP", "EOPNOTSUPP", "ENOPROTOOPT"):
            raise UnsupportedError(f"a call with bad arguments ({call.error})")
        if call.end is None:
            verify(call, *handler(call))
            return
        starter = getattr(self, f"start_{call.name}", None)
        if starter:
            starter(call)
        self.waiting.append(Waiting(call, handler, base + round(call.end * SECOND), line))


def is_duplicate_report(blocks: list[tuple[int, int]], ack: int) -> bool:
    """Return whether the first SACK block reports a duplicate (RFC 2883 §4)."""
    if not blocks:
        return False
    start, end = blocks[0]
    within = len(blocks) > 1 and blocks[1][0] <= start and end <= blocks[1][1]
    return end <= ack or within


def joined(sent: list[Sent]) -> Sent:
    """Join packets that follow each other, as packetdrill does for an expected packet of several segments."""
    first, last = sent[0], sent[-1]
    for before, after in pairwise(sent):
        if before.end != after.seq:
            raise DifferenceError(f"bytes: {after} follows {before}")
    if first is last:
        return first
    flags = "".join(sorted(set(first.flags) - {"P", "F"} | set(last.flags)))
    payload = sum(part.payload for part in sent)
    retransmission = any(part.is_retransmission for part in sent)
    return Sent(
        last.time,
        flags,
        first.seq,
        payload,
        first.ack,
        first.window,
        retransmission,
        False,
        len(sent),
        first.options,
    )


def describe(packet: Packet) -> str:
    """Return a packet as the script writes it."""
    ack = f" ack {packet.ack}" if packet.ack is not None else ""
    options = "" if packet.options == [] else " <...>"
    if packet.options:
        options = (
            " <" + ",".join(" ".join([name, *map(str, numbers)]) for name, numbers in packet.options) + ">"
        )
    return f"{packet.flags} {packet.seq}:{packet.end}({packet.payload}){ack}{options}"
