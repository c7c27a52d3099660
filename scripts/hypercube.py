"""Draws validation cases by a Latin hypercube over what decides about incast, for `fanin validate`.

    python scripts/hypercube.py FOLDER --cases 20              new cases; the seed is drawn and printed
    python scripts/hypercube.py FOLDER --cases 20 --seed 7     the same cases again
    fanin validate FOLDER                                      simulates and measures them

Each axis is divided into as many strata as there are cases, and each stratum is used once (McKay, 1979).
Seven of ten cases are barrier reads, the others event building, half of it in racks behind a core. The cases
`scenarios/validation/drawn/` are those of `--cases 47 --seed 20261126`.
"""

import argparse
import math
import os
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
BASES = ROOT / "scenarios" / "validation"
# A round may take so long on the wire: a run of twelve seconds then holds thirty of them.
ROUND_SECONDS_MAX = 0.4
CONTROL_NAMES = {
    "cubic": "CUBIC",
    "newreno": "Reno",
    "dctcp": "DCTCP",
    "bbr": "BBR",
    "static": "Static window",
    "diatcp": "DIATCP",
    "m21tcp": "M21TCP",
}
# Congestion controls, as often as they are drawn.
CONTROLS = ("cubic",) * 6 + ("newreno",) * 3 + ("dctcp", "dctcp", "bbr", "static", "diatcp", "m21tcp")
FRAME_BYTES = 1538

Axes = dict[str, float]
Settings = dict[str, Any]
T = TypeVar("T")


def hypercube(random_source: random.Random, names: Sequence[str], cases: int) -> list[Axes]:
    """Draw points in the unit cube, one in each of `cases` strata of every axis."""
    columns = {}
    for name in names:
        strata = list(range(cases))
        random_source.shuffle(strata)
        columns[name] = [(stratum + random_source.random()) / cases for stratum in strata]
    return [{name: columns[name][case] for name in names} for case in range(cases)]


def pick(at: float, choices: Sequence[T]) -> T:
    """Choose among equally likely values."""
    return choices[int(at * len(choices))]


def logarithmic(at: float, low: float, high: float) -> float:
    """Place `at` between two values by ratio."""
    return low * math.exp(at * math.log(high / low))


def rounded(value: float) -> int:
    """Round to two significant digits."""
    digits = max(0, math.floor(math.log10(value)) - 1)
    return int(round(value, -digits))


def kilobytes(value: float) -> str:
    """Write a size, rounded."""
    return f"{rounded(value) / 1000:g} kB"


AXES = (
    "family",
    "senders",
    "size",
    "buffer",
    "rate",
    "sender_rate",
    "delay",
    "rto",
    "control",
    "threshold",
    "ecn",
    "options",
    "rings",
    "ring_rate",
    "window",
    "pattern",
    "spread",
    "credits",
    "racks",
    "uplink",
    "pause",
    "policy",
)


def network(axes: Axes, rates: Sequence[int] = (20, 50, 100, 200)) -> tuple[Settings, int]:
    """Return settings that both families share, and the rate of a collector in Mb/s."""
    rate = pick(axes["rate"], rates)
    delay = f"{rounded(logarithmic(axes['delay'], 50, 250))} us"
    sender_rate = pick(axes["sender_rate"], (f"{rate} Mb/s", "1 Gb/s", "10 Gb/s", "10 Gb/s"))
    control = pick(axes["control"], CONTROLS)
    settings: Settings = {
        "link": {"rate": f"{rate} Mb/s", "delay": delay},
        "readout.link": {"rate": sender_rate, "delay": delay},
        "transport": {
            "congestion_control": control,
            "rto_min": f"{pick(axes['rto'], (10, 40, 200, 200))} ms",
        },
        "tor": {"buffer": f"{rounded(logarithmic(axes['buffer'], 24, 300))} kB"},
    }
    # BBR needs SACK, and DCTCP negotiates ECN by itself.
    if axes["options"] < 0.15 and control != "bbr":
        settings["transport"] |= {"sack": False, "timestamps": False}
    if axes["ecn"] < 0.2 and control in ("cubic", "newreno"):
        settings["transport"]["ecn"] = True
    if control == "dctcp" or "ecn" in settings["transport"]:
        threshold = rounded(logarithmic(axes["threshold"], 5, 60))
        settings["tor.ecn"] = {"mode": "threshold", "threshold": f"{threshold} packets"}
    window = rounded(logarithmic(axes["window"], 2, 8))
    if control == "static":
        settings["transport"]["static_window"] = f"{window} packets"
    if control == "diatcp":
        settings["transport.diatcp"] = {"global_window": f"{8 * window} packets"}
    if control == "m21tcp":
        settings["transport"]["delayed_ack"] = False
        settings["tor"]["m21"] = True
    if axes["rings"] < 0.15 and control not in ("m21tcp", "dctcp") and "tor.ecn" not in settings:
        settings["tor"] = {"buffering": "daqring"}
        settings["tor.daqring"] = {"rate": f"{rounded(rate * (0.5 + axes['ring_rate'] / 2))} Mb/s"}
    return settings, rate


def barrier(axes: Axes) -> Settings:
    """Draw a case of barrier reads."""
    settings, rate = network(axes)
    senders = round(logarithmic(axes["senders"], 3, 40))
    wire_bytes = ROUND_SECONDS_MAX * rate * 1e6 / 8
    size = min(logarithmic(axes["size"], 1000, 64_000), wire_bytes / senders)
    is_block = axes["pattern"] < 0.25
    settings["workload"] = {
        "kind": "fixed-block" if is_block else "fixed-fragment",
        "senders": senders,
        "request_size": kilobytes(size * (senders if is_block else 1)),
        "service_delay_max": f"{rounded(logarithmic(axes['spread'], 300, 10_000))} us",
    }
    return settings


def building(axes: Axes) -> Settings:
    """Draw a case of event building at a load of a third to a half."""
    is_racks = axes["racks"] < 0.5
    # Several switches share the two cores of a small machine.
    settings, rate = network(axes, (20, 50, 100, 100)) if is_racks else network(axes)
    readouts = round(logarithmic(axes["senders"], 8, 24))
    size = logarithmic(axes["size"], 1000, 8000)
    event_bits = 8 * 4 * readouts * size * FRAME_BYTES / 1448
    settings["readout"] = {"hosts": readouts, "fragment_size": kilobytes(size)}
    settings["supervisor"] = {
        "policy": pick(axes["policy"], ("node-round-robin", "node-load-balancing", "fcfs"))
    }
    collectors = 2
    if axes["credits"] < 0.4:
        settings["shaping"] = {"credits": rounded(logarithmic(axes["credits"] / 0.4, 4, 64))}
    elif axes["credits"] < 0.7:
        settings["shaping"] = {"method": "paced-credits"}
    if is_racks:
        racks = pick(axes["racks"] * 2, (2, 2, 3))
        collectors = racks
        settings["collectors"] = {"racks": racks, "hosts_per_rack": 1}
        settings["network"] = {"topology": "racks", "cores": 1, "readouts_per_group": 0}
        settings["uplink"] = {"rate": f"{pick(axes['uplink'], (1, 2, 5)) * rate} Mb/s", "delay": "50 us"}
        settings["core"] = {"buffering": "unlimited"}
        if "buffer" in settings["tor"]:
            settings["tor"]["uplink_buffer"] = "1 MB"
        # Switches obey PAUSE, hosts on this kernel do not: the core that is stopped holds everything.
        if axes["pause"] < 0.5 and "buffer" in settings["tor"]:
            buffer = int(settings["tor"]["buffer"].split()[0])
            settings["tor.pause"] = {
                "mode": "pause", "xoff": f"{max(buffer // 3, 4)} kB", "xon": f"{max(buffer // 6, 2)} kB",
            }  # fmt: skip
    load = 0.33 + 0.17 * axes["pattern"]
    settings["supervisor"]["rate"] = f"{float(f'{load * collectors * rate * 1e6 / event_bits:.2g}'):g} Hz"
    return settings


def written(value: Any) -> str:
    """Write a value as TOML."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case _:
            return f'"{value}"'


def case_file(settings: Settings, base: str, title: str) -> str:
    """Return the text of a case."""
    lines = [f'extends = "{base}"', f'title = "{title}"', "", "[run]", 'duration = "12 s"']
    for section in sorted(settings):
        lines += [
            "",
            f"[{section}]",
            *(f"{key} = {written(value)}" for key, value in settings[section].items()),
        ]
    return "\n".join(lines) + "\n"


def title_of(settings: Settings) -> str:
    """Describe a case in one line."""
    control = CONTROL_NAMES[settings["transport"]["congestion_control"]]
    work = settings.get("workload")
    if work:
        many = f"{work['senders']} senders, {work['request_size']}" + (
            " together" if "block" in work["kind"] else ""
        )
    else:
        many = f"building from {settings['readout']['hosts']}"
    extras = [
        name
        for name, is_there in (
            ("rings", "tor.daqring" in settings),
            ("ECN", settings["transport"].get("ecn", False)),
            ("no SACK", settings["transport"].get("sack") is False),
            ("credits", "credits" in settings.get("shaping", {})),
            ("paced credits", "method" in settings.get("shaping", {})),
            ("core", "core" in settings),
            ("PAUSE", "tor.pause" in settings),
        )
        if is_there
    ]
    buffer = [value for key, value in settings["tor"].items() if key == "buffer"]
    return ", ".join([control, many, settings["link"]["rate"], *buffer, *extras])


def draw(seed: int, cases: int) -> list[tuple[str, Settings]]:
    """Draw `cases` cases as the name of their base and their settings."""
    points = hypercube(random.Random(seed), AXES, cases)
    families: dict[str, Callable[[Axes], Settings]] = {"_barrier.toml": barrier, "_building.toml": building}
    bases = ["_barrier.toml" if axes["family"] < 0.7 else "_building.toml" for axes in points]
    return [(base, families[base](axes)) for base, axes in zip(bases, points, strict=True)]


def main() -> int:
    """Write the cases into the folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the cases are written; made if missing")
    parser.add_argument("--cases", type=int, default=20, help="how many (20)")
    parser.add_argument("--seed", type=int, help="the seed; drawn and printed if absent")
    options = parser.parse_args()
    if options.cases < 1:
        parser.error(f"--cases {options.cases}: at least one case")
    if any(options.folder.glob("drawn-*.toml")):
        parser.error(f"{options.folder} has cases already: choose another folder")
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4))
    options.folder.mkdir(parents=True, exist_ok=True)
    here = options.folder.resolve()
    for number, (base, settings) in enumerate(draw(seed, options.cases), 1):
        extends = f"../{base}" if here.parent == BASES else str(BASES / base)
        text = case_file(settings, extends, title_of(settings))
        (here / f"drawn-{number:02}.toml").write_text(text)
    print(f"{options.cases} cases of seed {seed} in {options.folder}: fanin validate {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
