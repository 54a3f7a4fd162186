"""The quantities that a design should make precise, with their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.assessment.profiles.quantities import Quantity
from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED


@dataclass(frozen=True, eq=False)
class Quantities:
    """Unknowns, expressions of them, and predictions at a time.

    `items` are indices of unknowns or quantities; `names` are shown.
    """

    names: tuple[str, ...]
    items: tuple[int | Quantity, ...]
    chosen: bool

    @classmethod
    def of(cls, problem: Problem, texts: Sequence[str] | None) -> Quantities:
        """Return the quantities given by texts; by default all unknowns but the noise's.

        Raises InputError for an invalid text, or if nothing is unknown.
        """
        keys = problem.keys
        if texts is None:
            every = [i for i, u in enumerate(problem.unknowns) if u.kind != "noise"]
            if not every:
                raise InputError("the problem has no unknown that a design could determine")
            return cls(tuple(keys[i] for i in every), tuple(every), False)
        if not texts:
            raise InputError("of: expected at least one unknown or expression")
        items: list[int | Quantity] = []
        names: list[str] = []
        for text in texts:
            if text in keys:
                items.append(keys.index(text))
                names.append(text)
            else:
                quantity = Quantity.of(problem, text)
                items.append(quantity)
                names.append(quantity.key)
        if len(set(names)) < len(names):
            raise InputError("of: a quantity is given twice")
        return cls(tuple(names), tuple(items), True)

    def at(self, forward: ForwardMap, vector: Array) -> tuple[Array, Array]:
        """Return values and derivatives by the unknowns, shapes (s,) and (n, s).

        Raises InputError if one of them is undefined.
        """
        values = np.zeros(len(self.items))
        gradients = np.zeros((len(vector), len(self.items)))
        for k, item in enumerate(self.items):
            if isinstance(item, Quantity):
                values[k], gradients[:, k] = item.at(forward, vector, UNDECIDED)
                if not np.isfinite(values[k]) or not np.isfinite(gradients[:, k]).all():
                    raise InputError(
                        f"of: '{item.text}' has no value or no derivative at these values of the "
                        "unknowns"
                    )
            else:
                values[k], gradients[item, k] = vector[item], 1.0
        return values, gradients
