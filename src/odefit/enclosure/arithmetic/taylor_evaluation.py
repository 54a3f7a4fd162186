"""Evaluation of a tape over Taylor models: sums, products, quotients, and elementary functions.

Coefficients are computed order by order in time, so that those of the solution of a differential
equation can be computed while its right-hand sides are evaluated. Remainders follow at the end (see
:mod:`odefit.enclosure.arithmetic.taylor_models`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array
from odefit.enclosure.arithmetic.elementary_functions import SINE_COSINE, SineCosine, function_of
from odefit.enclosure.arithmetic.function_recurrence import ElementaryFunction
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_models import (
    CONSTANT,
    Monomials,
    Support,
    TaylorModel,
    add_product,
    dropped,
    product_bounds,
    product_rounding,
    sum_bounds,
    times_bound,
    union,
)
from odefit.structure.series.tape import ELEMENTARY, Tape, Term, needed


class TapeProgram:
    """Terms of a tape with all entries that they need, in an order of computation.

    The coefficients of `changing` entries (variables) depend on time and are given order by order.
    """

    def __init__(self, tape: Tape, terms: Sequence[Term], changing: Iterable[int] = ()) -> None:
        self.tape, self.terms = tape, terms
        self.order = needed(tape, terms)
        self._changing = set(changing)
        for i in self.order:
            operation, a, b = tape.entries[i]
            if operation not in ("number", "variable") and {a, b} & self._changing:
                self._changing.add(i)

    @cached_property
    def constant(self) -> list[int]:
        """Entries that do not depend on time, in order."""
        return [i for i in self.order if i not in self._changing]

    @cached_property
    def varying(self) -> list[int]:
        """Entries that depend on time and are not variables, in order."""
        variable = self.tape.names
        return [i for i in self.order if i in self._changing and i not in variable]

    def constants(
        self, monomials: Monomials, known: Mapping[int, TaylorModel], boxes: int
    ) -> dict[int, TaylorModel]:
        """Return all entries that do not depend on time, from the `known` ones."""
        return self.evaluate(monomials, known, boxes, entries=self.constant)

    def evaluate(
        self,
        monomials: Monomials,
        known: Mapping[int, TaylorModel],
        boxes: int,
        bounded: bool = True,
        entries: Sequence[int] | None = None,
    ) -> dict[int, TaylorModel]:
        """Return all entries, or some, at one time, from the `known` ones.

        Unless `bounded`, only coefficients are computed, and remainders are zero.
        """
        models, numbers = dict(known), self.tape.numbers
        missing = [i for i in (self.order if entries is None else entries) if i not in models]
        models |= {
            i: TaylorModel.number(monomials, numbers[i], boxes) for i in missing if i in numbers
        }
        rest = [i for i in missing if i not in numbers]
        if rest:
            evaluation = TaylorEvaluation(self, monomials, 1, models, rest)
            evaluation.compute_order(0)
            if bounded:
                evaluation.bound()
            models.update(evaluation.values)
        return models


def support_of(monomials: Monomials, operation: str, left: Support, right: Support) -> Support:
    """Return the support of the result of an operation on operands with these supports."""
    if operation == "*":
        return monomials.product_support(left, right)
    if operation == "middle":
        return CONSTANT
    if operation == "/" or left is None or right is None:
        return None
    if operation in ELEMENTARY:
        return CONSTANT if left | right <= {0} else None
    return union(left, right)


class TaylorEvaluation:
    """One evaluation of a program: coefficients order by order, then remainders.

    `values` holds, by entry, the values known in advance and the changing variables, whose
    coefficients of order k must exist when :meth:`compute_order` is called with k. `entries` are to
    be computed, in order; by default all that depend on time.
    """

    def __init__(
        self,
        program: TapeProgram,
        monomials: Monomials,
        length: int,
        values: Mapping[int, TaylorModel],
        entries: Sequence[int] | None = None,
    ) -> None:
        self.values = dict(values)
        self._tape, self._monomials, self._length = program.tape, monomials, length
        self._entries = program.varying if entries is None else entries
        self._reciprocals: dict[int, Array] = {}
        self._norms: dict[int, Array] = {}
        self._functions: dict[int, ElementaryFunction] = {}
        pairs: dict[int, SineCosine] = {}
        for i in self._entries:
            operation, a, b = self._tape.entries[i]
            left, right = self.values[a], self.values[b]
            support = support_of(monomials, operation, left.support, right.support)
            steady = left.c.shape[1] == right.c.shape[1] == 1 or operation == "middle"
            shape = len(monomials), 1 if steady else length, left.c.shape[2]
            out = TaylorModel(monomials, np.zeros(shape), support)
            self.values[i] = out
            if operation in SINE_COSINE:
                pair = pairs.setdefault(a, SineCosine(length, left, out))
                self.values[i] = pair.of(operation)
                self._functions[i] = pair
            elif operation in ELEMENTARY and operation != "middle":
                self._functions[i] = function_of(operation, length, (left, right), out)

    def compute_order(self, k: int) -> None:
        """Compute the coefficients of order k, from those of the variables up to order k."""
        for i in self._entries:
            operation, a, b = self._tape.entries[i]
            left, right, out = self.values[a], self.values[b], self.values[i]
            if k >= out.c.shape[1]:
                continue
            if i in self._functions:
                self._functions[i].compute_order(k)
                continue
            target = out.c[:, k]
            if operation in ("+", "-"):
                if k < left.c.shape[1]:
                    target += left.c[:, k]
                if k < right.c.shape[1]:
                    if operation == "+":
                        target += right.c[:, k]
                    else:
                        target -= right.c[:, k]
            elif operation == "*":
                add_product(target, left, right, k)
            elif operation == "middle":
                target[0] = left.c[0, 0]
            else:
                self._divide(i, k)

    def _divide(self, i: int, k: int) -> None:
        """Compute the coefficients of order k of a quotient."""
        _, a, b = self._tape.entries[i]
        left, right, out = self.values[a], self.values[b], self.values[i]
        target = out.c[:, k]
        rest = np.zeros_like(target)
        if k < left.c.shape[1]:
            rest += left.c[:, k]
        for order in range(1, min(k, right.c.shape[1] - 1) + 1):
            for g, h, t in self._monomials.pairs(right.support, None):
                rest[t] -= right.c[g, order] * out.c[h, k - order]
        if i not in self._reciprocals:
            self._reciprocals[i] = self._reciprocal(right.c[:, 0], right.support)
        for g, h, t in self._monomials.pairs(None, None):
            target[t] += self._reciprocals[i][g] * rest[h]

    def _reciprocal(self, c: Array, support: Support) -> Array:
        """Return one over a polynomial in d, shape (M, B), by its geometric series."""
        with np.errstate(all="ignore"):
            first = 1.0 / c[0]
            nilpotent = -c * first
        nilpotent[0] = 0.0
        inverse = np.zeros_like(c)
        inverse[0] = 1.0
        for _ in range(self._monomials.degree):
            again = np.zeros_like(c)
            for i, j, t in self._monomials.pairs(support, None):
                again[t] += nilpotent[i] * inverse[j]
            again[0] += 1.0
            inverse = again
        return np.asarray(inverse * first)

    def bound(self) -> None:
        """Compute the remainders of all entries, from those of their operands."""
        with np.errstate(all="ignore"):
            for i in self._entries:
                operation, a, b = self._tape.entries[i]
                left, right, out = self.values[a], self.values[b], self.values[i]
                if i in self._functions:
                    self._functions[i].bound()
                    bounds = out.remainder, out.truncation
                elif operation == "middle":
                    unknown = np.where(np.isfinite(left.remainder), 0.0, np.inf)
                    bounds = unknown, unknown
                elif operation in ("+", "-"):
                    bounds = sum_bounds(left, right, self._norm(i))
                elif operation == "*":
                    bounds = product_bounds(left, right, self._norm(a), self._norm(b), self._length)
                else:
                    bounds = self._quotient_bounds(i)
                out.put_bounds(*bounds)
                if np.isinf(out.remainder).any():
                    self._norms.pop(i, None)

    def _quotient_bounds(self, i: int) -> tuple[Array, Array]:
        _, a, b = self._tape.entries[i]
        left, right, out = self.values[a], self.values[b], self.values[i]
        # left - right * out is the error of the quotient times the divisor.
        nb, nq = self._norm(b), self._norm(i)
        beyond, truncation = dropped(nb, nq, self._length)
        lacking = np.zeros_like(out.c)
        lacking[:, : left.c.shape[1]] += left.c
        for k in range(out.c.shape[1]):
            product = np.zeros_like(out.c[:, 0])
            add_product(product, right, out, k)
            lacking[:, k] -= product
        sb, sq = nb.sum((0, 1)), nq.sum((0, 1))
        least = 2 * np.abs(right.c[0, 0]) - (sb + right.remainder) * ROUNDING_MARGIN
        total = np.abs(lacking).sum((0, 1)) + beyond + truncation + left.remainder
        total += (
            times_bound(sq, right.remainder)
            + product_rounding(sb, sq, len(self._monomials) * self._length)
            + 4 * UNIT_ROUNDOFF * self._norm(a).sum((0, 1))
        )
        bound = total * ROUNDING_MARGIN / least + np.where(total == 0, 0.0, UNDERFLOW)
        remainder = np.where(least > 0, bound, np.inf)
        truncation = truncation + left.truncation + times_bound(sq, right.truncation)
        return remainder, np.where(least > 0, truncation / least, np.inf)

    def _norm(self, i: int) -> Array:
        """Return the norms of an entry's coefficients, computed once."""
        if i not in self._norms:
            self._norms[i] = self.values[i].norms()
        return self._norms[i]
