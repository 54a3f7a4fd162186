"""Names that the equations do not allow to be zero: divisors, and arguments of logarithms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from odefit.expressions.expressions import Expression, as_expression
from odefit.problem.problem import Problem


@dataclass(frozen=True)
class Domains:
    """The names of unknowns, states and constants that must be positive, or not zero.

    A name must be positive if its logarithm is taken, or a power whose exponent is not a number, or
    is negative and not an integer. A name must not be zero if it must be positive or is a divisor.
    """

    positive: frozenset[str]
    nonzero: frozenset[str]

    @classmethod
    def of(cls, problem: Problem) -> Domains:
        """Return the requirements of all expressions of `problem` and its standard deviations."""
        algebra = _ProductAlgebra()
        for expression in _expressions(problem):
            expression.evaluate({name: algebra.name(name) for name in expression.names}, algebra)
        noise = {u.name for u in problem.unknowns if u.kind == "noise"}
        positive = frozenset(algebra.positive | noise)
        return cls(positive, positive | algebra.nonzero)


def _expressions(problem: Problem) -> Iterator[Expression]:
    """Yield all expressions that a fit evaluates."""
    model = problem.model
    yield from model.ode.values()
    yield from model.algebraic.values()
    yield from model.observables.values()
    for noise in problem.noise.values():
        if isinstance(noise.spread, Expression):  # the likelihood takes its logarithm
            yield as_expression(f"log({noise.spread.text})")
    for condition in problem.conditions:
        bound = [*condition.initial.values(), *condition.scalars.values()]
        yield from (value for value in bound if isinstance(value, Expression))


@dataclass(frozen=True)
class _Product:
    """A product, with the names that make it zero if one of them is zero."""

    nonzero: set[str]  # names of divisors, to which further divisors are added
    factors: frozenset[str] = frozenset()
    value: float | None = None  # the value, if it is a number

    def __add__(self, _: _Product) -> _Product:
        return _Product(self.nonzero)

    __sub__ = __add__

    def __neg__(self) -> _Product:
        return _Product(self.nonzero, self.factors, None if self.value is None else -self.value)

    def __mul__(self, other: _Product) -> _Product:
        return _Product(self.nonzero, self.factors | other.factors)

    def __truediv__(self, other: _Product) -> _Product:
        self.nonzero.update(other.factors)
        return _Product(self.nonzero, self.factors)


class _ProductAlgebra:
    """The algebra of :class:`_Product`, which collects the names that must not be zero."""

    def __init__(self) -> None:
        self.positive: set[str] = set()
        self.nonzero: set[str] = set()

    def name(self, name: str) -> _Product:
        """Return the product of a name."""
        return _Product(self.nonzero, frozenset({name}))

    def number(self, text: str) -> _Product:
        """Return the product of a number."""
        return _Product(self.nonzero, frozenset(), float(text))

    def power(self, base: _Product, exponent: _Product) -> _Product:
        """Return a power: ``exp(exponent * log(base))`` unless the exponent is a number."""
        n = exponent.value
        if n is None:
            self.positive |= base.factors
        elif n < 0:
            (self.nonzero if n.is_integer() else self.positive).update(base.factors)
        return _Product(self.nonzero, base.factors)

    def call(self, function: str, arguments: Sequence[_Product]) -> _Product:
        """Return a function; roots and magnitudes are zero where their argument is zero."""
        if function in ("log", "log10"):
            self.positive |= arguments[0].factors
        if function in ("sqrt", "abs"):
            return _Product(self.nonzero, arguments[0].factors)
        return _Product(self.nonzero)
