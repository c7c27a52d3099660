"""LCN'15: the evaluation of the lossless software switch. Slides have no numbers, but names."""

from fanin.figures import drawing
from fanin.figures.rack import TIME, scan
from fanin.figures.spec import Figure, Mark, Panel, Run, Series, Undrawn
from fanin.scenario import Setting

__all__ = ["FIGURES", "UNDRAWN"]

_ALL, _ONE = "lcn15-all-to-all", "lcn15-all-to-one"
_RATES_GBPS = (0.2, 0.4, 0.6, 0.7, 0.78, 0.9)
_RING_FRAMES = (5000, 6000, 7000, 7650, 8500, 9000, 10350, 14000)


def _all(units: int = 2) -> Run:
    """All-to-all traffic with windows as after a long time; a collector has its next events under way."""
    keys: dict[str, Setting] = {"transport.window_state": "warm", "collectors.units_per_host": units}
    return Run(_ALL, keys).timed(50, 60)


_FREE = {float(units): _all(units).set("tor.daqring.rate", "0 b/s") for units in (1, 2, 3, 4)}
_LIMITED = {rate: _all().set("tor.daqring.rate", f"{rate} Gb/s") for rate in _RATES_GBPS}
_RINGS = {float(n): Run(_ONE, {"tor.daqring.frames": n}).timed(1000, 3000) for n in _RING_FRAMES}
FIGURES = (
    Figure(
        "lcn15",
        "bandwidth",
        "evaluating the offered bandwidth",
        "all-to-all traffic: load of the busiest link",
        (
            Panel(
                "12 readouts, 144 collectors, no rate limit",
                "events under way for each collector",
                "load of the link to the host (%)",
                drawing.values,
                (scan("software switch", _FREE),),
                value=lambda measured: measured.last_hop,
                marks=(Mark("stated: 97 %", 97.0),),
                y_range=(0, 105),
            ),
        ),
        "97 % of the theoretical throughput, 120 Gb/s in both directions.",
        "{a[software switch][2].last_hop:.1f} % with two events under way, "
        "{a[software switch][2].goodput_gbps:.1f} Gb/s of fragments.",
        "They agree. That six cores of 1.2 GHz suffice for it is measured on the hardware and not simulated.",
    ),
    Figure(
        "lcn15",
        "rate-limit",
        "applying rate limitation",
        "all-to-all traffic through rings with a rate limit",
        (
            Panel(
                "",
                "limit of each ring (Gb/s)",
                "goodput (Gb/s)",
                drawing.values,
                (
                    scan("without a window", _LIMITED),
                    scan(
                        "static window",
                        {x: run.set("transport.static_window", 2) for x, run in _LIMITED.items()},
                    ),
                ),
                value=lambda measured: measured.goodput_gbps,
            ),
            Panel(
                "ring of 0.78 Gb/s",
                TIME,
                "share of the events",
                drawing.distribution,
                (
                    Series("without a window", ((0.78, _LIMITED[0.78]),)),
                    Series(
                        "static window",
                        ((0.78, _LIMITED[0.78].set("transport.static_window", 2)),),
                        line="--",
                    ),
                ),
                y_range=(0, 1.02),
            ),
        ),
        "With 0.78 Gb/s for each collector, better performance without a static congestion window than "
        "with one.",
        "{b[without a window].only.mean_ms:.1f} ms without and {b[static window].only.mean_ms:.1f} ms with "
        "the window, {b[without a window].only.goodput_gbps:.0f} and "
        "{b[static window].only.goodput_gbps:.0f} Gb/s.",
        "Eleven windows of two packets keep a ring of 0.78 Gb/s busy at this round trip, so that both give "
        "the same.",
    ),
    Figure(
        "lcn15",
        "buffering",
        "evaluating buffering capabilities",
        "all-to-one traffic: collection time against the size of the ring",
        (
            Panel(
                "110 readouts, one collector",
                "frames of the ring",
                TIME,
                drawing.boxes,
                (scan("time", _RINGS),),
            ),
        ),
        "Incast with rings below 9000 packets; from there on the expected mean and no jitter.",
        "{a[time][7650].mean_ms:.0f} ms and {a[time][7650].drops} drops with 7650 frames. "
        "{a[time][10350].mean_ms:.1f} ms with a standard deviation of {a[time][10350].sd_ms:.2f} ms with "
        "10350. Nothing is dropped from {a[time].first_lossless} frames on.",
        "9790 frames at 0.78 Gb/s are 154 ms, as stated. Rings of 9000 frames still lose a few here: fewer "
        "leave while the others arrive than in the prototype.",
    ),
)
_HARDWARE = "Measured on the prototype's hardware; a simulation has none."
UNDRAWN = (
    Undrawn("lcn15", "memory bandwidth", "use of the memory's bandwidth", _HARDWARE),
    Undrawn("lcn15", "power", "power consumption", _HARDWARE),
)
