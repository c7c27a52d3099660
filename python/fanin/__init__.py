"""Predict, measure and avoid TCP incast, from Python.

>>> import fanin
>>> fanin.bytes("1.1 kB")
1100
>>> fanin.rate.text(10_000_000_000)
'10 Gb/s'
"""

from fanin import _fanin
from fanin.units import Quantity, bytes, duration, frequency, packets, rate, ratio

version: str = _fanin.VERSION

__all__ = ["Quantity", "bytes", "duration", "frequency", "packets", "rate", "ratio", "version"]
