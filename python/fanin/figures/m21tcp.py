"""M21TCP: the classical incast in ns-3's framing, figures 4 to 9."""

from collections.abc import Callable, Sequence

from fanin.figures import drawing
from fanin.figures.measure import Measured
from fanin.figures.rack import scan
from fanin.figures.spec import Figure, Mark, Panel, Run, Series
from fanin.scenario import Setting

__all__ = ["FIGURES"]

_FFW, _FBW = "m21tcp-ffw", "m21tcp-fbw"
_PS_PER_MS = 1e9
_SENDERS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
_COMPARED = (4, 8, 16, 24, 32, 40, 48, 64)


def _senders(preset: str, number: int) -> Run:
    return Run(preset, {"network.framing": "point-to-point", "workload.senders": number}, 0.0, 3000.0)


def _red(run: Run, mode: str) -> Run:
    """RED with the paper's thresholds and ns-3's other defaults."""
    red: dict[str, Setting] = {
        "tor.ecn.mode": mode,
        "tor.ecn.min": 15,
        "tor.ecn.max": 25,
        "tor.ecn.gentle": True,
        "tor.ecn.probability_max": "2 %",
    }
    return Run(run.preset, {**run.settings, **red}, run.warmup_ms, run.duration_ms)


def _dctcp(run: Run) -> Run:
    """DCTCP with the paper's threshold of 20 packets."""
    run = run.set("transport.congestion_control", "dctcp").set("tor.ecn.mode", "threshold")
    return run.set("tor.ecn.threshold", 20)


_SCHEMES: dict[str, Callable[[Run], Run]] = {
    "drop-tail": lambda run: run,
    "RED": lambda run: _red(run, "red-drop"),
    "ECN with RED": lambda run: _red(run, "red-mark").set("transport.ecn", True),
    "DCTCP": _dctcp,
    "M21TCP": lambda run: run.set("transport.congestion_control", "m21tcp").set("tor.m21", True),
}


def _compared(preset: str) -> tuple[Series, ...]:
    return tuple(
        scan(name, {float(n): scheme(_senders(preset, n)) for n in _COMPARED})
        for name, scheme in _SCHEMES.items()
    )


def _goodput(measured: Measured) -> float:
    return measured.goodput_mbps


def _window(measured: Measured) -> tuple[Sequence[float], Sequence[float]]:
    table = measured.table("windows")
    return [time / _PS_PER_MS for time in table["time_ps"]], [size / 1e3 for size in table["cwnd_bytes"]]


def _goodputs(series: tuple[Series, ...], marks: tuple[Mark, ...] = ()) -> Panel:
    return Panel("", "senders", "goodput (Mb/s)", drawing.values, series, value=_goodput, marks=marks)


def _latencies(series: tuple[Series, ...], marks: tuple[Mark, ...] = ()) -> Panel:
    return Panel("", "senders", "request time (ms)", drawing.values, series, log="y", marks=marks)


_FIXED_FRAGMENT, _FIXED_BLOCK = _compared(_FFW), _compared(_FBW)
_COLLAPSES = (
    "Below half of the line rate from these senders on: drop-tail {a[drop-tail].collapse}, "
    "RED {a[RED].collapse}, ECN with RED {a[ECN with RED].collapse}, DCTCP {a[DCTCP].collapse}, M21TCP "
    "{a[M21TCP].collapse}. "
)
FIGURES = (
    Figure(
        "m21tcp",
        "4",
        "§II.B",
        "throughput of drop-tail against the senders, 1 MB in all",
        (
            _goodputs(
                (scan("drop-tail", {float(n): _senders(_FBW, n) for n in _SENDERS}),),
                (Mark("stated: well below 400 with 16", 400.0),),
            ),
        ),
        "Close to the line rate with few senders, well below 400 Mb/s with 16.",
        "{a[drop-tail][1].goodput_mbps:.0f} Mb/s with one sender, {a[drop-tail][8].goodput_mbps:.0f} with "
        "8, {a[drop-tail][16].goodput_mbps:.0f} with 16 and {a[drop-tail][64].goodput_mbps:.0f} with 64.",
        "The collapse agrees, but two senders suffice for it here. 576 B of every 618 B are data, so that "
        "932 Mb/s are the most.",
    ),
    Figure(
        "m21tcp",
        "5",
        "§II.B",
        "congestion window of one of eight senders",
        (
            Panel(
                "1 MB in all, drop-tail",
                "time (ms)",
                "congestion window (kB)",
                drawing.traces,
                (
                    Series(
                        "sender 0",
                        ((8.0, _senders(_FBW, 8).set("record.windows", [0]).timed(0, 1000)),),
                    ),
                ),
                trace=_window,
            ),
        ),
        "Three periods of 200 ms in which the window does not change: this sender or another one waits for "
        "its timeout.",
        "{a[sender 0].only.flats} such periods, and {a[sender 0].only.timeouts} timeouts of all senders in a "
        "second; the longest request takes {a[sender 0].only.most_ms:.0f} ms.",
        "The waits are as long as stated. Their number is chance: some rounds have a timeout, others none.",
    ),
    Figure(
        "m21tcp",
        "6",
        "§IV.A",
        "goodput of five schemes, 256 kB from each sender",
        (_goodputs(_FIXED_FRAGMENT, (Mark("stated: 940 before the collapse", 940.0),)),),
        "ECN and DCTCP reach about 940 Mb/s; ECN collapses at 32 senders, DCTCP at 48. RED is worse than "
        "drop-tail. M21TCP stays near the most, with a slight dip at 64.",
        _COLLAPSES
        + "M21TCP gives {a[M21TCP][8].goodput_mbps:.0f} Mb/s with 8 and {a[M21TCP][64].goodput_mbps:.0f} "
        "with 64.",
        "932 Mb/s are the most with this framing. RED's average follows with a weight of 0.002, so that "
        "its buffer overflows at each start.",
    ),
    Figure(
        "m21tcp",
        "7",
        "§IV.A",
        "request time of five schemes, 256 kB from each sender",
        (_latencies(_FIXED_FRAGMENT),),
        "Grows gradually with the senders under M21TCP, since the block grows.",
        "M21TCP: {a[M21TCP][8].mean_ms:.0f} ms with 8, {a[M21TCP][32].mean_ms:.0f} with 32 and "
        "{a[M21TCP][64].mean_ms:.0f} with 64 senders; drop-tail {a[drop-tail][32].mean_ms:.0f} ms with 32.",
        "They agree.",
    ),
    Figure(
        "m21tcp",
        "8",
        "§IV.B",
        "goodput of five schemes, 1 MB in all",
        (_goodputs(_FIXED_BLOCK),),
        "DCTCP drops at 48 senders, ECN with RED at 64. M21TCP stays high, and rises beyond 64.",
        _COLLAPSES + "M21TCP gives {a[M21TCP][64].goodput_mbps:.0f} Mb/s with 64.",
        "DCTCP's floor of two segments fills 64 KiB at 57 senders. ECN's windows have the same floor and a "
        "slower signal, so that it cannot collapse later.",
    ),
    Figure(
        "m21tcp",
        "9",
        "§IV.B",
        "request time of five schemes, 1 MB in all",
        (_latencies(_FIXED_BLOCK, (Mark("deadline: 10 ms", 10.0),)),),
        "Beyond 32 senders DCTCP misses 10 ms. ECN stays near 10 ms until a little more than 48; M21TCP "
        "meets the deadline.",
        "With 48 senders: DCTCP {a[DCTCP][48].mean_ms:.1f} ms, ECN with RED "
        "{a[ECN with RED][48].mean_ms:.0f}, M21TCP {a[M21TCP][48].mean_ms:.1f}; with 64: "
        "{a[DCTCP][64].mean_ms:.0f}, {a[ECN with RED][64].mean_ms:.0f} and {a[M21TCP][64].mean_ms:.1f}.",
        "DCTCP and M21TCP agree. ECN misses the deadline with fewer senders than in the paper: its windows "
        "have DCTCP's floor, and RED's average is the slower signal. 64 KiB hold the least windows of 56 "
        "senders under DCTCP: with 48 only its first round meets timeouts.",
    ),
)
