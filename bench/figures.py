"""Figures taken in rounds: their median, their spread, and a comparison with a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median, quantiles
from typing import Any


class Verdict(StrEnum):
    MET = "met"
    MISSED = "missed"
    SKIPPED = "skipped"
    NONE = ""
    """There is no budget for it."""


@dataclass(frozen=True)
class Unit:
    """How a figure is written: its scale, digits and symbol."""

    symbol: str
    scale: float = 1.0
    digits: int = 2

    def write(self, value: float) -> str:
        return f"{value * self.scale:.{self.digits}f} {self.symbol}"


MILLISECONDS = Unit("ms", 1e3, 1)
MICROSECONDS = Unit("µs", 1e6)
TIMES = Unit("×")
MEBIBYTES = Unit("MiB", 1 / 1024**2, 1)


@dataclass
class Line:
    """One line of the budget table."""

    what: str
    unit: Unit
    budget: float | None = None
    at_least: bool = False
    """The budget is a lower bound."""
    rounds: list[float] = field(default_factory=list)
    beside: str = ""
    """The absolute figures behind a ratio."""
    skipped: str = ""
    """Why there is no figure."""

    @property
    def figure(self) -> float:
        return median(self.rounds)

    @property
    def spread(self) -> tuple[float, float]:
        """The middle half of the rounds."""
        if len(self.rounds) < 2:
            return self.figure, self.figure
        low, _, high = quantiles(self.rounds, n=4, method="inclusive")
        return low, high

    @property
    def verdict(self) -> Verdict:
        if self.skipped:
            return Verdict.SKIPPED
        if self.budget is None:
            return Verdict.NONE
        met = self.figure >= self.budget if self.at_least else self.figure <= self.budget
        return Verdict.MET if met else Verdict.MISSED

    def cells(self) -> tuple[str, ...]:
        """A row of the table."""
        budget = "" if self.budget is None else ("≥ " if self.at_least else "≤ ") + self.unit.write(self.budget)
        if self.skipped:
            return self.what, "", "", budget, f"{self.verdict}: {self.skipped}", ""
        low, high = self.spread
        spread = f"{low * self.unit.scale:.{self.unit.digits}f} – {high * self.unit.scale:.{self.unit.digits}f}"
        return self.what, self.unit.write(self.figure), spread, budget, str(self.verdict), self.beside

    def to_dict(self) -> dict[str, Any]:
        """In base units: seconds, bytes, or a ratio."""
        return {
            "what": self.what,
            "figure": None if self.skipped else self.figure,
            "rounds": self.rounds,
            "budget": self.budget,
            "at_least": self.at_least,
            "verdict": str(self.verdict),
            "beside": self.beside,
            "skipped": self.skipped,
        }


def undisturbed(seconds: Sequence[float]) -> float:
    """The lower quartile: what else runs on the machine can only add to a time, and adds least here."""
    if len(seconds) < 2:
        return seconds[0]
    return quantiles(seconds, n=4, method="inclusive")[0]


def middle(seconds: Sequence[float]) -> str:
    """The median, in milliseconds."""
    return f"{median(seconds) * 1e3:.2f} ms"
