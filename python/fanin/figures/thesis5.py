"""Thesis, chapter 5: the simulation against the measurements, with two sizes of the buffers."""

from fanin.figures import drawing
from fanin.figures.rack import A500, A1000, B500, B1000, BURST, TIME, burst, fcfs, rate, scan, usable
from fanin.figures.spec import Figure, Panel, Run, Series
from fanin.figures.thesis4 import CREDITS

__all__ = ["FIGURES"]

_FRACTION = "fraction of the events"
_NOMINAL = {"A": "786 kB", "B": "12.6 MB"}
_USABLE = {"A": "500 kB", "B": "9.4 MB"}
#: Credits with the smaller buffer, from 528 kB on: below it makes no difference.
_CREDITS_USABLE = (480, 720, 1440)


def _means(preset: str, switch: str) -> Panel:
    series = (
        scan(_NOMINAL[switch], {burst(number): fcfs(preset, number) for number in CREDITS}),
        scan(_USABLE[switch], {burst(number): usable(fcfs(preset, number)) for number in _CREDITS_USABLE}),
    )
    return Panel(rate(preset), BURST, TIME, drawing.values, series, log="xy", has_ideal=True)


def _panels(preset: str, switch: str) -> tuple[Panel, ...]:
    """Return the three histograms: 52.8 kB, 528 kB and without a limit."""
    unlimited = Run(preset).timed(1000, 1500)
    cases = (
        ("at most 52.8 kB", fcfs(preset, 48), 10.0),
        ("at most 528 kB", fcfs(preset, 480), 10.0),
        ("unlimited", unlimited, 20.0),
    )
    return tuple(
        Panel(
            title,
            TIME,
            _FRACTION,
            drawing.histogram,
            (Series(_NOMINAL[switch], ((0.0, run),)), Series(_USABLE[switch], ((0.0, usable(run)),))),
            x_range=(0, 1000),
            bin=bin,
        )
        for title, run, bin in cases
    )


_MEASURED = (
    "The measured curve stands in the paper's picture alone, so that both of ours are simulations. Below "
    "528 kB nothing is dropped, and one line stands for both."
)
_SHAPED = (
    "At 52.8 kB almost no event takes less than 20 ms, and a significant part less than 40 ms. The tail "
    "reaches {tail} ms. At 528 kB a sizeable part takes up to 20 ms. "
)
_CAPTION = (
    "{{a[{n}].only.below_20:.1f}} % below 20 ms and {{a[{n}].only.below_40:.0f}} % below 40 ms at 52.8 kB. "
    "There 99 % take up to {{a[{n}].only.p99_ms:.0f}} ms. {{b[{n}].only.below_20:.0f}} % below 20 ms at "
    "528 kB. Unlimited: {{c[{n}].only.below_200:.1f}} % below 200 ms with {n} and "
    "{{c[{u}].only.below_200:.1f}} % with {u}. Means are {{c[{n}].only.mean_ms:.0f}} and "
    "{{c[{u}].only.mean_ms:.0f}} ms."
)


def _distributions(number: str, preset: str, switch: str, tail: int, unlimited: str, why: str) -> Figure:
    return Figure(
        "thesis",
        number,
        "§5.2.2",
        f"distributions with three settings of the credits, switch {switch}, {rate(preset)}",
        _panels(preset, switch),
        _SHAPED.format(tail=tail) + unlimited,
        _CAPTION.format(n=_NOMINAL[switch], u=_USABLE[switch]),
        why,
    )


_TRANSIENT = (
    "With a limit most events here still wait for credits that others of their host hold. This is what is "
    "left of the start, where the units of a host announce themselves together, from 3.5 to 4.5 s. The "
    "paper's tails are what is left of it later. Claims T038 and T040 are simulated for longer, and hold. "
)
FIGURES = (
    Figure(
        "thesis",
        "5.4",
        "§5.2.2",
        "mean collection time against the credits with two buffers, switch A",
        (_means(A500, "A"), _means(A1000, "A")),
        "Close to the measurement up to the best burst. The larger, nominal buffer puts incast too late, "
        "the smaller one where it was measured.",
        "At 792 kB {a[786 kB][792].mean_ms:.0f} ms with 786 kB and {a[500 kB][792].mean_ms:.0f} ms with "
        "500 kB (45 %), {b[786 kB][792].mean_ms:.0f} and {b[500 kB][792].mean_ms:.0f} ms (90 %).",
        f"They agree: the smaller buffer loses first. {_MEASURED}",
    ),
    Figure(
        "thesis",
        "5.5",
        "§5.2.2",
        "mean collection time against the credits with two buffers, switch B",
        (_means(B500, "B"), _means(B1000, "B")),
        "As for switch A: the smaller buffer reproduces the measured threshold, the nominal one puts it "
        "higher.",
        "Nothing is dropped up to {a[12.6 MB].lossless} kB with 12.6 MB and {a[9.4 MB].lossless} kB with "
        "9.4 MB at 45 %. At 90 % it is {b[12.6 MB].lossless} and {b[9.4 MB].lossless} kB.",
        "The steps of the scan are too wide to distinguish both thresholds. At 1584 kB the smaller memory "
        f"takes longer, as stated. {_MEASURED}",
    ),
    _distributions(
        "5.6",
        A500,
        "A",
        300,
        "Without a limit none takes less than 200 ms, and most take 200 to 700 ms.",
        _TRANSIENT + "Without a limit they agree: most events wait for two or three timeouts.",
    ),
    _distributions(
        "5.7",
        A1000,
        "A",
        500,
        "Without a limit none takes less than 200 ms, with a larger tail than at 45 %.",
        _TRANSIENT + "Without a limit the tail with 500 kB is larger than at 45 %, as stated. A few events "
        "take less than 200 ms, unlike the paper's.",
    ),
    _distributions(
        "5.8",
        B500,
        "B",
        300,
        "Without a limit some take no timeout, and the vast majority one or more.",
        _TRANSIENT + "Without a limit they agree.",
    ),
    _distributions(
        "5.9",
        B1000,
        "B",
        500,
        "Without a limit the mean is noticeably higher than at 45 %.",
        _TRANSIENT + "Without a limit the mean is a little lower than at 45 %, not higher. Units that start "
        "host by host queue up, at 45 % longer than at 90 %. The tail is larger.",
    ),
)
