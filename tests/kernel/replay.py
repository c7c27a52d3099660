"""Compares the profile `linux-6` with this machine's kernel, segment by segment, under the same losses.

    tests/kernel/replay.py --draws 50 --seed 7        as root

A client and a server of this kernel exchange requests and answers over a path that loses chosen packets
(`conversation.py`). Each end is then played again by `fanin-tcp`: its application's calls and the packets
that arrive are given to it at the recorded times. It must send the same segments as the kernel, in the same
order and about as early. The first difference of each end is printed. Exit code 1 if fewer servers than
`--least` are equal, 3 without root.
"""

import argparse
import os
import random
import re
import struct
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "packetdrill"))
from conversation import CLIENT, MS, SERVER, Event, Plan, record
from endpoint import TIMESTAMP_BYTES, Connection
from player import is_duplicate_report
from run import build

# A timer of a busy machine is late, and the packet socket's clock is read later than TCP's. The timer wheel
# rounds long times by up to an eighth, so that a microsecond of a round trip may decide about that much.
TOLERANCE = 10 * MS
TOLERANCE_SHARE = 1 / 8
JIFFY = 4 * MS
CLOCK_REALTIME_COARSE = 5
# BBR begins its cycle of gains with a random phase, which the model draws by the time. So it is played at
# some times.
PHASES = 30
# Settings of the variants, by name: SACK, timestamps, ECN, MSS. "bbr" has a link that all packets share, too.
VARIANTS: dict[str, tuple[bool, bool, bool, int]] = {
    "linux": (True, True, False, 1460),
    "small": (True, True, False, 536),
    "without timestamps": (True, False, False, 1460),
    "without SACK": (False, True, False, 1460),
    "without both": (False, False, False, 536),
    "marks": (True, True, True, 1460),
    "bbr": (True, True, False, 1460),
}
LETTERS = ((1, "F"), (2, "S"), (4, "R"), (8, "P"), (0x40, "E"), (0x80, "W"), (0x10, "."))


@dataclass
class Packet:
    """A TCP segment of the kernel, or one of the model, with numbers relative to the SYN's."""

    time: int
    flags: str
    seq: int
    payload: int
    ack: int
    window: int
    options: dict[str, list[int]] = field(default_factory=dict)
    ecn: int = 0

    def __str__(self) -> str:
        """In the manner of packetdrill."""
        edges = self.options.get("sack", [])
        blocks = " ".join(f"{a}:{b}" for a, b in zip(edges[::2], edges[1::2], strict=True))
        sack = f" sack {blocks}" if blocks else ""
        return (
            f"{self.time / MS:.3f} ms {self.flags} {self.seq}:{self.seq + self.payload} ack {self.ack}{sack}"
        )

    def key(self) -> tuple[object, ...]:
        """Return what must be equal. PSH depends on buffers that the model does not have."""
        flags = "".join(sorted(set(self.flags) - set("Pec")))
        return flags, self.seq, self.payload, self.ack, tuple(self.options.get("sack", []))


def parse(event: Event, base: int, own: int | None, peer: int | None) -> Packet:
    """Read a packet of the kernel; `own` and `peer` are the initial sequence numbers."""
    data = event.packet
    tcp = data[(data[0] & 15) * 4 : struct.unpack("!H", data[2:4])[0]]
    seq, ack, offset, bits, window = struct.unpack("!IIBBH", tcp[4:16])
    length = (offset >> 4) * 4
    options: dict[str, list[int]] = {}
    rest = tcp[20:length]
    peer_base = ack if peer is None else peer
    while rest and rest[0] != 0:
        if rest[0] == 1:
            rest = rest[1:]
            continue
        body, kind = rest[2 : rest[1]], rest[0]
        if kind == 2:
            options["mss"] = [int.from_bytes(body, "big")]
        elif kind == 3:
            options["wscale"] = [body[0]]
        elif kind == 4:
            options["sackok"] = [1]
        elif kind == 5:
            edges = struct.unpack(f"!{len(body) // 4}I", body)
            options["sack"] = [(edge - peer_base) & 0xFFFFFFFF for edge in edges]
        elif kind == 8:
            options["ts"] = list(struct.unpack("!II", body))
        rest = rest[rest[1] :]
    flags = "".join(letter for bit, letter in LETTERS if bits & bit)
    relative = 0 if own is None else (seq - own) & 0xFFFFFFFF
    acked = (ack - peer_base) & 0xFFFFFFFF if "." in flags else 0
    return Packet(event.time - base, flags, relative, len(tcp) - length, acked, window, options, data[1] & 3)


def read(events: Sequence[Event], base: int) -> list[tuple[Event, Packet | None]]:
    """Read all packets of one end."""
    initial: dict[str, int] = {}
    pairs: list[tuple[Event, Packet | None]] = []
    for event in events:
        if not event.packet:
            pairs.append((event, None))
            continue
        header = (event.packet[0] & 15) * 4
        seq, _, _, bits = struct.unpack("!IIBB", event.packet[header + 4 : header + 14])
        if bits & 2:
            initial[event.kind] = seq
        other = {"in": "out", "out": "in"}[event.kind]
        pairs.append((event, parse(event, base, initial[event.kind], initial.get(other))))
    return pairs


def settings(plan: Plan, side: int) -> dict[str, int | str]:
    """Return the changes to the profile for a plan."""
    # tcp_select_initial_window: whole segments. The client does not know yet whether timestamps are used.
    segment = plan.mss - (TIMESTAMP_BYTES if plan.timestamps and side == SERVER else 0)
    return {
        "mss_with_options": plan.mss,
        "timestamps": int(plan.timestamps),
        "sack": int(plan.sack),
        "dsack": int(plan.sack),
        "ecn": int(plan.ecn),
        "receive_window_initial": 65535 // segment * segment,
        "receive_window": 6291456 // 2,
        "window_scale": 7,
        "congestion_control": plan.congestion,
    }


class Model:
    """One end, played by `fanin-tcp` with what the kernel's end has received."""

    def __init__(self, binary: Path, plan: Plan, side: int) -> None:
        self.connection = Connection(binary, "linux-6", settings(plan, side))
        self.sent: list[Packet] = []
        self.stamps: dict[int, int] = {}
        self.noted = 0
        self.segment_bytes = plan.mss - (TIMESTAMP_BYTES if plan.timestamps else 0)

    def collect(self) -> None:
        """Take what the connection has sent, one segment after the other."""
        for burst in self.connection.sent:
            size = self.segment_bytes
            parts = range(0, burst.payload, size) if burst.payload else [0]
            for start in parts:
                payload = min(size, burst.payload - start)
                ack = burst.ack if "." in burst.flags else 0
                seq = burst.seq + start
                flags = burst.flags if start == 0 else burst.flags.replace("W", "")
                packet = Packet(burst.time, flags, seq, payload, ack, burst.window, burst.options)
                self.sent.append(packet)
        self.connection.sent.clear()

    def advance(self, until: int) -> None:
        """Run timers up to a time."""
        while (at := self.connection.deadline()) is not None and at <= until:
            self.connection.call("deadline", at)
            self.collect()

    def arrive(self, at: int, packet: Packet) -> None:
        """Let a packet of the peer arrive."""
        connection = self.connection
        is_syn = "S" in packet.flags
        if is_syn:
            connection.has_syn = True
            connection.peer_scale = packet.options.get("wscale", [None])[0]
        window = packet.window
        if not is_syn and connection.own_scale is not None and connection.peer_scale is not None:
            window <<= connection.peer_scale
        flags = packet.flags + ("", "e", "e", "ec")[packet.ecn]
        stamp, echo = packet.options.get("ts", [None, 0])
        ack = max(packet.ack - 1, 0)
        offset = packet.seq if is_syn else packet.seq - 1
        edges = [edge - 1 for edge in packet.options.get("sack", [])]
        pairs = list(zip(edges[::2], edges[1::2], strict=True))
        fields: list[object] = [flags or "-", offset, ack, window, packet.payload]
        fields += ["-" if stamp is None else stamp, self.stamps.get(echo or 0, echo or 0)]
        fields += [*packet.options.get("mss", ["-"]), *packet.options.get("wscale", ["-"])]
        fields.append(int("sackok" in packet.options))
        if is_duplicate_report(pairs, ack):
            fields.append("dsack")
        connection.call("segment", at, *fields, *(f"{start}:{end}" for start, end in pairs))
        self.collect()

    def note_stamps(self, theirs: Sequence[Packet]) -> None:
        """Note the model's timestamps by the kernel's of the same segments."""
        for packet, own in zip(theirs[self.noted :], self.sent[self.noted :], strict=False):
            if "ts" in packet.options and "ts" in own.options:
                self.stamps[packet.options["ts"][0]] = own.options["ts"][0]
            self.noted += 1


def play(
    binary: Path, plan: Plan, side: int, events: Sequence[Event], origin: int, cycles: int = 0
) -> tuple[list[Packet], list[Packet]]:
    """Play one end, some cycles of ticks later. Return what the kernel has sent, and what the model sends."""
    # The kernel's ticks and the model's fall together.
    cycle = 32768 * JIFFY
    base = events[0].time - (events[0].time - origin) % cycle - cycles * cycle
    model = Model(binary, plan, side)
    theirs: list[Packet] = []
    for event, packet in read(events, base):
        at = event.time - base
        if event.kind == "out":
            assert packet is not None
            theirs.append(packet)
            continue
        model.advance(at)
        model.note_stamps(theirs)
        if packet is not None:
            model.arrive(at, packet)
        elif event.kind in ("listen", "connect"):
            model.connection.call(event.kind, at)
        else:
            model.connection.call(event.kind, at, event.count)
        model.collect()
    model.advance(events[-1].time - base)
    model.connection.stop()
    return theirs, model.sent


def difference(theirs: Sequence[Packet], ours: Sequence[Packet]) -> str | None:
    """Describe the first segment that differs."""
    for index in range(max(len(theirs), len(ours))):
        one = theirs[index] if index < len(theirs) else None
        other = ours[index] if index < len(ours) else None
        if one is None or other is None:
            return f"segment {index}: kernel {one}, here {other}"
        if one.key() != other.key():
            return f"segment {index}: kernel {one}, here {other}"
        gap = one.time - theirs[index - 1].time if index > 0 else 0
        if abs(one.time - other.time) > max(TOLERANCE, TOLERANCE_SHARE * gap):
            return f"segment {index}: kernel {one}, here at {other.time / MS:.1f} ms"
    return None


def compare(
    binary: Path, plan: Plan, side: int, events: Sequence[Event], origin: int
) -> tuple[tuple[list[Packet], list[Packet]], str | None]:
    """Play one end in each phase until it is equal. Return both ends, and the latest difference."""
    phases = PHASES if plan.congestion == "bbr" and side == SERVER else 1
    best: tuple[int, tuple[list[Packet], list[Packet]], str | None] | None = None
    for cycles in range(phases):
        pair = play(binary, plan, side, events, origin, cycles)
        problem = difference(*pair)
        if problem is None:
            return pair, None
        agreed = int(problem.split()[1].rstrip(":"))
        if best is None or agreed > best[0]:
            best = (agreed, pair, problem)
    assert best is not None
    return best[1:]


def draw(seed: int, variant: str) -> Plan:
    """Draw a conversation: some answers with pauses, and bursts of losses with holes."""
    chance = random.Random(f"{seed} {variant}")
    sack, timestamps, ecn, mss = VARIANTS[variant]
    rounds = chance.randint(2, 5)
    answers = tuple(chance.choice((10, 40, 90)) * mss + chance.randrange(mss) for _ in range(rounds))
    pauses = tuple(chance.choice((0, 0, 5, 300, 700)) for _ in range(rounds))
    total = sum(answers) // mss
    lost: set[int] = set()
    for _ in range(chance.randint(0, 5)):
        first = chance.randrange(2, total)
        lost |= {first + i for i in range(chance.randint(1, 12)) if chance.random() < 0.7}
    lost_acks = {chance.randrange(3, 60) for _ in range(chance.choice((0, 0, 3, 10)))}
    marked = {chance.randrange(3, total) for _ in range(chance.randint(1, 8))} if ecn else set()
    late: dict[int, int] = {}
    if chance.random() < 0.3:
        late = {chance.randrange(3, total): chance.choice((1, 5, 15, 30)) for _ in range(5)}
    link: dict[str, Any] = {}
    if variant == "bbr":
        link = {"congestion": "bbr", "rate": 2_500_000, "buffer": chance.choice((20_000, 50_000, 200_000))}
    return Plan(
        mss,
        sack,
        timestamps,
        ecn,
        answers,
        pauses,
        (frozenset(lost_acks), frozenset(lost)),
        frozenset(marked),
        late,
        **link,
    )


def tick_origin() -> int:
    """Return a time at which the kernel's count of ticks was a multiple of 32768.

    In nanoseconds of the real-time clock. The timer wheel rounds by powers of two of ticks.
    """
    phases = []
    for _ in range(15):
        before = time.clock_gettime_ns(CLOCK_REALTIME_COARSE)
        while time.clock_gettime_ns(CLOCK_REALTIME_COARSE) == before:
            pass
        phases.append(time.clock_gettime_ns(time.CLOCK_REALTIME) % JIFFY)
    # A reading can be late by an interruption, never early.
    phase = min(phases, key=lambda one: sum(min((other - one) % JIFFY, JIFFY // 2) for other in phases))
    found = re.search(r"now at (\d+) nsecs[\s\S]*?jiffies: (\d+)", Path("/proc/timer_list").read_text())
    assert found, "/proc/timer_list has no count of ticks"
    offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    read_at = int(found[1]) + offset
    last_tick = read_at - (read_at - phase) % JIFFY
    return last_tick - int(found[2]) % 32768 * JIFFY


def main(arguments: Sequence[str]) -> int:
    """Record, play and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=20, help="of each variant")
    parser.add_argument("--seed", type=int, default=1, help="of the first draw")
    parser.add_argument("--only", nargs="*", default=list(VARIANTS), choices=VARIANTS, metavar="VARIANT")
    parser.add_argument("--least", type=float, default=1.0, help="share of servers that must be equal")
    parser.add_argument("--show", action="store_true", help="print both ends' segments")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        print("the comparison with the kernel needs root, for network namespaces", file=sys.stderr)
        return 3
    binary = build()
    equal: Counter[tuple[str, int]] = Counter()
    for variant in options.only:
        for seed in range(options.seed, options.seed + options.draws):
            plan = draw(seed, variant)
            ends = record(plan)
            origin = tick_origin()
            for side in (CLIENT, SERVER):
                pair, problem = compare(binary, plan, side, ends[side], origin)
                equal[variant, side] += problem is None
                if problem:
                    print(f"{variant} {seed} {('client', 'server')[side]}: {problem}", flush=True)
                if options.show:
                    for one, other in zip(*pair, strict=False):
                        print("  ", "==" if one.key() == other.key() else "!=", one, "|", other)
    print("| variant | draws | client equal | server equal |\n|---|---:|---:|---:|")
    for variant in options.only:
        counts = f"{equal[variant, CLIENT]} | {equal[variant, SERVER]}"
        print(f"| {variant} | {options.draws} | {counts} |")
    draws = options.draws * len(options.only)
    servers = sum(count for (_, side), count in equal.items() if side == SERVER)
    print(f"{servers} of {draws} servers equal, at least {options.least:.0%} must be")
    return int(servers < options.least * draws)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
