"""Random small models that start from rest, from equilibria or from symmetric states.

At these values the outputs' derivatives may be zero, or independent of unknowns, for many orders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class SpecialModel:
    """A model with known initial values, in the words of problem files."""

    family: str  # the kind of model
    ode: Mapping[str, str]  # ode, outputs: Right-hand sides by state, and expressions by observable
    outputs: Mapping[str, str]
    unknowns: tuple[str, ...]  # names of the parameters, all unknown
    initial: Mapping[str, float | str]  # initial values: numbers, or expressions in parameters


@dataclass
class Draft:
    """A model while it is put together."""

    rng: np.random.Generator
    ode: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    initial: dict[str, float | str] = field(default_factory=dict)
    unknowns: list[str] = field(default_factory=list)

    def unknown(self, name: str) -> str:
        """Return the name of an unknown parameter, and add it if it is new."""
        if name not in self.unknowns:
            self.unknowns.append(name)
        return name

    def state(self, name: str, rate: str, start: float | str = 0.0) -> None:
        self.ode[name], self.initial[name] = rate, start

    def whole(self, *values: int) -> int:
        return int(self.rng.choice(values))

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def observed(self, expression: str) -> None:
        """Observe an expression, sometimes with an unknown scale."""
        if self.chance(0.2):
            expression = f"{self.unknown('s')}*({expression})"
        self.outputs[f"y{len(self.outputs) + 1}"] = expression


def _cascade(draft: Draft) -> None:
    """Return a cascade from rest: each stage drives the next by a power of itself."""
    n = draft.whole(2, 3, 3, 4)
    shared = draft.chance(0.25)
    draft.state("x1", f"{draft.unknown('k1')} - {draft.unknown('d1')}*x1")
    for j in range(2, n + 1):
        power = draft.whole(1, 2, 2, 3, 4) if n < 4 else draft.whole(1, 2, 2, 3)
        loss = draft.unknown("d1" if shared else f"d{j}")
        made = f"{draft.unknown(f'k{j}')}*" if draft.chance(0.8) else ""
        draft.state(f"x{j}", f"{made}x{j - 1}^{power} - {loss}*x{j}")
    draft.observed(f"x{n}")
    if draft.chance(0.15):
        draft.observed(f"x{draft.whole(*range(1, n))}")


def _hill_chain(draft: Draft) -> None:
    """Return a chain from rest: each stage drives the next by a Hill function."""
    n = draft.whole(2, 3)
    draft.state("x1", f"{draft.unknown('v1')} - {draft.unknown('d1')}*x1")
    for j in range(2, n + 1):
        h = draft.whole(1, 2, 3, 4, 8) if n == 2 else draft.whole(1, 2, 4)
        half = draft.unknown("h" if draft.chance(0.5) else f"h{j}")
        rate = f"{draft.unknown(f'v{j}')}*x{j - 1}^{h}/({half}^{h} + x{j - 1}^{h})"
        draft.state(f"x{j}", f"{rate} - {draft.unknown(f'd{j}')}*x{j}")
    draft.observed(f"x{n}")


def _feed_forward(draft: Draft) -> None:
    """Return a loop from rest: one state drives another, and both drive a third."""
    g, h, m = draft.whole(1, 2, 3), draft.whole(1, 2, 3, 4), draft.whole(0, 1, 2)
    a, b = draft.unknown("a"), draft.unknown("b")
    draft.state("x", f"{draft.unknown('k')} - {draft.unknown('c1')}*x")
    draft.state("y", f"{a}*x^{h} - {draft.unknown('c2')}*y")
    draft.state("z", f"{b}*x^{g}*y^{m} - {draft.unknown('c3')}*z")
    draft.observed("z")
    if draft.chance(0.3):
        draft.observed("y")


def _ring(draft: Draft) -> None:
    """Return a ring of equal states; sometimes one starts elsewhere."""
    n = draft.whole(3, 3, 4)
    k, start = draft.unknown("k"), float(draft.whole(1, 2))
    alone = draft.chance(0.4)
    own = draft.whole(0, 1, 2)
    for i in range(1, n + 1):
        before = f"x{n if i == 1 else i - 1}"
        rate = f"{k}*({before} - x{i})"
        if own == 1:
            rate += f" - {draft.unknown('b')}*x{i}"
        if own == 2:
            rate += f" + {draft.unknown('r')}*x{i}*(1 - x{i}/{draft.unknown('c')})"
        draft.state(f"x{i}", rate, start + 1.0 if alone and i == n else start)
    draft.observed("x1" if draft.chance(0.6) else " + ".join(draft.ode))


def _equilibrium(draft: Draft) -> None:
    """Return a part at rest that drives another part, at rest or not."""
    k, d = draft.unknown("k"), draft.unknown("d")
    draft.state("x", f"{k} - {d}*x", f"{k}/{d}" if draft.chance(0.7) else 0.0)
    power = draft.whole(1, 2, 3)
    start: float | str = 0.0 if draft.chance(0.6) else f"{draft.unknown('b')}*({k}/{d})^{power}/c"
    c = draft.unknown("c")
    draft.state("z", f"{draft.unknown('b')}*x^{power} - {c}*z", start)
    if draft.chance(0.4):
        draft.state("w", f"z^{draft.whole(1, 2, 3)} - {draft.unknown('e')}*w")
        draft.observed("w")
    else:
        draft.observed("z" if draft.chance(0.7) else "x + z")


def _closed(draft: Draft) -> None:
    """Return a closed system that begins with its whole amount in the first state."""
    a, b = draft.unknown("a"), draft.unknown("b")
    power = draft.whole(1, 2, 3)
    draft.state("x", f"-{a}*x", 1.0)
    draft.state("y", f"{a}*x - {b}*y^{power}")
    if draft.chance(0.5):
        back = f" - {draft.unknown('c')}*z" if draft.chance(0.5) else ""
        draft.state("z", f"{b}*y^{power}{back}")
        draft.observed("z")
    else:
        draft.observed("y")
    if draft.chance(0.2):
        draft.observed("x + y")


def _hidden_sign(draft: Draft) -> None:
    """Return a model where an unknown's square acts at once, the unknown itself late or never."""
    a = draft.unknown("a")
    g, h, own = draft.whole(1, 2, 3, 4), draft.whole(1, 2, 3, 4), draft.whole(1, 2, 3)
    draft.state("x", f"-{a}^2*x + z", 1.0)
    draft.state("z", f"w^{g}")
    draft.state("w", f"v^{h}" if draft.chance(0.7) else f"v^{h} - {draft.unknown('b')}*w")
    draft.state("v", f"{a}^{own}")
    draft.observed("x")


def _two_alike(draft: Draft) -> None:
    """Return two equal states, from equal or different values, whose sum is measured."""
    a, b = draft.unknown("a"), draft.unknown("b")
    power, other = draft.whole(1, 2), draft.chance(0.5)
    made = draft.unknown("k") if draft.chance(0.5) else "1"
    start = 0.0 if draft.chance(0.5) else 1.0
    draft.state("u", f"{made} - {a}*u^{power}", start)
    draft.state("v", f"{made} - {b}*v^{power}", start + (0.5 if other else 0.0))
    draft.observed("u + v")


def _transcendental(draft: Draft) -> None:
    """Return a cascade from rest through functions that are not rational."""
    form = (
        "exp({x}) - 1",
        "tanh({x})",
        "sin({x})^2",
        "exp(-{x}) - 1 + {x}",
        "log(1 + {x})",
        "cos({x}) - 1",
    )[draft.whole(*range(6))]
    k, d = draft.unknown("k"), draft.unknown("d")
    draft.state("x", f"{k} - {d}*x")
    argument = "x" if draft.chance(0.5) else f"{draft.unknown('q')}*x"
    rate = f"{draft.unknown('b')}*({form.format(x=argument)}) - {draft.unknown('c')}*z"
    draft.state("z", rate)
    draft.observed("z")


# Kinds of models, which are drawn in turn
FAMILIES: Mapping[str, Callable[[Draft], None]] = {
    "cascade": _cascade,
    "Hill chain": _hill_chain,
    "feed-forward": _feed_forward,
    "ring": _ring,
    "equilibrium": _equilibrium,
    "closed": _closed,
    "hidden sign": _hidden_sign,
    "two alike": _two_alike,
    "transcendental": _transcendental,
}


def special_model(seed: int) -> SpecialModel:
    family = list(FAMILIES)[seed % len(FAMILIES)]
    draft = Draft(np.random.default_rng([seed, 33]))
    FAMILIES[family](draft)
    return SpecialModel(family, draft.ode, draft.outputs, tuple(draft.unknowns), draft.initial)
