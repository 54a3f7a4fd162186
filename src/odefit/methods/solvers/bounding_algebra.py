"""What SCIP and MAiNGO have in common as algebras: expressions that they can bound."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NoReturn

from odefit.common.errors import InputError
from odefit.expressions.grammar import named


class BoundingAlgebra(ABC):
    """Expressions of a global solver, whose name is for refusals, and floats of known values."""

    solver: str

    def number(self, text: str) -> float:
        return float(text)

    def power(self, base: Any, exponent: Any) -> Any:
        if isinstance(exponent, float):
            if isinstance(base, float):
                return math.pow(base, exponent)  # ** would turn to complex numbers
            return self.constant_power(base, exponent)
        if isinstance(base, float) and base == 0.0:
            return 0.0  # as everywhere: 0^p is 0 for every positive p
        return self.call("exp", [exponent * self.call("log", [base])])

    @abstractmethod
    def constant_power(self, base: Any, exponent: float) -> Any:
        """Return an expression to a known power."""

    @abstractmethod
    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        """Return a function of expressions."""

    def refuse(self, function: str) -> NoReturn:
        """Refuse a function that the solver cannot bound."""
        raise InputError(
            f"{self.solver}: the model uses {named(function)}(), which a global solver cannot "
            "bound here; take a local solver, or write the equations without it"
        )
