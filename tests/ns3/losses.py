"""Compares the profile `ns3-newreno` with ns-3, segment by segment, under the same losses.

python tests/ns3/losses.py --ns3 /tmp/ns3/ns3 --draws 100

One server answers requests of 256 kB, one after the other, at 1 Gb/s over a switch that loses nothing. Its
link loses data segments by a random list of their numbers. ns-3 (`incast.cc`) and two endpoints of
`fanin-tcp` must then send the same segments at the same times. `--ns3` is the folder that `crosscheck.py`
takes. The first difference of a draw is printed. Exit code 1 where one differs, 3 where ns-3 is not
installed.
"""

import argparse
import heapq
import random
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "packetdrill"))
from crosscheck import BLOCK_BYTES, build
from endpoint import Connection, Sent
from run import build as build_endpoint

REQUEST_BYTES = 64
# TCP, IP and PPP.
HEADER_BYTES = 42
NS_PER_BYTE = 8
LINK_NS = 25_000
WINDOW_BYTES = 6 << 20
# When the client asks first, in nanoseconds.
START = 500_000_000
# Times of ns-3 are cut off to nanoseconds on two links.
TOLERANCE_NS = 10
CLIENT, SERVER = 0, 1

# Time in nanoseconds, offset, bytes.
Segment = tuple[int, int, int]


class GaveUpError(Exception):
    """A connection was closed after too many timeouts in a row."""


@dataclass(frozen=True)
class Pattern:
    """The rounds of a conversation: some requests each, and a block for each request."""

    rounds: int
    requests: int = 1
    block: int = BLOCK_BYTES
    gap: int = 0
    """Time between two requests of a round, in nanoseconds."""

    @property
    def round_bytes(self) -> int:
        """Bytes that the server sends in a round."""
        return self.requests * self.block

    def asks(self, start: int) -> list[int]:
        """Return the times of a round's requests."""
        return [start + number * self.gap for number in range(self.requests)]


@dataclass
class Channel:
    """Two endpoints with a switch between them."""

    ends: list[Connection]
    lost: set[int]
    free: list[list[int]] = field(default_factory=lambda: [[0, 0], [0, 0]])
    arrivals: list[tuple[int, int, int, Sent]] = field(default_factory=list)
    order: Iterator[int] = field(default_factory=count)
    segments: list[Segment] = field(default_factory=list)
    asks: deque[int] = field(default_factory=deque)
    """Times at which the client sends a request."""

    def call(self, time: int, side: int, name: str, *words: object) -> None:
        """Make a call, and send what it releases."""
        end = self.ends[side]
        end.call(name, time, *words)
        for sent in end.sent:
            self.send(time, side, sent)
        end.sent.clear()

    def send(self, time: int, side: int, sent: Sent) -> None:
        """Send a segment through the host's port and the switch's."""
        duration = (sent.payload + HEADER_BYTES) * NS_PER_BYTE
        host, switch = self.free[side]
        begin = max(time, host)
        through = max(begin + duration + LINK_NS, switch)
        if side == SERVER and sent.payload > 0:
            self.segments.append((begin, sent.seq - 1, sent.payload))
            if len(self.segments) - 1 in self.lost:
                self.free[side][0] = begin + duration
                return
        self.free[side] = [begin + duration, through + duration]
        arrival = through + duration + LINK_NS
        heapq.heappush(self.arrivals, (arrival, next(self.order), 1 - side, sent))

    def step(self) -> tuple[int, int]:
        """Handle the next arrival or deadline. Return its time, and the side it happened at."""
        due = [(at, side) for side, end in enumerate(self.ends) if (at := end.deadline()) is not None]
        due += [(self.asks[0], CLIENT)] if self.asks else []
        if not due and not self.arrivals:
            raise GaveUpError
        if self.arrivals and (not due or self.arrivals[0][0] <= min(due)[0]):
            time, _, side, sent = heapq.heappop(self.arrivals)
            options = sent.options
            syn = (options.get(name, ["-"])[0] for name in ("mss", "wscale", "sackok"))
            ack = max(sent.ack - 1, 0)
            offset = sent.seq - (0 if "S" in sent.flags else 1)
            flags = sent.flags or "-"
            # ns-3's client reads before it acknowledges, so that the window that it offers never changes.
            window = sent.window if "S" in flags or side == CLIENT else WINDOW_BYTES
            self.call(time, side, "segment", flags, offset, ack, window, sent.payload, "-", "-", *syn)
        elif self.asks and self.asks[0] <= min(due)[0]:
            time, side = self.asks.popleft(), CLIENT
            self.call(time, side, "send", REQUEST_BYTES)
        else:
            time, side = min(due)
            self.call(time, side, "deadline")
        return time, side


def ours(binary: Path, mss: int, lost: set[int], pattern: Pattern) -> list[Segment]:
    """Return the segments that the profile's server sends."""
    settings: dict[str, int | str] = {"mss_with_options": mss, "timestamps": 0}
    path = Channel([Connection(binary, "ns3-newreno", settings) for _ in range(2)], lost)
    path.call(0, SERVER, "listen")
    path.call(0, CLIENT, "connect")
    time = 0
    while path.arrivals:
        time, _ = path.step()
    assert time < START, "the handshake is over"
    asked = received = 0
    path.asks.extend(pattern.asks(START))
    while received < pattern.rounds * pattern.round_bytes:
        time, side = path.step()
        readable = int(path.ends[side].state["readable"])
        if readable == 0:
            continue
        path.call(time, side, "read", readable)
        if side == SERVER:
            asked += readable
            while asked >= REQUEST_BYTES:
                asked -= REQUEST_BYTES
                path.call(time, SERVER, "send", pattern.block)
            continue
        received += readable
        if received % pattern.round_bytes == 0 and received < pattern.rounds * pattern.round_bytes:
            path.asks.extend(pattern.asks(time))
    for end in path.ends:
        end.stop()
    return path.segments


def theirs(binary: Path, mss: int, lost: set[int], pattern: Pattern, seconds: float) -> list[Segment]:
    """Return the segments that ns-3's server sends in rounds beginning in these seconds."""
    values: dict[str, object] = {"senders": 1, "mss": mss, "buffer": 10**8, "delay": 0, "jitter": 0}
    values |= {"block": pattern.block, "requests": pattern.requests, "gap": pattern.gap, "seconds": seconds}
    words = [f"--{name}={value}" for name, value in values.items()]
    words.append("--lost=" + ",".join(map(str, sorted(lost))))
    out = subprocess.run([str(binary), *words], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in out.splitlines()[:-1]]
    return [(int(time), int(offset), int(size)) for time, offset, size in lines]


def draw(seed: int, segments: int, is_heavy: bool) -> set[int]:
    """Draw the numbers of lost segments: some bursts with holes."""
    chance = random.Random(seed)
    lost: set[int] = set()
    bursts, longest, first_min = (12, 25, 2) if is_heavy else (6, 12, 10)
    for _ in range(chance.randint(1, bursts)):
        first = chance.randrange(first_min, segments)
        share = chance.choice([0.3, 0.7, 0.9]) if is_heavy else 0.7
        lost |= {first + i for i in range(chance.randint(1, longest)) if chance.random() < share}
    return lost or {10}


def difference(a: Sequence[Segment], b: Sequence[Segment]) -> int | None:
    """Index of the first segment that differs."""
    for index, (one, other) in enumerate(zip(a, b, strict=False)):
        if one[1:] != other[1:] or abs(one[0] - other[0]) > TOLERANCE_NS:
            return index
    return None


def main(arguments: Sequence[str]) -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ns3", type=Path, help="folder of ns-3; default: the system's")
    parser.add_argument("--mss", type=int, default=1460)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=1, help="of a round")
    parser.add_argument("--gap", type=int, default=0, help="time between two requests of a round, ns")
    parser.add_argument("--block", type=int, default=BLOCK_BYTES, help="bytes of an answer")
    parser.add_argument("--heavy", action="store_true", help="more losses, with chains of timeouts")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the first draw")
    options = parser.parse_args(arguments)
    pattern = Pattern(options.rounds, options.requests, options.block, options.gap)
    endpoint = build_endpoint()
    differing = given_up = 0
    with tempfile.TemporaryDirectory() as name:
        binary = build(Path(name), options.ns3)
        if binary is None:
            print("ns-3 is not installed: apt-get install g++ libns3-dev, or --ns3 FOLDER", file=sys.stderr)
            return 3
        for seed in range(options.seed, options.seed + options.draws):
            segments = options.rounds * pattern.round_bytes // options.mss - 20
            lost = draw(seed, segments, options.heavy)
            try:
                own = ours(endpoint, options.mss, lost, pattern)
            except GaveUpError:
                # ns-3 goes on: `DataRetries` is raised.
                given_up += 1
                continue
            seconds = max(0.001, (own[-1][0] - START) / 1e9)
            pair = theirs(binary, options.mss, lost, pattern, seconds), own
            assert min(map(len, pair)) > min(lost), "one of the two has ended too early"
            index = difference(*pair)
            if index is not None:
                differing += 1
                print(f"seed {seed}: segment {index} differs: ns-3 {pair[0][index]}, here {pair[1][index]}")
        compared = options.draws - given_up
        print(f"{compared - differing} of {compared} lists of losses give equal segments")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
