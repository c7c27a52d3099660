"""Predict, measure and avoid TCP incast, from Python.

>>> import fanin
>>> fanin.bytes("1.1 kB")
1100
>>> fanin.rate.text(10_000_000_000)
'10 Gb/s'
>>> fanin.Scenario.load("thesis-a-1000hz").settings["supervisor"]["rate"]
'1 kHz'
>>> fanin.Scenario.load("thesis-a-1000hz").plan()["ideal"]["collection_time_ms"]
18.4937056
>>> fanin.Scenario.load("incast").simulate(duration="50 ms").summary["requests"]["completed"] > 0
True
"""

from fanin import _fanin
from fanin.command import Advice, AdviceLine
from fanin.effects import Effect, Sensitivity, sensitivity
from fanin.processor import collect, processor
from fanin.result import RecordTable, Result, RunWarning, load
from fanin.scenario import (
    Problem,
    Scenario,
    ScenarioError,
    ScenarioWarning,
    Settings,
    presets,
    problems,
)
from fanin.sweeping import Point, Sweep, sweep
from fanin.tuning import TunedPoint, Tuning, tune

# Not in `__all__`: `from fanin import *` must not hide the built-in `bytes`.
from fanin.units import Quantity, duration, frequency, packets, rate, ratio
from fanin.units import bytes as bytes

__version__: str = _fanin.VERSION
version: str = __version__

__all__ = [
    "Advice",
    "AdviceLine",
    "Effect",
    "Point",
    "Problem",
    "Quantity",
    "RecordTable",
    "Result",
    "RunWarning",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "Sensitivity",
    "Settings",
    "Sweep",
    "TunedPoint",
    "Tuning",
    "__version__",
    "collect",
    "duration",
    "frequency",
    "load",
    "packets",
    "presets",
    "problems",
    "processor",
    "rate",
    "ratio",
    "sensitivity",
    "sweep",
    "tune",
    "version",
]
