"""Random systems for `scripts/limits.py family`: round trips, links, sizes, racks, buffers, loads, tenants.

A seed and a number name a system. Half of the systems share their ports with other tenants, whose TCP
connections are background traffic.
"""

import math
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass

from technique_runs import Settings

# The most that a simulation carries in a few seconds of processor time, warm-up included.
WIRE_BYTES_MAX = 4e9
CONNECTIONS_MAX = 60_000
# A 99th percentile needs as many events; a collector knows its readouts after a few.
EVENTS_MIN = 100
EVENTS_EACH_MIN = 6
# A run is longer than TCP's least timeout of 200 ms, if its size permits, and lasts some round trips.
SECONDS_WANTED = 0.5
TRIPS_MIN = 20
EVENT_BYTES_MAX = WIRE_BYTES_MAX / 2 / EVENTS_MIN
# Payload of a full frame with timestamps, and that frame on the wire.
SEGMENT_BYTES, FRAME_BYTES = 1448, 1538
LINK_GBPS = (1, 2.5, 5, 10, 25, 40, 50, 100, 200, 400)
CONNECTIONS = "background.connections"
# Links that a request and its answer pass on a star of racks behind cores, whose readouts are at the cores.
LINKS_OF_A_TRIP = 6


@dataclass(frozen=True)
class Draw:
    """A random system: the seed of the family and its number name it."""

    number: int
    settings: Settings
    words: str
    #: Tenants that share the ports, the system itself included: 1, or 2 to 10.
    tenants: int


def draw(seed: int, number: int) -> Draw:
    """Draw a system. Draws that no simulation of seconds carries are drawn again."""
    chance = random.Random(f"{seed}/{number}")
    while (drawn := attempt(chance)) is None:
        pass
    settings, words, tenants = drawn
    return Draw(number, settings, words, tenants)


def log_uniform(chance: random.Random, least: float, most: float) -> float:
    """Return a number whose logarithm is uniform."""
    return math.exp(chance.uniform(math.log(least), math.log(most)))


def attempt(chance: random.Random) -> tuple[Settings, str, int] | None:
    """Draw the numbers of a system; `None` if it is too large to simulate in seconds."""
    hosts = round(log_uniform(chance, 16, 1000))
    racks = round(log_uniform(chance, 1, 50))
    per_rack = round(log_uniform(chance, 2, 40))
    fragments = chance.choice((1, 1, 2, 4, 8, 12, 24))
    fragment = round(log_uniform(chance, 100, 1_000_000))
    event = hosts * fragments * fragment
    collectors = racks * per_rack
    if event > EVENT_BYTES_MAX or hosts * collectors > CONNECTIONS_MAX:
        return None
    link = chance.choice(LINK_GBPS)
    # Uplinks carry from a quarter of the rack's links up to all of them.
    cores = chance.choice((1, 2, 4))
    uplink = max(per_rack * link * chance.uniform(0.25, 1) / cores, link)
    trip = log_uniform(chance, 0.05e-3, 2e-3)
    response = trip * chance.uniform(0, 0.9)
    deviation = response * chance.uniform(0, 0.3)
    delay = (trip - response) / LINKS_OF_A_TRIP
    wire = fragments * hosts * wire_bytes(fragment, fragments)
    # The busiest of the kinds of links decides the rate.
    rates = (
        collectors * link * 1e9 / 8 / wire,
        racks * cores * uplink * 1e9 / 8 / wire,
        hosts * link * 1e9 / 8 / wire,
    )
    load = chance.uniform(0.2, 0.9)
    rate = load * min(rates)
    events = math.ceil(max(EVENTS_MIN, EVENTS_EACH_MIN * collectors, TRIPS_MIN * trip * rate))
    most = math.floor(WIRE_BYTES_MAX / 2 / wire)
    if events > most:
        return None
    seconds = min(max(events, math.ceil(SECONDS_WANTED * rate)), most) / rate
    policy = chance.choice(("fcfs", "random", "node-round-robin", "node-load-balancing", "unit-round-robin"))
    scheme = chance.choice(("dedicated", "shared", "dynamic-threshold"))
    buffer = log_uniform(chance, 64e3, 16e6)
    sigma = chance.choice((0, 0, 0.1, 0.25, 0.5))
    profile = chance.choice(("linux-2.6.32", "linux-6"))
    size = f"{fragment} B"
    if sigma:
        size = f'{{ distribution = "log-normal", mean = "{fragment} B", sigma = {sigma} }}'
    # Units are never the limit: at most half of them are busy or wait for a trip.
    units = 16
    processing = min(0.1 * units * collectors / rate, 0.1)
    if (trip + processing) * rate > 0.5 * units * collectors:
        return None
    settings = {
        "run.duration": f"{round(seconds * 1e9)} ns",
        # Every collector has seen some events before the measurement.
        "run.warmup": f"{round(seconds * 1e9)} ns",
        "run.stall_limit": "5 s",
        "run.seed": str(chance.randrange(1 << 32)),
        "readout.hosts": str(hosts),
        "readout.fragments_per_host": str(fragments),
        "readout.fragment_size": size,
        "readout.response_delay": f"{round(response * 1e9)} ns",
        "readout.response_delay_sd": f"{round(deviation * 1e9)} ns",
        "readout.memory": "1 TB",
        "collectors.racks": str(racks),
        "collectors.hosts_per_rack": str(per_rack),
        "collectors.units_per_host": str(units),
        "collectors.processing_time": f"{round(processing * 1e9)} ns",
        "supervisor.rate": f"{round(rate * 1e3)} mHz",
        "supervisor.policy": policy,
        "supervisor.start_order": "random",
        "transport.profile": profile,
        "network.cores": str(cores),
        "network.readouts_per_group": "0",
        "link.rate": f"{round(link * 1e9)} b/s",
        "link.delay": f"{max(round(delay * 1e9), 1)} ns",
        "uplink.rate": f"{round(uplink * 1e9)} b/s",
        "tor.buffering": scheme,
        "tor.buffer": f"{round(buffer)} B",
        "tor.uplink_buffer": f"{round(buffer)} B",
        "core.buffering": "unlimited",
    }
    # The part of the busiest link that a load of the collectors' links takes.
    shares = (1, collectors * link / (racks * cores * uplink), collectors / hosts)
    tenants, others = draw_tenants(chance, load, max(shares), profile)
    settings |= others
    words = (
        f"{hosts} readouts of {fragments} x {fragment} B (sigma {sigma}), "
        f"{racks} x {per_rack} collectors at {link:g} Gb/s, "
        f"{cores} uplinks of {uplink:.1f} Gb/s, round trip {trip * 1e6:.0f} us, load {load:.2f}, {policy}, "
        f"{scheme} {buffer / 1e3:.0f} kB, {profile}"
    )
    if others:
        traffic = ", ".join(value for key, value in others.items() if key != CONNECTIONS)
        words += f", {others[CONNECTIONS]} background connections to each collector ({traffic})"
    return settings, words, tenants


def draw_tenants(chance: random.Random, load: float, busiest: float, profile: str) -> tuple[int, Settings]:
    """Draw the tenants of a system and the background traffic of the others, none for half of the systems.

    The others load the busiest link at most as much as the system does, and both together at most 95 %.
    `busiest` is the share of that link that a unit of load on the collectors' links takes.
    """
    if chance.random() < 0.5:
        return 1, {}
    tenants = chance.randint(2, 10)
    share = chance.uniform(0.05, min(0.95 - load, load)) / busiest
    controls = ("cubic", "cubic", "newreno", "bbr") if profile == "linux-6" else ("cubic", "cubic", "newreno")
    return tenants, {
        CONNECTIONS: str(tenants - 1),
        "background.kind": "transfers",
        "background.congestion_control": chance.choice(controls),
        "background.load": f"{share:.4f}",
        "background.transfer_size": f"{round(log_uniform(chance, 10e3, 10e6))} B",
        "background.transfer_sigma": f"{chance.choice((0, 1, 2))}",
    }


def wire_bytes(fragment: int, fragments: int) -> float:
    """Return the bytes on the wire of one fragment's share of an answer."""
    answer = fragment * fragments + 22
    return (answer + math.ceil(answer / SEGMENT_BYTES) * (FRAME_BYTES - SEGMENT_BYTES)) / fragments


# Of 24 to 32 draws, 8 to 25 % met the targets on record. Below this share something is broken.
MET_LEAST, DRAWS_JUDGED = 0.03, 100


def judge_draws(text: str, earlier: Iterable[str]) -> tuple[bool, dict[str, int]]:
    """Return true if draws have results, and enough of them met the targets, and their counts.

    `text` is what `limits.py family` printed, and `earlier` has the same words of other calls. The least
    share counts once all calls together have `DRAWS_JUDGED` draws: a few may all miss.
    """

    def counts(texts: Iterable[str]) -> tuple[int, int]:
        found = re.findall(r": (\d+) of (\d+) draws met", "\n".join(texts))
        return sum(int(met) for met, _ in found), sum(int(draws) for _, draws in found)

    met, draws = counts([text])
    met_all, draws_all = counts([text, *earlier])
    without = re.search(r"without a result (\d+)", text)
    has_results = draws > 0 and without is not None and int(without[1]) <= 1
    holds = has_results and (draws_all < DRAWS_JUDGED or met_all >= MET_LEAST * draws_all)
    return holds, {"draws": draws, "draws that met the targets": met} if draws else {}
