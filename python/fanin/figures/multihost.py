"""Multi-host Ethernet controllers: cost, space, and techniques against incast (figures 3, 4 and 6)."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from fanin.figures import drawing
from fanin.figures.rack import TIME, scan
from fanin.figures.spec import Figure, Mark, Panel, Run, Series
from fanin.scenario import Scenario

__all__ = ["FIGURES"]

_MULTIHOST = "multihost"
#: 95 % of the uplink are 3860 events a second.
_FULL_HZ = 3860 / 0.95
_LOADS = (10, 30, 50, 70, 80, 95, 100)


@cache
def _costs() -> list[dict[str, Any]]:
    costs: list[dict[str, Any]] = Scenario.load(_MULTIHOST).plan(cost=True)["plan"]["cost"]["sweep"]
    return costs


def _ratio(row: Mapping[str, Any], quantity: str) -> float:
    if quantity == "multi_host_area":
        # Two sizes in mm²; both are kept with the formula of the other ratio.
        areas = {one["name"]: one["value"] for one in row["derivations"]}
        return float(areas["multi_host_area"] / areas["router_area"])
    return float(row[quantity])


def _facts(quantity: str) -> Mapping[str, float]:
    """Return a ratio by spines and ports, such as `s6p100`."""
    facts = {f"s{row['spines']}p{row['ports']}": _ratio(row, quantity) for row in _costs()}
    for spines in {row["spines"] for row in _costs()}:
        ratios = [_ratio(row, quantity) for row in _costs() if row["spines"] == spines]
        facts |= {f"s{spines}min": min(ratios), f"s{spines}max": max(ratios)}
    return facts


def _ratios(quantity: str, extra: str = "") -> drawing.Draws:
    """Return a function that draws a ratio over ports, a line for each number of spines."""

    def lines(ax: Any, _panel: Panel, _look: Any) -> None:
        for place, spines in enumerate(sorted({row["spines"] for row in _costs()})):
            rows = [row for row in _costs() if row["spines"] == spines]
            style = {"color": drawing.COLOURS[place], "marker": drawing.MARKERS[place]}
            label = f"{spines} spines, {rows[0]['oversubscription']:.1f} : 1"
            ports = [row["ports"] for row in rows]
            ax.plot(ports, [_ratio(row, quantity) for row in rows], label=label, **style)
            if extra:
                label = f"{spines} spines, multi-host"
                ax.plot(
                    ports, [_ratio(row, extra) for row in rows], label=label, **{**style, "linestyle": "--"}
                )

    return lines


_HARDWARE = Run(_MULTIHOST, {"network.hybrid.host_ports": 0})
_SHALLOW_PAUSE = {
    "tor.pause.mode": "pause",
    "tor.pause.xoff": "200 kB",
    "tor.pause.xon": "100 kB",
    "core.pause.mode": "pause",
    "core.pause.xoff": "400 kB",
    "core.pause.xon": "200 kB",
}
_TECHNIQUES = {
    "credits": _HARDWARE.set("shaping.credits", 96),
    "static window": _HARDWARE.set("transport.static_window", 2),
    "PAUSE": Run(_MULTIHOST, {**_HARDWARE.settings, **_SHALLOW_PAUSE}),
    "rings of 344 Mb/s": Run(_MULTIHOST, {"core.daqring.rate": "344 Mb/s"}),
    "rings of 1.38 Gb/s": Run(_MULTIHOST, {"core.daqring.rate": "1380 Mb/s"}),
    "no control": _HARDWARE,
}


def _at(run: Run, load: float) -> Run:
    """Return the run with events at a share of the rate that fills the uplink, in percent."""
    if load == 100:
        # Each unit asks for its next event at once; events come together, as bursts do.
        return run.timed(2500, 1500)
    run = run.set("supervisor.arrivals", "periodic").set("supervisor.policy", "node-round-robin")
    return run.set("supervisor.rate", f"{_FULL_HZ * load * 10:.0f} mHz").timed(300, 700)


def _latency(load: int) -> Panel:
    series = tuple(Series(name, ((float(load), _at(run, load)),)) for name, run in _TECHNIQUES.items())
    title = f"load of {load} %"
    return Panel(title, TIME, "share of the events", drawing.distribution, series, log="x", y_range=(0, 1.02))


_LOADED = tuple(
    scan(name, {float(load): _at(run, load) for load in _LOADS}) for name, run in _TECHNIQUES.items()
)
_PORTS = "ports for hosts"
FIGURES = (
    Figure(
        "multihost",
        "3",
        "§III.A.2",
        "cost of chassis routers over that of software switches",
        (
            Panel(
                "",
                _PORTS,
                "price ratio",
                _ratios("price_ratio"),
                (),
                marks=(Mark("stated: about three times", 3.0),),
            ),
        ),
        "Software switches are about three times cheaper from 100 to 800 ports, more with "
        "oversubscription. Routers are cheaper in few cases at 1 : 1.",
        "{s6p100:.2f} (100 ports) to {s6p800:.2f} (800) with six spines, {s20p100:.2f} to {s20p800:.2f} "
        "without oversubscription.",
        "By arithmetic, with eq. (5) corrected; eight fabric modules a chassis are our assumption.",
        lambda: _facts("price_ratio"),
    ),
    Figure(
        "multihost",
        "4",
        "§III.B",
        "floor area of software switches over that of chassis routers",
        (
            Panel(
                "",
                _PORTS,
                "area ratio",
                _ratios("area_ratio", "multi_host_area"),
                (),
                marks=(Mark("stated: 2 to 4", 2.0), Mark("stated: 2 to 4", 4.0)),
            ),
        ),
        "With oversubscription software switches take two to four times the area. Multi-host controllers "
        "fit up to twice the ports into it.",
        "{s2min:.1f} to {s2max:.1f} with two spines, {s6min:.1f} to {s6max:.1f} with six, {s10min:.1f} to "
        "{s10max:.1f} with ten, from 100 to 800 ports.",
        "Dimensions are not in the paper; see `crates/plan/catalogue.toml`. Steps are whole cabinets and "
        "chassis. So a cabinet more puts some sizes above the stated four times. A network of 100 ports can "
        "need more with multi-host controllers. 72 ports in four units are 1.35 times as dense as 40 in "
        "three.",
        lambda: _facts("area_ratio"),
    ),
    Figure(
        "multihost",
        "6",
        "§IV.C",
        "techniques against incast: sustained load and collection times",
        (
            Panel(
                "",
                "requested load of the uplink (%)",
                "goodput (Gb/s)",
                drawing.values,
                _LOADED,
                value=lambda measured: measured.goodput_gbps,
            ),
            _latency(70),
            _latency(95),
        ),
        "Credits, a tuned static window, PAUSE and rings of 344 Mb/s sustain full load; without control "
        "nothing works above 10 %. Rings of 1.38 Gb/s are best at 70 % and fail at the highest loads. "
        "Rings of 344 Mb/s take longer than credits at full load, with little jitter; PAUSE takes longest.",
        "At full load: credits {a[credits][100].goodput_gbps:.2f}, window "
        "{a[static window][100].goodput_gbps:.2f}, PAUSE {a[PAUSE][100].goodput_gbps:.2f}, rings "
        "{a[rings of 344 Mb/s][100].goodput_gbps:.2f} and {a[rings of 1.38 Gb/s][100].goodput_gbps:.2f}, "
        "no control {a[no control][100].goodput_gbps:.2f} Gb/s. Mean times at 70 % and 95 %: credits "
        "{b[credits].only.mean_ms:.2f} and {c[credits].only.mean_ms:.2f} ms, PAUSE "
        "{b[PAUSE].only.mean_ms:.2f} and {c[PAUSE].only.mean_ms:.2f} ms. Rings of 344 Mb/s: "
        "{b[rings of 344 Mb/s].only.mean_ms:.2f} and {c[rings of 344 Mb/s].only.mean_ms:.2f}, of 1.38 Gb/s "
        "{b[rings of 1.38 Gb/s].only.mean_ms:.2f} and {c[rings of 1.38 Gb/s].only.mean_ms:.2f} ms.",
        "At 100 % each unit asks for its next event at once. Below, events are evenly spaced over the "
        "collectors: they do not start together, so that even without control nothing is lost. The memory "
        "of the chip, which the paper does not state, has 8 MB here. PAUSE has the thresholds of claim "
        "H018; with more memory in the rack it sustains full load (H012).",
    ),
)
