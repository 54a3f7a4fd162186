"""The synthetic series of the library: system, initial values and sampling times of each.

Each entry becomes one CSV file. Parameters and initial values are given as decimal strings, so
that 30-digit arithmetic sees the decimal number and not its nearest double.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mpmath import mp, mpf

from library_data import systems
from library_data.integrator import RightHandSide, Vector, trajectory

Column = Callable[[Vector], mpf]


@dataclass(frozen=True)
class Series:
    """One noiseless CSV file.

    Attributes
    ----------
        problem: name of the library problem.
        file: name of the CSV file in the problem's folder.
        times: sampling times as decimal strings, as in the file.
        columns: observable name -> its value from the state, in the file's order.
        system: the right-hand side f(t, x); None for an exact solution.
        start: time of the initial state.
        initial: the initial state.
        exact: for an exact solution, the state as a function of time.
    """

    problem: str
    file: str
    times: Sequence[str]
    columns: Mapping[str, Column]
    system: RightHandSide | None = None
    start: str = "0"
    initial: Sequence[str] = ()
    exact: Callable[[mpf], Vector] | None = None

    def states(self) -> list[Vector]:
        times = [mpf(t) for t in self.times]
        if self.exact is not None:
            return [self.exact(t) for t in times]
        assert self.system is not None
        return trajectory(self.system, mpf(self.start), [mpf(v) for v in self.initial], times)

    def text(self) -> str:
        """The file's contents: a header and one line a time, 12 significant digits."""
        lines = [",".join(["t", *self.columns])]
        for time, state in zip(self.times, self.states(), strict=True):
            values = [f"{float(column(state)):.12g}" for column in self.columns.values()]
            lines.append(",".join([time, *values]))
        return "\n".join(lines) + "\n"


def _decimal(value: Fraction) -> str:
    return f"{value.numerator / value.denominator:.12g}"


def after_start(end: str, count: int) -> list[str]:
    """`count` equidistant times in (0, end]: end/count, 2 end/count, ..., end."""
    return [_decimal(Fraction(end) * i / count) for i in range(1, count + 1)]


def with_start(end: str, count: int) -> list[str]:
    """`count` equidistant times in [0, end], both ends included."""
    return [_decimal(Fraction(end) * i / (count - 1)) for i in range(count)]


def state(index: int) -> Column:
    return lambda x: x[index]


def total(*indices: int) -> Column:
    return lambda x: sum((x[i] for i in indices), mpf(0))


def numbered(*columns: Column) -> dict[str, Column]:
    return {f"y{i}": column for i, column in enumerate(columns, 1)}


def decimals(text: str) -> list[mpf]:
    return [mpf(word) for word in text.split()]


def _transcription() -> list[Series]:
    """Appendix A of local-and-global-solvers at the nominal values of FACTS.md.

    Sampling: the paper says only "n measurements uniformly distributed in [0, T]", and that the
    measurement times are mesh points. Its mesh sizes (Table 2) then leave T/n, ..., T for the
    problems with 10 or 20 times, and both ends included for BBG (7) and FHN (6).
    """
    twenty = after_start("1", 20)
    hiv = systems.hiv(*decimals(" ".join(["0.1"] * 10)))
    crauste = systems.crauste(*decimals("1 1 1.3 1 0.9 1 1.2 1.1 1.1 1.2 1 0.5 1"))
    lotka = systems.lotka_volterra(*decimals("0.02 0.03 0.05"))
    mammillary = systems.mammillary_3(*decimals("0.5 0.6 -0.2 0.2 0.3"))
    five = numbered(*(state(i) for i in range(5)))
    ones = ["1"] * 5
    file = "data.csv"
    return [
        Series(
            "bbg",
            file,
            with_start("12", 7),
            numbered(state(0), state(1)),
            systems.batch_growth(*decimals("0.4 5 0.05 0.5")),
            initial=["2", "30"],
        ),
        Series(
            "fitzhugh-nagumo",
            file,
            with_start("20", 6),
            numbered(state(0)),
            systems.fitzhugh_nagumo(*decimals("0.2 0.2 3")),
            initial=["-1", "1"],
        ),
        Series(
            "harmonic",
            file,
            after_start("2.3", 10),
            numbered(state(0), state(1)),
            systems.harmonic(*decimals("9.8 1.3")),
            initial=["1", "1"],
        ),
        Series(
            "lotka-volterra-f",
            file,
            twenty,
            numbered(state(0), state(1)),
            lotka,
            initial=["100", "100"],
        ),
        Series("lotka-volterra-p", file, twenty, numbered(state(0)), lotka, initial=["100", "100"]),
        Series(
            "mammillary-3-f",
            file,
            twenty,
            numbered(state(0), state(1), state(2)),
            mammillary,
            initial=["1", "2", "1"],
        ),
        Series(
            "mammillary-3-p",
            file,
            twenty,
            numbered(state(0), state(1)),
            mammillary,
            initial=["1", "2", "1"],
        ),
        Series("hiv-f", file, twenty_to("10"), five, hiv, initial=ones),
        Series(
            "hiv-p",
            file,
            twenty_to("10"),
            numbered(state(0), total(1, 2), state(3), state(4)),
            hiv,
            initial=ones,
        ),
        Series("crauste-f", file, twenty, five, crauste, initial=ones),
        Series(
            "crauste-p",
            file,
            twenty,
            numbered(state(0), state(1), total(2, 3), state(4)),
            crauste,
            initial=ones,
        ),
    ]


def twenty_to(end: str) -> list[str]:
    return after_start(end, 20)


def _multiple_shooting() -> list[Series]:
    """Our own settings, after Carbonell et al., whose numbers are missing in the text."""
    return [
        Series(
            "henon-heiles",
            "data.csv",
            with_start("50", 101),
            {"x": state(0), "y": state(1), "px": state(2), "py": state(3)},
            systems.henon_heiles(*decimals("1 1 1 1")),
            initial=["0", "0.1", "0.56", "0.1"],  # energy 0.1664667, chaotic
        ),
        Series(
            "fitzhugh-nagumo-v",
            "data.csv",
            with_start("20", 101),
            {"V": state(0)},
            systems.fitzhugh_nagumo(*decimals("0.2 0.2 3")),
            initial=["-1", "1"],
        ),
        Series(
            "rikitake",
            "data.csv",
            with_start("50", 201),
            {"x": state(0), "y": state(1), "z": state(2)},
            systems.rikitake(*decimals("1 5")),
            initial=["1", "1", "1"],
        ),
        Series(
            "bock",
            "data.csv",
            after_start("1", 10),
            {"x1": state(0), "x2": state(1)},
            exact=lambda t: [mp.sinpi(t), mp.pi * mp.cospi(t)],
        ),
    ]


def _separable() -> list[Series]:
    """Section 3.1 of separable-least-squares, two sample sizes each."""
    seasonal = systems.seasonal_lotka_volterra(
        mpf(2) / 3, mpf(4) / 3, mpf(1), mpf(1), mpf("0.2"), mpf("0.5")
    )
    gma = systems.gma(*decimals("0.4 -1 -1 3 0.5 -0.1 2 0.75 -0.2 1.5 0.5 5 0.5"))
    voltage = systems.fitzhugh_nagumo(*decimals("0.2 0.2 3"))
    epidemic = systems.sir(*decimals("6 2.3333"))
    series = []
    for n in (18, 36):
        times = [str(i) for i in range(1, n + 1)]
        series.append(
            Series("sir", f"data_n{n}.csv", times, {"I": state(1)}, epidemic, "1", ["0.56", "1e-4"])
        )
    two = {"x1": state(0), "x2": state(1)}
    three = two | {"x3": state(2)}
    for n in (100, 200):
        file = f"data_n{n}.csv"
        series.append(
            Series(
                "seasonal-lotka-volterra",
                file,
                with_start("25", n),
                two,
                seasonal,
                initial=["0.9", "0.9"],
            )
        )
        series.append(
            Series("gma", file, with_start("4", n), three, gma, initial=["0.5", "0.5", "1"])
        )
    series += [
        Series(
            "fitzhugh-nagumo-separable",
            f"data_n{n}.csv",
            with_start("20", n),
            two,
            voltage,
            initial=["-1", "1"],
        )
        for n in (20, 40)
    ]
    return series


def all_series() -> list[Series]:
    """Every synthetic CSV that this generator owns."""
    return [*_transcription(), *_multiple_shooting(), *_separable()]
