"""Names that the equations do not allow to be zero: what is divided by, or has a logarithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from odefit.problem.expressions import Expression, as_expression
from odefit.problem.problem import Problem


@dataclass(frozen=True)
class Domains:
    """Names of unknowns, states and constants.

    Attributes
    ----------
    positive
        Of which there is a logarithm, or a power with an exponent that is no number, or that is
        negative and not whole.
    nonzero
        By which something is divided; those of `positive` too.
    """

    positive: frozenset[str]
    nonzero: frozenset[str]

    @classmethod
    def of(cls, problem: Problem) -> Domains:
        """What all expressions of `problem` ask for; its noise needs positive deviations."""
        algebra = _Factors()
        for expression in _expressions(problem):
            expression.evaluate({name: algebra.name(name) for name in expression.names}, algebra)
        noise = {u.name for u in problem.unknowns if u.kind == "noise"}
        positive = frozenset(algebra.positive | noise)
        return cls(positive, positive | algebra.nonzero)


def _expressions(problem: Problem) -> Iterator[Expression]:
    model = problem.model
    yield from model.ode.values()
    yield from model.algebraic.values()
    yield from model.observables.values()
    for noise in problem.noise.values():
        if isinstance(noise.sd, Expression):  # it has a logarithm in the likelihood
            yield as_expression(f"log({noise.sd.text})")
    for condition in problem.conditions:
        bound = [*condition.initial.values(), *condition.scalars.values()]
        yield from (value for value in bound if isinstance(value, Expression))


@dataclass(frozen=True)
class _Product:
    """A value that is zero where one of `factors` is; a number if `value` is one.

    What is divided by goes to `nonzero`.
    """

    nonzero: set[str]
    factors: frozenset[str] = frozenset()
    value: float | None = None

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


class _Factors:
    """Expressions over :class:`_Product`, collecting what is not allowed to be zero."""

    def __init__(self) -> None:
        self.positive: set[str] = set()
        self.nonzero: set[str] = set()

    def name(self, name: str) -> _Product:
        """What stands for a name."""
        return _Product(self.nonzero, frozenset({name}))

    def number(self, text: str) -> _Product:
        """A constant."""
        return _Product(self.nonzero, frozenset(), float(text))

    def power(self, base: _Product, exponent: _Product) -> _Product:
        """``exp(exponent * log(base))`` unless the exponent is a number."""
        n = exponent.value
        if n is None:
            self.positive |= base.factors
        elif n < 0:
            (self.nonzero if n.is_integer() else self.positive).update(base.factors)
        return _Product(self.nonzero, base.factors)

    def call(self, function: str, arguments: Sequence[_Product]) -> _Product:
        """Functions; those of one argument are zero where it is, as far as is asked here."""
        if function in ("log", "log10"):
            self.positive |= arguments[0].factors
        if function in ("sqrt", "abs"):
            return _Product(self.nonzero, arguments[0].factors)
        return _Product(self.nonzero)
