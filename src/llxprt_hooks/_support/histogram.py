"""Values counted by size, for metrics and statistics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Bounds for how long hooks and events take."""


class Histogram:
    """Counts values by size; a bin has those up to its bound, the last bin those above all bounds."""

    def __init__(self, bounds: Sequence[float], values: Iterable[float] = ()) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        for value in values:
            self.add(value)

    def add(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Yield each bound and how many values do not exceed it; in the end infinity and how many there are."""
        return zip((*self._bounds, float("inf")), accumulate(self.counts), strict=True)
