"""Numbers of runs for figures: of events assigned in the measured time, over all seeds."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from fanin.figures.spec import Panel, Run, Series
from fanin.result import Result, RunWarning

__all__ = ["Caption", "Measured", "quantile"]

_PS_PER_MS = 1e9
#: A collection time above this multiple of the ideal is incast.
_ONSET = 3.0
#: A window that stays for longer waits for a timeout; rounds without one are much shorter.
_FLAT_MS = 150.0
#: Half of the 932 Mb/s that 1 Gb/s carries with segments of 576 B.
_HALF_MBPS = 466.0


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value that a share of ascending values does not exceed; infinite where there are none."""
    if not ordered:
        return math.inf
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Measured:
    """The results of one run, for all its seeds."""

    def __init__(self, results: Sequence[Result], warmup_ms: float) -> None:
        """Take the results; events assigned before the warm-up's end do not count."""
        self._results = tuple(results)
        self._warmup_ps = warmup_ms * _PS_PER_MS

    @cached_property
    def _events(self) -> list[tuple[float, int]]:
        """Collection time and timeouts of each measured event."""
        events: list[tuple[float, int]] = []
        for result in self._results:
            table = result.events
            rows = zip(table["assigned_ps"], table["collection_time_ps"], table["timeouts"], strict=True)
            events += [
                (time / _PS_PER_MS, timeouts)
                for assigned, time, timeouts in rows
                if time is not None and assigned >= self._warmup_ps
            ]
        return events

    @cached_property
    def times_ms(self) -> list[float]:
        """Collection times, ascending."""
        return sorted(time for time, _ in self._events)

    @property
    def events(self) -> int:
        """The number of collected events."""
        return len(self._events)

    @cached_property
    def mean_ms(self) -> float:
        """Mean collection time; infinite where no event was collected."""
        return sum(self.times_ms) / len(self.times_ms) if self.times_ms else math.inf

    @cached_property
    def sd_ms(self) -> float:
        """Standard deviation of the collection times."""
        if not self.times_ms:
            return math.nan
        return math.sqrt(sum((time - self.mean_ms) ** 2 for time in self.times_ms) / len(self.times_ms))

    @property
    def least_ms(self) -> float:
        """The shortest collection time."""
        return quantile(self.times_ms, 0.0)

    @property
    def most_ms(self) -> float:
        """The longest collection time."""
        return quantile(self.times_ms, 1.0)

    @property
    def median_ms(self) -> float:
        """The median collection time."""
        return quantile(self.times_ms, 0.5)

    @property
    def p1_ms(self) -> float:
        """First percentile of the collection times."""
        return quantile(self.times_ms, 0.01)

    @property
    def p99_ms(self) -> float:
        """The 99th percentile of the collection times."""
        return quantile(self.times_ms, 0.99)

    def percent_below(self, limit_ms: float) -> float:
        """Return the percentage of events that take less than a time."""
        if not self.times_ms:
            return math.nan
        return 100.0 * sum(time < limit_ms for time in self.times_ms) / len(self.times_ms)

    @property
    def below_20(self) -> float:
        """Percentage of events collected in less than 20 ms."""
        return self.percent_below(20.0)

    @property
    def below_40(self) -> float:
        """Percentage of events collected in less than 40 ms."""
        return self.percent_below(40.0)

    @property
    def below_200(self) -> float:
        """Percentage of events collected in less than 200 ms."""
        return self.percent_below(200.0)

    @property
    def above_200(self) -> float:
        """Percentage of events that take 200 ms or more."""
        return 100.0 - self.below_200

    @property
    def above_350(self) -> float:
        """Percentage of events that take 350 ms or more: several timeouts."""
        return 100.0 - self.percent_below(350.0)

    @property
    def hit(self) -> float:
        """Percentage of events that suffered a timeout."""
        if not self._events:
            return math.nan
        return 100.0 * sum(timeouts > 0 for _, timeouts in self._events) / len(self._events)

    def summed(self, *path: str) -> float:
        """Return the sum of a figure of the summaries over all seeds; zero where it is absent."""
        return sum(self._each(*path))

    def averaged(self, *path: str) -> float:
        """Return the mean of a figure of the summaries over all seeds; zero where it is absent."""
        return self.summed(*path) / len(self._results)

    def _each(self, *path: str) -> Iterator[float]:
        for result in self._results:
            value: Any = result.summary
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            yield float(value) if isinstance(value, int | float) else 0.0

    @property
    def drops(self) -> int:
        """Frames that switches dropped."""
        return int(self.summed("network", "drops"))

    @property
    def timeouts(self) -> int:
        """Retransmission timeouts of all connections."""
        return int(self.summed("tcp", "timeouts"))

    @property
    def ideal_ms(self) -> float:
        """The summary's ideal: the first answer takes the mean response delay. Events may be faster."""
        return self.averaged("collection_time_ms", "ideal") or self.averaged("requests", "time_ms", "ideal")

    @property
    def own_ideal_ms(self) -> float:
        """Mean of the events' own ideals, from their first answer on; no event is faster than its own."""
        ideals: list[int] = []
        for result in self._results:
            table = result.events
            rows = zip(table["assigned_ps"], table["collection_time_ps"], table["ideal_ps"], strict=True)
            ideals += [
                ideal
                for assigned, time, ideal in rows
                if time is not None and ideal is not None and assigned >= self._warmup_ps
            ]
        return sum(ideals) / len(ideals) / _PS_PER_MS if ideals else math.nan

    @property
    def flats(self) -> int:
        """The number of periods, each about a minimum RTO long, in which a watched window does not change."""
        table = self.table("windows")
        changed, last, count = 0.0, None, 0
        for time, size in zip(table["time_ps"], table["cwnd_bytes"], strict=True):
            if size != last:
                count += time - changed > _FLAT_MS * _PS_PER_MS
                changed, last = time, size
        return count

    @property
    def goodput_mbps(self) -> float:
        """Fragments received, in Mb/s."""
        return self.averaged("goodput_bps", "total") / 1e6

    @property
    def goodput_gbps(self) -> float:
        """Fragments received, in Gb/s."""
        return self.goodput_mbps / 1e3

    @property
    def last_hop(self) -> float:
        """Load of the busiest collector's link, in percent."""
        return 100.0 * self.averaged("load", "last_hop")

    @property
    def queue_kb(self) -> float:
        """The most bytes that waited in one queue, in kB."""
        return max(self._each("network", "queue_bytes_max")) / 1e3

    @property
    def credit_kb(self) -> float:
        """The most credit that a receiver of SIRD had outstanding, in kB."""
        return max(self._each("sird", "credit_outstanding_bytes_max")) / 1e3

    @property
    def in_flight_kb(self) -> float:
        """The most bytes that a watched connection had in flight, in kB."""
        return max(self.table("windows")["in_flight_bytes"], default=0) / 1e3

    @property
    def reverse_kb(self) -> float:
        """Bytes from the collector to the readouts for the recorded event, in kB."""
        return max(self.table("io")["from_collector_bytes"], default=0) / 1e3

    @cached_property
    def watched_kb(self) -> float:
        """The most bytes of a watched queue at a sample of the measured time, in kB."""
        table = self.table("queues")
        rows = zip(table["time_ps"], table["queue_bytes"], strict=True)
        return max((size for time, size in rows if time >= self._warmup_ps), default=0) / 1e3

    @property
    def eb_ms(self) -> float:
        """Mean time of the step EB."""
        return self.averaged("step_EB", "time_ms_mean")

    def table(self, name: str) -> Any:
        """Return a table of the first seed."""
        with warnings.catch_warnings():
            # A tiny run ends before the event that a figure shows.
            warnings.simplefilter("ignore", RunWarning)
            return getattr(self._results[0], name)

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of the first seed."""
        return self._results[0].summary


class _Values:
    """A series as captions read it: runs by x, and the best of them."""

    def __init__(self, series: Series, look: Callable[[Run], Measured]) -> None:
        self._runs = dict(series.runs)
        self._look = look

    def __getitem__(self, x: int | str) -> Measured:
        return self._look(self._runs[float(x)])

    @property
    def only(self) -> Measured:
        """The one run of a series that has one."""
        (run,) = self._runs.values()
        return self._look(run)

    def _means(self) -> Mapping[float, float]:
        return {x: self._look(run).mean_ms for x, run in self._runs.items()}

    @property
    def least(self) -> float:
        """The least mean."""
        return min(self._means().values())

    @property
    def most(self) -> float:
        """The largest mean."""
        return max(self._means().values())

    @property
    def best(self) -> float:
        """The x of the least mean."""
        means = self._means()
        return min(means, key=lambda x: means[x])

    @property
    def onset(self) -> str:
        """The first x whose mean is more than three times the mean of its events' ideals."""
        for x, run in self._runs.items():
            if self._look(run).mean_ms > _ONSET * self._look(run).own_ideal_ms:
                return f"{x:g}"
        return "none"

    @property
    def lossless(self) -> str:
        """The largest x up to which nothing is dropped."""
        last = "none"
        for x, run in self._runs.items():
            if self._look(run).drops:
                break
            last = f"{x:g}"
        return last

    @property
    def first_lossless(self) -> str:
        """The least x from which on nothing is dropped."""
        first = "none"
        for x, run in reversed(self._runs.items()):
            if self._look(run).drops:
                break
            first = f"{x:g}"
        return first

    @property
    def collapse(self) -> str:
        """The first x with less goodput than half of a link of 1 Gb/s."""
        for x, run in self._runs.items():
            if self._look(run).goodput_mbps < _HALF_MBPS:
                return f"{x:g}"
        return "none"


class _Panel:
    """A panel as captions read it: series by their labels."""

    def __init__(self, panel: Panel, look: Callable[[Run], Measured]) -> None:
        self._series = {one.label: one for one in panel.series}
        self._look = look

    def __getitem__(self, label: str) -> _Values:
        return _Values(self._series[label], self._look)


class Caption(Mapping[str, _Panel]):
    """The panels of a figure by letter, for `str.format_map`."""

    def __init__(self, panels: Sequence[Panel], look: Callable[[Run], Measured]) -> None:
        """Name the panels `a`, `b` and so on."""
        self._panels = {chr(ord("a") + place): _Panel(panel, look) for place, panel in enumerate(panels)}

    def __getitem__(self, letter: str) -> _Panel:
        """Return a panel by its letter."""
        return self._panels[letter]

    def __iter__(self) -> Iterator[str]:
        """Go through the letters."""
        return iter(self._panels)

    def __len__(self) -> int:
        """Return the number of panels."""
        return len(self._panels)
