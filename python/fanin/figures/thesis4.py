"""Thesis, chapter 4: measurements of the rack without and with request-side traffic shaping."""

from fanin.figures import drawing
from fanin.figures.rack import (
    A500,
    A1000,
    B500,
    B1000,
    BURST,
    TIME,
    burst,
    credits,
    fcfs,
    partial,
    rate,
    scan,
    usable,
)
from fanin.figures.spec import Figure, Mark, Panel, Run

__all__ = ["CREDITS", "FIGURES"]

#: Kilobytes of a sixteenth of the event.
_STEP_KB = 132
_SIXTEENTHS = (1, 3, 4, 5, 6, 10, 16)
CREDITS = (48, 120, 240, 480, 720, 1440)
_RATES_HZ = (50, 100, 250, 500, 750, 900, 1000)
_SIZE = "collected data of an event (kB)"
_FRACTION = "fraction of the events"


def _sizes(preset: str) -> Panel:
    runs = {float(part * _STEP_KB): usable(partial(preset, part)) for part in _SIXTEENTHS}
    return Panel(rate(preset), _SIZE, TIME, drawing.boxes, (scan("time", runs),), log="y")


def _histogram(preset: str, sixteenths: int) -> Panel:
    runs = {float(sixteenths * _STEP_KB): usable(partial(preset, sixteenths))}
    multiples = tuple(Mark("multiples of 200 ms", 200.0 * n, "x") for n in (1, 2, 3))
    series = (scan("time", runs),)
    return Panel(
        rate(preset), TIME, _FRACTION, drawing.histogram, series, marks=multiples, x_range=(0, 800), log="y"
    )


def _credits(preset: str) -> Panel:
    runs = {burst(number): fcfs(preset, number) for number in CREDITS}
    return Panel(rate(preset), BURST, TIME, drawing.boxes, (scan("time", runs),), log="y")


def _rates(preset: str, title: str) -> Panel:
    # Units that have run for a while; with few events the order of the start would decide.
    base = (
        credits(preset, 480).set("shaping.discipline", "round-robin").set("supervisor.start_order", "random")
    )
    runs: dict[float, Run] = {}
    for hz in _RATES_HZ:
        runs[round(hz * 2.112e-3, 3)] = base.set("supervisor.rate", f"{hz} Hz").timed(300, 1000)
    series = (scan("FCFS, 528 kB", runs),)
    x = "rack throughput (GB/s)"
    return Panel(title, x, TIME, drawing.values, series, has_ideal=True)


_SET_UP = (
    "Buffers are those with which the thesis' own simulation agrees with its measurements: 500 kB a port "
    "of A, 9.4 MB of B."
)
FIGURES = (
    Figure(
        "thesis",
        "4.3",
        "§4.2.2",
        "collection time against the size collected, switch A",
        (_sizes(A500), _sizes(A1000)),
        "Ideal, 1.5 to 18.2 ms, up to a threshold; beyond it longer by more than an order of magnitude. "
        "The threshold is the same at 45 % and 90 %, since each port has its own buffer.",
        "Three times the ideal from {a[time].onset} kB on at 45 % and from {b[time].onset} kB at 90 %. The "
        "full event takes {a[time][2112].mean_ms:.0f} and {b[time][2112].mean_ms:.0f} ms, ideal "
        "{a[time][2112].own_ideal_ms:.1f} ms.",
        f"They agree. {_SET_UP}",
    ),
    Figure(
        "thesis",
        "4.4",
        "§4.2.2",
        "collection time against the size collected, switch B",
        (_sizes(B500), _sizes(B1000)),
        "The shared buffer is fuller at higher throughput: incast sets in at a clearly smaller size at 90 "
        "% than at 45 %.",
        "Three times the ideal from {a[time].onset} kB on at 45 % and from {b[time].onset} kB at 90 %. The "
        "full event takes {a[time][2112].mean_ms:.0f} and {b[time][2112].mean_ms:.0f} ms.",
        f"The order agrees. {_SET_UP}",
    ),
    Figure(
        "thesis",
        "4.5",
        "§4.2.2",
        "distribution for 792 kB, switch A",
        (_histogram(A500, 6), _histogram(A1000, 6)),
        "Peaks near 200, 400 and 600 ms; most collections suffer at least one timeout.",
        "{a[time].only.hit:.0f} % suffer a timeout at 45 %, {b[time].only.hit:.0f} % at 90 %; the median "
        "is {a[time].only.median_ms:.0f} and {b[time].only.median_ms:.0f} ms.",
        "Our peak lies some 40 ms later: after a timeout one segment goes, and its acknowledgement is "
        "delayed. Why the measured hosts acknowledged sooner is open.",
    ),
    Figure(
        "thesis",
        "4.6",
        "§4.2.2",
        "distribution for 1320 kB, switch A",
        (_histogram(A500, 10), _histogram(A1000, 10)),
        "A share that is not negligible suffers several timeouts in a row, in some cases three.",
        "{a[time].only.above_350:.0f} % take more than 350 ms at 45 %, {b[time].only.above_350:.0f} % at "
        "90 %.",
        "They agree; peaks lie later than the paper's by a delayed acknowledgement, as in figure 4.5.",
    ),
    Figure(
        "thesis",
        "4.7",
        "§4.2.2",
        "distribution for 792 kB, switch B",
        (_histogram(B500, 6), _histogram(B1000, 6)),
        "No collection suffers a timeout at 45 %; some do at 90 %.",
        "{a[time].only.hit:.1f} % suffer a timeout at 45 %, {b[time].only.hit:.1f} % at 90 %.",
        "At 45 % they agree. At 90 % events that start evenly spaced, as here, overlap less than those "
        "measured.",
    ),
    Figure(
        "thesis",
        "4.8",
        "§4.2.2",
        "distribution for 1320 kB, switch B",
        (_histogram(B500, 10), _histogram(B1000, 10)),
        "With more data or more throughput the buffer drops frames, and timeouts appear.",
        "{a[time].only.hit:.1f} % suffer a timeout at 45 %, {b[time].only.hit:.1f} % at 90 %.",
        "The order agrees. At 45 % the shared memory still holds events of this size (figure 4.4).",
    ),
    Figure(
        "thesis",
        "4.9",
        "§4.3.2",
        "collection time against the credits, switch A",
        (_credits(A500), _credits(A1000)),
        "Long with few credits, least at 528 kB, and incast beyond the buffer of 786 kB, whatever the "
        "throughput.",
        "The least mean is {a[time].least:.0f} ms at {a[time].best:g} kB (45 %) and {b[time].least:.0f} ms "
        "at {b[time].best:g} kB (90 %). At 1584 kB it is {a[time][1584].mean_ms:.0f} and "
        "{b[time][1584].mean_ms:.0f} ms. Frames dropped at 528, 792 and 1584 kB: {a[time][528].drops}, "
        "{a[time][792].drops} and {a[time][1584].drops} (45 %), {b[time][528].drops}, {b[time][792].drops} "
        "and {b[time][1584].drops} (90 %).",
        "Both ends agree, and so does the place where losses begin. At 90 % the least lies there, one step "
        "above 528 kB. First come, first served is a transient from the start, here from 3.5 to 4.5 s. Its "
        "means fall the longer one waits, and with the credits.",
    ),
    Figure(
        "thesis",
        "4.10",
        "§4.3.2",
        "collection time against the credits, switch B",
        (_credits(B500), _credits(B1000)),
        "The best burst is not clearly defined, and depends on the throughput.",
        "Nothing is dropped up to {a[time].lossless} kB at 45 % and up to {b[time].lossless} kB at 90 %. "
        "The least mean is {a[time].least:.0f} and {b[time].least:.0f} ms.",
        "They agree; the time is that of figure 4.9's transient.",
    ),
    Figure(
        "thesis",
        "4.11",
        "§4.3.2",
        "collection time against the throughput, switch A, 528 kB",
        (_rates(A1000, "switch A"),),
        "Grows with the throughput, and is least only where hosts are nearly idle.",
        "From {a[FCFS, 528 kB][0.106].mean_ms:.1f} ms at 0.1 GB/s to {a[FCFS, 528 kB][2.112].mean_ms:.1f} "
        "ms at 2.1 GB/s; ideal {a[FCFS, 528 kB][2.112].ideal_ms:.1f} ms.",
        "The growth agrees. Units announce themselves in random order here, so that the start does not "
        "decide.",
    ),
    Figure(
        "thesis",
        "4.12",
        "§4.3.2",
        "collection time against the throughput, switch B, 528 kB",
        (_rates(B1000, "switch B"),),
        "As with switch A.",
        "From {a[FCFS, 528 kB][0.106].mean_ms:.1f} ms at 0.1 GB/s to {a[FCFS, 528 kB][2.112].mean_ms:.1f} "
        "ms at 2.1 GB/s.",
        "The growth agrees. Without a loss the switch makes no difference.",
    ),
)
