"""ICC'15: tuning TCP for data acquisition, figures 2 to 11."""

from collections.abc import Sequence

from fanin.figures import drawing
from fanin.figures.measure import Measured
from fanin.figures.rack import TIME, scan
from fanin.figures.spec import Figure, Mark, Panel, Run, Series, Undrawn
from fanin.scenario import Setting

__all__ = ["FIGURES", "UNDRAWN"]

_ONE, _N147, _RACK, _ROUTER = "icc15-1dcm", "icc15-147", "icc15-39dcm", "icc15-router"
_PS_PER_MS = 1e9
#: An event of the measured time, where some sixty are collected in a second.
_EVENT = 100
_FRAGMENTS_PER_HOST = (1, 2, 3, 4, 6, 8, 10, 12)
_CREDITS = (12, 24, 48, 96, 204, 300, 396, 468, 552, 636, 900, 1800)
_VOQ_KB = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_SHARE = "share of the events"
_PERCENT = "events above 200 ms (%)"
_LATE = "above 200 ms"


def _credits(preset: str, number: int) -> Run:
    return Run(preset, {"shaping.credits": number})


def _static(preset: str) -> Run:
    return Run(preset, {"transport.congestion_control": "static", "transport.static_window": 2})


def _diatcp() -> Run:
    control: dict[str, Setting] = {
        "transport.congestion_control": "diatcp",
        "transport.diatcp.global_window": 160,
    }
    return Run(_ROUTER, control)


def _fragments() -> dict[float, Run]:
    return {200.0 * n: Run(_ONE, {"readout.fragments_per_host": n}) for n in _FRAGMENTS_PER_HOST}


def _voq_limit(size_kb: int, port: str) -> Run:
    return Run(_ONE, {"core.port_limit": f"{size_kb} kB", "tor.buffer": port})


def _above_200(measured: Measured) -> float:
    return measured.above_200


def _drops_per_event(measured: Measured) -> float:
    return measured.drops / max(1, measured.events)


def _single(label: str, run: Run, line: str = "-") -> Series:
    return Series(label, ((0.0, run),), line=line)


def _to_collector(measured: Measured) -> tuple[Sequence[float], Sequence[float]]:
    return _io(measured, "to_collector_bytes")


def _from_collector(measured: Measured) -> tuple[Sequence[float], Sequence[float]]:
    return _io(measured, "from_collector_bytes")


def _io(measured: Measured, column: str) -> tuple[Sequence[float], Sequence[float]]:
    table = measured.table("io")
    times, sizes = table["since_request_ps"], table[column]
    # A few hundred steps show the curve.
    kept = sorted({*range(0, len(times), max(1, len(times) // 400)), len(times) - 1}) if times else []
    return [times[place] / _PS_PER_MS for place in kept], [sizes[place] / 1e3 for place in kept]


def _utilisation(measured: Measured) -> tuple[Sequence[float], Sequence[float]]:
    """Return the share of the collector's link that recorded events used, in bins of 10 ms."""
    table, events = measured.table("io"), measured.table("events")
    starts = dict(zip(events["id"], events["first_request_ps"], strict=True))
    bins: dict[int, float] = {}
    before = (None, 0)
    columns = (table["event"], table["since_request_ps"], table["to_collector_bytes"])
    for event, since, size in zip(*columns, strict=True):
        new = size - (before[1] if before[0] == event else 0)
        before = (event, size)
        if starts.get(event) is not None:
            place = int((starts[event] + since) / (10 * _PS_PER_MS))
            bins[place] = bins.get(place, 0.0) + new
    if not bins:
        return [], []
    last = max(bins)
    # A bin of 10 ms at 1 Gb/s holds 1.25 MB.
    return [10.0 * place for place in range(last + 1)], [bins.get(n, 0.0) / 1.25e4 for n in range(last + 1)]


def _voq(measured: Measured) -> tuple[Sequence[float], Sequence[float]]:
    """Return the largest of the watched queues over time, as the answers of an event arrive."""
    table = measured.table("queues")
    most: dict[float, int] = {}
    for time, size in zip(table["time_ps"], table["queue_bytes"], strict=True):
        most[time] = max(most.get(time, 0), size)
    times = [time for time in sorted(most) if 0 <= time - 1000 * _PS_PER_MS <= 60 * _PS_PER_MS]
    if not times:
        return [], []
    # The first time above a tenth of the largest queue: the answers to an event's requests arrive.
    start = next(time for time in times if most[time] * 10 >= max(most[time] for time in times))
    times = [time for time in times if -0.3 <= (time - start) / _PS_PER_MS <= 2.0]
    return [(time - start) / _PS_PER_MS for time in times], [most[time] / 1e3 for time in times]


def _traffic(title: str, runs: dict[str, Run], is_forward: bool) -> Panel:
    recorded = {name: run.set("record.events", [_EVENT]).timed(1000, 2000) for name, run in runs.items()}
    series = tuple(_single(name, run) for name, run in recorded.items())
    trace = _to_collector if is_forward else _from_collector
    y = "bytes on the wire (kB)"
    return Panel(title, "time since the request (ms)", y, drawing.traces, series, trace=trace)


def _distribution(runs: dict[str, Run], marks: tuple[Mark, ...] = ()) -> Panel:
    series = tuple(_single(name, run.timed(1000, 4000)) for name, run in runs.items())
    return Panel("", TIME, _SHARE, drawing.distribution, series, log="x", marks=marks, y_range=(0, 1.02))


_N147_RUNS = {"static window": _static(_N147), "credits": _credits(_N147, 396)}
_ROUTER_RUNS = {"DIATCP": _diatcp(), "static window": _static(_ROUTER), "credits": _credits(_ROUTER, 421)}
_VOQ_RUNS = {
    name: run.set("record.queues", ["core->tor:*"]).set("record.queue_interval", "20 us").timed(1000, 1000)
    for name, run in _N147_RUNS.items()
}
_TIMEOUT = (Mark("minimum RTO", 200.0, "x"),)
_NO_TIME = "Hosts take no time to process here."
FIGURES = (
    Figure(
        "icc15",
        "2",
        "§III.A",
        "collection time against the fragments requested, 200 readouts",
        (
            Panel(
                "", "fragments requested", TIME, drawing.values, (scan("mean", _fragments()),), has_ideal=True
            ),
            Panel(
                "",
                "fragments requested",
                _PERCENT,
                drawing.values,
                (scan(_LATE, _fragments(), 1),),
                value=_above_200,
            ),
        ),
        "Above 500 fragments of 1 kB the time jumps, as the share of events above 200 ms does. Each has a "
        "timeout.",
        "{a[mean][400].mean_ms:.1f} ms and {b[above 200 ms][400].above_200:.0f} % above 200 ms with 400 "
        "fragments, {a[mean][600].mean_ms:.0f} ms and {b[above 200 ms][600].above_200:.0f} % with 600, "
        "{a[mean][2400].mean_ms:.0f} ms with 2400.",
        "They agree: the port holds 500 kB, as the paper infers.",
    ),
    Figure(
        "icc15",
        "3",
        "§III.B",
        "collection time against the credits, 2400 fragments from 200 readouts",
        (
            Panel(
                "",
                "credits",
                TIME,
                drawing.values,
                (scan("mean", {float(n): _credits(_ONE, n) for n in _CREDITS}),),
                log="xy",
                has_ideal=True,
                marks=(Mark("stated: 100 to 550", 100, "x"), Mark("stated: 100 to 550", 550, "x")),
            ),
            Panel(
                "",
                "credits",
                _PERCENT,
                drawing.values,
                (scan(_LATE, {float(n): _credits(_ONE, n) for n in _CREDITS}, 1),),
                log="x",
                value=_above_200,
            ),
        ),
        "Near the least, 21.7 ms, from 100 to 550 credits; below, the network is not fully used; above, "
        "frames are dropped.",
        "{a[mean][24].mean_ms:.1f} ms with 24 credits, {a[mean][300].mean_ms:.1f} with 300, "
        "{a[mean][552].mean_ms:.1f} with 552 and {a[mean][636].mean_ms:.0f} with 636, where "
        "{b[above 200 ms][636].above_200:.0f} % take more than 200 ms.",
        "The upper end agrees. The lower one lies at the bandwidth-delay product of the stated 200 µs; the "
        "paper's 100 credits need 0.7 to 0.8 ms. Hosts take no time here, so that the least is the ideal.",
    ),
    Figure(
        "icc15",
        "4",
        "§IV.A",
        "losses against the largest queue of the core, one collector",
        (
            Panel(
                "",
                "largest VOQ (kB)",
                "dropped frames per event",
                drawing.values,
                (
                    scan("rack port of 500 kB", {float(n): _voq_limit(n, "500 kB") for n in _VOQ_KB}),
                    scan("rack port of 4 MB", {float(n): _voq_limit(n, "4 MB") for n in _VOQ_KB}),
                ),
                log="x",
                value=_drops_per_event,
                marks=(Mark("stated: no loss above", 64, "x"),),
            ),
        ),
        "More than 64 kB of VOQ remove all losses.",
        "With a rack port of 500 kB {a[rack port of 500 kB][128].drops} frames are dropped at 128 kB and "
        "{a[rack port of 500 kB][4096].drops} at 4 MB. With one of 4 MB: {a[rack port of 4 MB][128].drops} "
        "and {a[rack port of 4 MB][4096].drops}.",
        "A burst of 2.4 MB overruns a rack port of 500 kB, whatever the core holds. Unit or set-up of the "
        "paper's figure must be another one.",
    ),
    Figure(
        "icc15",
        "5",
        "§IV.B",
        "use of the collector's link over time, without avoidance",
        (
            Panel(
                "",
                "time (ms)",
                "use of the link (%)",
                drawing.traces,
                (
                    _single(
                        "147 readouts, CUBIC", Run(_N147, {"record.events": list(range(12))}).timed(0, 2000)
                    ),
                ),
                trace=_utilisation,
                x_range=(0, 1500),
            ),
        ),
        "After a timeout the link is idle for at least 200 ms.",
        "{a[147 readouts, CUBIC].only.hit:.0f} % of the events suffer a timeout; the shortest takes "
        "{a[147 readouts, CUBIC].only.least_ms:.0f} ms.",
        "They agree.",
    ),
    Figure(
        "icc15",
        "6",
        "§IV.C.2",
        "traffic of one event: static window and credits",
        (
            _traffic("towards the collector", _N147_RUNS, True),
            _traffic("towards the readouts", _N147_RUNS, False),
        ),
        "The last answer arrives after 16.77 ms with a window of two packets and 16.84 ms with 396 "
        "credits. The window costs 20 kB more towards the readouts, whose acknowledgements go on for 1.3 "
        "ms.",
        "Events take {a[static window].only.mean_ms:.2f} and {a[credits].only.mean_ms:.2f} ms; "
        "{a[static window].only.reverse_kb:.0f} and {a[credits].only.reverse_kb:.0f} kB go towards the "
        "readouts.",
        f"The times agree. {_NO_TIME} Both acknowledge every second packet; the paper's receiver "
        f"merged some.",
    ),
    Figure(
        "icc15",
        "7",
        "§IV.C.2",
        "the core's queue towards the rack as an event is collected",
        (
            Panel(
                "",
                "time since the first answers (ms)",
                "VOQ (kB)",
                drawing.traces,
                tuple(_single(name, run) for name, run in _VOQ_RUNS.items()),
                trace=_voq,
            ),
        ),
        "Steadier, with a lower maximum, with a static window than with credits.",
        "At most {a[static window].only.watched_kb:.0f} kB with the window and "
        "{a[credits].only.watched_kb:.0f} kB with credits.",
        "They agree. The paper shows three blades, whose loads differ by the readouts at each; here one "
        "queue is drawn.",
    ),
    Figure(
        "icc15",
        "8",
        "§IV.C.3",
        "distribution of collection times, one collector",
        (_distribution({**_N147_RUNS, "CUBIC": Run(_N147)}, _TIMEOUT),),
        "No timeout with a static window or credits; each event suffers one with CUBIC. The window's mean "
        "is slightly higher.",
        "{a[static window].only.hit:.1f} % and {a[credits].only.hit:.1f} % with a timeout, "
        "{a[CUBIC].only.hit:.0f} % with CUBIC; means {a[static window].only.mean_ms:.2f}, "
        "{a[credits].only.mean_ms:.2f} and {a[CUBIC].only.mean_ms:.0f} ms.",
        f"They agree but for the means, which are equal: the paper blames the work on all connections at "
        f"once. {_NO_TIME}",
    ),
    Figure(
        "icc15",
        "9",
        "§IV.C.4",
        "distribution of collection times, 39 collectors in two phases",
        (
            _distribution(
                {"static window": _static(_RACK), "credits": _credits(_RACK, 396)},
                _TIMEOUT,
            ),
        ),
        "No timeout with either; the mean of the EB phase is slightly lower with credits.",
        "{a[static window].only.timeouts} and {a[credits].only.timeouts} timeouts; the EB phase takes "
        "{a[static window].only.eb_ms:.2f} and {a[credits].only.eb_ms:.2f} ms.",
        f"They agree on the timeouts. The mean is not lower with credits here: in the paper they save work "
        f"on the hosts. The curve shows both phases of an event in one time. The shares of the phases are "
        f"not stated; here each is 10 %. {_NO_TIME}",
    ),
    Figure(
        "icc15",
        "10",
        "§IV.D.3",
        "traffic of one event behind a software router",
        (
            _traffic("towards the collector", _ROUTER_RUNS, True),
            _traffic("towards the readouts", _ROUTER_RUNS, False),
        ),
        "The last answer arrives after 18.94 ms with DIATCP, 22.19 ms with a static window and 18.48 ms "
        "with credits. DIATCP sends most towards the readouts.",
        "Events take {a[DIATCP].only.mean_ms:.2f}, {a[static window].only.mean_ms:.2f} and "
        "{a[credits].only.mean_ms:.2f} ms; {a[DIATCP].only.reverse_kb:.0f}, "
        "{a[static window].only.reverse_kb:.0f} and {a[credits].only.reverse_kb:.0f} kB go towards the "
        "readouts.",
        "The paper blames the window's 3 ms on its router, a server whose processing is not simulated.",
    ),
    Figure(
        "icc15",
        "11",
        "§IV.D.4",
        "distribution of collection times behind a software router",
        (_distribution({**_ROUTER_RUNS, "CUBIC": Run(_ROUTER)}, _TIMEOUT),),
        "No timeout with DIATCP, a static window or credits, some with CUBIC, but fewer than behind the "
        "rack switch.",
        "{a[DIATCP].only.timeouts}, {a[static window].only.timeouts} and {a[credits].only.timeouts} "
        "timeouts, {a[CUBIC].only.timeouts} with CUBIC; means {a[DIATCP].only.mean_ms:.1f}, "
        "{a[static window].only.mean_ms:.1f}, {a[credits].only.mean_ms:.1f} and "
        "{a[CUBIC].only.mean_ms:.0f} ms.",
        "They agree. The router's queue is not stated; here it has Linux' 1000 packets.",
    ),
)
UNDRAWN = (Undrawn("icc15", "1", "the system and its network", "A diagram without results."),)
