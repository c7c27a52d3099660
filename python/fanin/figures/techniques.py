"""Techniques of other papers against TCP as it is: DIATCP, ICTCP, Swift, SIRD and the barrel shifter."""

from collections.abc import Callable, Mapping, Sequence

from fanin.figures import drawing
from fanin.figures.measure import Measured
from fanin.figures.rack import scan
from fanin.figures.spec import Figure, Mark, Panel, Run, Series
from fanin.scenario import Setting

__all__ = ["FIGURES"]

_PS_PER_MS = 1e9
#: A line over time has this many steps at most, each the largest sample of its part.
_STEPS = 300
_SENDERS = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32)
_BUCKETS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)
_EVENTS_A_PHASE = (1, 2, 4, 8)
_WATCHED: Mapping[str, Setting] = {"record.queues": ["tor->collector:0"], "record.queue_interval": "20 us"}


def _incast(**settings: Setting) -> Run:
    """Return the classical incast; keys are those of the transport, with `__` for a dot."""
    keys = {"transport." + key.replace("__", "."): value for key, value in settings.items()}
    return Run("incast", keys, 0, 3000)


def _senders(run: Run, number: int) -> Run:
    return run.set("workload.senders", number)


def _recorded(run: Run, duration_ms: float, settings: Mapping[str, Setting] = _WATCHED) -> Run:
    for key, value in settings.items():
        run = run.set(key, value)
    return run.timed(0, duration_ms)


def _largest(times: Sequence[float], sizes: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Return the largest size of each part of the time, in ms and kB."""
    if not times:
        return [], []
    step = max(1, -(-len(times) // _STEPS))
    starts = range(0, len(times), step)
    return [times[at] / _PS_PER_MS for at in starts], [max(sizes[at : at + step]) / 1e3 for at in starts]


def _queue(measured: Measured) -> tuple[Sequence[float], Sequence[float]]:
    table = measured.table("queues")
    return _largest(table["time_ps"], table["queue_bytes"])


def _in_flight(measured: Measured) -> tuple[Sequence[float], Sequence[float]]:
    table = measured.table("windows")
    return _largest(table["time_ps"], table["in_flight_bytes"])


def _window(measured: Measured) -> tuple[Sequence[float], Sequence[float]]:
    table = measured.table("windows")
    return _largest(table["time_ps"], table["cwnd_bytes"])


def _over_time(
    title: str,
    y: str,
    runs: Mapping[str, Run],
    trace: Callable[[Measured], tuple[Sequence[float], Sequence[float]]] = _queue,
    marks: tuple[Mark, ...] = (),
    colours: Sequence[int | None] = (None, None, None),
) -> Panel:
    series = tuple(
        Series(label, ((0.0, run),), colour)
        for (label, run), colour in zip(runs.items(), colours, strict=False)
    )
    # A simulation goes on until its last request is answered.
    end = max(run.duration_ms for run in runs.values())
    return Panel(title, "time (ms)", y, drawing.traces, series, trace=trace, marks=marks, x_range=(0, end))


def _goodput(measured: Measured) -> float:
    return measured.goodput_mbps


def _by_senders(runs: Mapping[str, Run], title: str = "goodput against the senders") -> Panel:
    series = tuple(
        scan(label, {float(number): _senders(run, number) for number in _SENDERS})
        for label, run in runs.items()
    )
    return Panel(title, "senders", "goodput (Mb/s)", drawing.values, series, value=_goodput)


_QUEUE = "queue of the port (kB)"
_LIMIT = (Mark("limit of the port", 64.0),)
_TCP = _incast()
_DIATCP = {
    f"DIATCP with {packets} packets": _incast(congestion_control="diatcp", diatcp__global_window=packets)
    for packets in (20, 40)
}
_ICTCP = _incast(congestion_control="ictcp")
_SWIFT = _incast(congestion_control="swift", delayed_ack=False)
_SIRD = _incast(congestion_control="sird")
_BY_BUCKET = scan(
    "SIRD", {bucket: _senders(_SIRD, 16).set("transport.sird.bucket", bucket) for bucket in _BUCKETS}, 1
)
#: Twelve sources and twelve destinations on one switch, links of 10 Gb/s, sixteen events for each of these.
_BUILDER = Run(
    "multihost",
    {
        "network.topology": "star",
        "link.rate": "10 Gb/s",
        "tor.buffer": "200 kB",
        "collectors.hosts_per_rack": 12,
        "collectors.units_per_host": 16,
        "transport.congestion_control": "cubic",
    },
    100,
    300,
)
_SHIFTER = _BUILDER.set("shaping.method", "barrel-shifter")


def _phases(run: Run) -> dict[float, Run]:
    return {float(number): run.set("shaping.barrel_shifter.events", number) for number in _EVENTS_A_PHASE}


FIGURES = (
    Figure(
        "technique",
        "DIATCP",
        "ICC'15 §IV.D; Hwang, Yoo and Choi, Computer Networks 2014",
        "a collector that divides one window among its senders",
        (
            _over_time(
                "16 senders of 256 kB",
                _QUEUE,
                {label: _recorded(_senders(run, 16), 60) for label, run in {"TCP": _TCP, **_DIATCP}.items()},
                marks=_LIMIT,
            ),
            _by_senders({"TCP": _TCP, **_DIATCP}),
        ),
        "The sum of all windows never exceeds the global window (eq. (9)), so that the queue has a "
        "bound that does not depend on the number of senders.",
        "With 16 senders the queue reaches {a[DIATCP with 20 packets].only.queue_kb:.0f} kB with 20 "
        "packets and {a[DIATCP with 40 packets].only.queue_kb:.0f} kB with 40, without drops. TCP fills "
        "the 64 kB and loses {a[TCP].only.drops} frames of its first request. With 32 senders DIATCP "
        "has {b[DIATCP with 20 packets][32].goodput_mbps:.0f} and "
        "{b[DIATCP with 40 packets][32].goodput_mbps:.0f} Mb/s, TCP {b[TCP][32].goodput_mbps:.0f} Mb/s.",
        "They agree. TCP is NewReno as in ns-3; both have links of 1 Gb/s, a port of 64 kB and 256 kB "
        "from each sender.",
    ),
    Figure(
        "technique",
        "ICTCP",
        "Wu et al., IEEE/ACM ToN 2013, §IV to §V",
        "a receiver that sets the window of each connection",
        (
            _over_time(
                "one connection of several",
                "bytes in flight (kB)",
                {
                    f"{number} senders": _recorded(_senders(_ICTCP, number), 40, {"record.windows": [0]})
                    for number in (2, 4, 16)
                },
                _in_flight,
                colours=(2, 3, 4),
            ),
            _by_senders({"TCP": _TCP, "ICTCP": _ICTCP}),
        ),
        "A window grows only while the link has room. Many windows, of two segments each, do not overflow "
        "the buffer.",
        "Of two connections one has up to {a[2 senders].only.in_flight_kb:.1f} kB in flight, of four "
        "{a[4 senders].only.in_flight_kb:.1f}, of sixteen {a[16 senders].only.in_flight_kb:.1f} kB: two "
        "segments. With 20 senders it has {b[ICTCP][20].goodput_mbps:.0f} Mb/s and TCP "
        "{b[TCP][20].goodput_mbps:.0f}; with 24 {b[ICTCP][24].goodput_mbps:.0f}, with 32 "
        "{b[ICTCP][32].goodput_mbps:.0f} Mb/s.",
        "They agree. The least window of two segments sets the limit: those of 32 senders exceed what the 64 "
        "kB and the links hold.",
    ),
    Figure(
        "technique",
        "Swift",
        "Kumar et al., SIGCOMM 2020, §3.1 and §3.5",
        "a sender that aims at a round-trip time",
        (
            _over_time(
                "one of four senders",
                "congestion window (kB)",
                {
                    label: _recorded(_senders(run, 4), 60, {"record.windows": [0]})
                    for label, run in {"TCP": _TCP, "Swift": _SWIFT}.items()
                },
                _window,
            ),
            _over_time(
                "four senders",
                _QUEUE,
                {
                    label: _recorded(_senders(run, 4), 60)
                    for label, run in {"TCP": _TCP, "Swift": _SWIFT}.items()
                },
                marks=_LIMIT,
            ),
            _by_senders({"TCP": _TCP, "Swift": _SWIFT}),
            _by_senders(
                {
                    label: run.set("tor.buffer", "256 kB")
                    for label, run in {"TCP": _TCP, "Swift": _SWIFT}.items()
                },
                "the same with 256 kB a port",
            ),
        ),
        "The window grows below the target delay. Above it, it falls in proportion to the excess. Windows "
        "below one packet carry large incasts.",
        "Four senders keep the queue at {b[Swift].only.queue_kb:.0f} kB or less without drops, at "
        "{c[Swift][4].goodput_mbps:.0f} Mb/s (TCP {c[TCP][4].goodput_mbps:.0f}). With 16 senders Swift "
        "has {c[Swift][16].goodput_mbps:.0f} Mb/s, and {d[Swift][16].goodput_mbps:.0f} if the port has "
        "256 kB.",
        "With few senders they agree. With many, all begin a request with windows that together exceed "
        "the 64 kB, and wait for a timeout. Windows below one segment, which the paper has for this, "
        "are left out here.",
    ),
    Figure(
        "technique",
        "SIRD",
        "Prasopoulos et al., NSDI 2025, §3 and §4",
        "receivers that grant credit for bytes",
        (
            _over_time(
                "16 senders of 256 kB",
                _QUEUE,
                {
                    label: _recorded(_senders(run, 16), 60)
                    for label, run in {"TCP": _TCP, "SIRD": _SIRD}.items()
                },
                marks=_LIMIT,
            ),
            _by_senders({"TCP": _TCP, "SIRD": _SIRD}),
            Panel(
                "deepest queue with 16 senders",
                "outstanding credit B (BDPs)",
                "deepest queue (kB)",
                drawing.values,
                (_BY_BUCKET,),
                value=lambda measured: measured.queue_kb,
            ),
            Panel(
                "goodput with 16 senders",
                "outstanding credit B (BDPs)",
                "goodput (Mb/s)",
                drawing.values,
                (_BY_BUCKET,),
                value=_goodput,
            ),
        ),
        "A receiver has at most B of credit outstanding. So its queue is at most what B exceeds a BDP by. "
        "The link is busy from B = 1 BDP on. The paper takes 1.5.",
        "With 32 senders SIRD has {b[SIRD][32].goodput_mbps:.0f} Mb/s and TCP "
        "{b[TCP][32].goodput_mbps:.0f}. The deepest queue is {c[SIRD][1].queue_kb:.1f}, "
        "{c[SIRD][1.5].queue_kb:.1f} and {c[SIRD][3].queue_kb:.1f} kB at B = 1, 1.5 and 3, where the "
        "outstanding credit reaches {c[SIRD][1].credit_kb:.1f}, {c[SIRD][1.5].credit_kb:.1f} and "
        "{c[SIRD][3].credit_kb:.1f} kB. At B = 0.5 the goodput is {d[SIRD][0.5].goodput_mbps:.0f} Mb/s, "
        "at 1 {d[SIRD][1].goodput_mbps:.0f}, at 1.5 {d[SIRD][1.5].goodput_mbps:.0f}.",
        "They agree. A BDP is 15.7 kB here. The queue is 2 to 4 kB above the bound: frames count with "
        "their headers, and requests wait there, too.",
    ),
    Figure(
        "technique",
        "barrel shifter",
        "Bauer et al., IEEE TNS 55, 2008, p. 182",
        "phases in which no two sources share a destination",
        (
            _over_time(
                "twelve sources, twelve destinations",
                _QUEUE,
                {
                    label: _recorded(run, 100)
                    for label, run in {"no shaping": _BUILDER, "barrel shifter": _SHIFTER}.items()
                },
                marks=(Mark("limit of the port", 200.0),),
            ),
            Panel(
                "load against the events of a phase",
                "events of a phase",
                "load of the links (%)",
                drawing.values,
                (
                    scan("barrier", _phases(_SHIFTER)),
                    scan("clock", _phases(_SHIFTER.set("shaping.barrel_shifter.barrier", "clock"))),
                ),
                value=lambda measured: measured.last_hop,
            ),
        ),
        "CMS reaches nearly the full bisection throughput with it.",
        "Behind a barrier the deepest queue is {a[barrel shifter].only.queue_kb:.1f} kB, without drops; "
        "without shaping it fills the 200 kB, and {a[no shaping].only.drops} frames are lost. The barrier "
        "loads the links to {b[barrier][1].last_hop:.0f} % with one event a phase and "
        "{b[barrier][8].last_hop:.0f} % with eight. The clock loads them fully, with a queue of "
        "{b[clock][1].queue_kb:.0f} kB and without drops.",
        "They agree where phases follow a clock. A barrier costs a round of messages a phase, which "
        "matters less with larger phases.",
    ),
)
