"""Predict, measure and avoid TCP incast, from Python.

>>> import fanin
>>> fanin.bytes("1.1 kB")
1100
>>> fanin.rate.text(10_000_000_000)
'10 Gb/s'
>>> fanin.Scenario.load("thesis-a-1000hz").settings["supervisor"]["rate"]
'1 kHz'
>>> fanin.Scenario.load("thesis-a-1000hz").plan()["ideal"]["collection_time_ms"]
18.448
"""

from fanin import _fanin
from fanin.processor import collect, processor
from fanin.scenario import Problem, Scenario, ScenarioError, ScenarioWarning, presets, problems
from fanin.units import Quantity, bytes, duration, frequency, packets, rate, ratio

version: str = _fanin.VERSION

__all__ = [
    "Problem",
    "Quantity",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "bytes",
    "collect",
    "duration",
    "frequency",
    "packets",
    "presets",
    "problems",
    "processor",
    "rate",
    "ratio",
    "version",
]
