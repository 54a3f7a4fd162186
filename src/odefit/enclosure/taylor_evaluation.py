"""Programs over Taylor models: sums, products, quotients, and elementary functions.

Products drop what exceeds the degree in d or the order in s and count it as remainder, with the
rounding of all operations (K. Makino and M. Berz, Taylor models and other validated functional
inclusion methods, 2003).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from odefit.enclosure.elementary_functions import CIRCLE, SineCosine, function_of
from odefit.enclosure.function_recurrence import Function
from odefit.enclosure.monomials import Monomials, Support
from odefit.enclosure.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.taylor_models import TaylorModel
from odefit.problem.arrays import Array
from odefit.structure.tape import ELEMENTARY, Tape, Term, needed


class TapeProgram:
    """Some terms of a tape, to be evaluated over Taylor models.

    Parameters
    ----------
    tape, terms
        What is wanted.
    changing
        Entries (variables) that depend on time, and whose coefficients are given order by order.
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
    def fixed(self) -> list[int]:
        """Entries that do not depend on time, in order."""
        return [i for i in self.order if i not in self._changing]

    @cached_property
    def moving(self) -> list[int]:
        """Entries that do and are no variables, in order."""
        variable = self.tape.names
        return [i for i in self.order if i in self._changing and i not in variable]

    def still(
        self, monomials: Monomials, known: Mapping[int, TaylorModel], boxes: int
    ) -> dict[int, TaylorModel]:
        """All entries that do not depend on time, from those that are `known`."""
        return self._computed(self.fixed, monomials, known, boxes)

    def static(
        self,
        monomials: Monomials,
        known: Mapping[int, TaylorModel],
        boxes: int,
        bounded: bool = True,
    ) -> dict[int, TaylorModel]:
        """All entries at one time, from those that are `known`, with all variables.

        If not `bounded`, coefficients alone: remainders are zero.
        """
        return self._computed(self.order, monomials, known, boxes, bounded)

    def _computed(
        self,
        entries: Sequence[int],
        monomials: Monomials,
        known: Mapping[int, TaylorModel],
        boxes: int,
        bounded: bool = True,
    ) -> dict[int, TaylorModel]:
        found = dict(known)
        for i in entries:
            if i in found or i not in self.tape.numbers:
                continue
            found[i] = TaylorModel.number(monomials, self.tape.numbers[i], boxes)
        rest = [i for i in entries if i not in found]
        if rest:
            sweep = TaylorEvaluation(self, monomials, 1, found, rest)
            sweep.advance(0)
            if bounded:
                sweep.bound()
            found.update(sweep.values)
        return found


class TaylorEvaluation:
    """One evaluation of a program: coefficients order by order, then remainders.

    Parameters
    ----------
    program
        What is evaluated.
    monomials
        In the boxes' variables.
    length
        Orders of time that are kept.
    values
        By entry: all that is known beforehand, and the changing variables, whose coefficients of
        order k must be there when :meth:`advance` is called with k.
    entries
        Those to be computed, in order; by default all that change.
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
        self._entries = program.moving if entries is None else entries
        self._inverse: dict[int, Array] = {}
        self._norms: dict[int, Array] = {}
        self._functions: dict[int, Function] = {}
        circles: dict[int, SineCosine] = {}
        for i in self._entries:
            operation, a, b = self._tape.entries[i]
            left, right = self.values[a], self.values[b]
            boxes = left.c.shape[2]
            nothing = np.zeros(boxes)
            support = self._support(operation, left.support, right.support)
            steady = left.c.shape[1] == right.c.shape[1] == 1 or operation == "middle"
            k = 1 if steady else length
            out = TaylorModel(np.zeros((len(monomials), k, boxes)), support, nothing, nothing)
            self.values[i] = out
            if operation in CIRCLE:
                circle = circles.setdefault(a, SineCosine(monomials, length, left, out))
                self.values[i] = circle.of(operation)
                self._functions[i] = circle
            elif operation in ELEMENTARY:
                operands = (left, right)
                self._functions[i] = function_of(operation, monomials, length, operands, out)

    def _support(self, operation: str, left: Support, right: Support) -> Support:
        if operation == "*":
            return self._monomials.product_support(left, right)
        if operation == "middle":
            return frozenset([0])
        if operation == "/" or left is None or right is None:
            return None
        if operation in ELEMENTARY:
            return frozenset([0]) if left | right <= {0} else None
        return left | right

    def advance(self, k: int) -> None:
        """Coefficients of order k, from those of the variables up to order k."""
        for i in self._entries:
            operation, a, b = self._tape.entries[i]
            left, right, out = self.values[a], self.values[b], self.values[i]
            if k >= out.c.shape[1]:
                continue
            if i in self._functions:
                self._functions[i].advance(k)
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
                self._convolve(target, left, right, k)
            else:
                self._divide(i, target, left, right, out, k)

    def _convolve(self, target: Array, left: TaylorModel, right: TaylorModel, k: int) -> None:
        if right.c.shape[1] == 1:
            left, right = right, left
        pairs = self._monomials.pairs(left.support, right.support)
        a, b = left.c, right.c
        if a.shape[1] == 1:
            if k < b.shape[1]:
                for i, j, t in pairs:
                    target[t] += a[i, 0] * b[j, k]
        elif k == 0:
            for i, j, t in pairs:
                target[t] += a[i, 0] * b[j, 0]
        else:
            for i, j, t in pairs:
                target[t] += np.einsum("kb,kb->b", a[i, : k + 1], b[j, k::-1])

    def _divide(
        self,
        entry: int,
        target: Array,
        left: TaylorModel,
        right: TaylorModel,
        out: TaylorModel,
        k: int,
    ) -> None:
        rest = np.zeros_like(target)
        if k < left.c.shape[1]:
            rest += left.c[:, k]
        for order in range(1, min(k, right.c.shape[1] - 1) + 1):
            for i, j, t in self._monomials.pairs(right.support, None):
                rest[t] -= right.c[i, order] * out.c[j, k - order]
        if entry not in self._inverse:
            self._inverse[entry] = self._inverted(right.c[:, 0], right.support)
        for i, j, t in self._monomials.pairs(None, None):
            target[t] += self._inverse[entry][i] * rest[j]

    def _inverted(self, c: Array, support: Support) -> Array:
        """One over a polynomial in d, shape (M, B), by its geometric series."""
        with np.errstate(all="ignore"):
            first = 1.0 / c[0]
            nilpotent = -c * first
        nilpotent[0] = 0.0
        found = np.zeros_like(c)
        found[0] = 1.0
        for _ in range(self._monomials.degree):
            again = np.zeros_like(c)
            for i, j, t in self._monomials.pairs(support, None):
                again[t] += nilpotent[i] * found[j]
            again[0] += 1.0
            found = again
        return np.asarray(found * first)

    # Remainders -------------------------------------------------------------------------------

    def bound(self) -> None:
        """Remainders of all entries, from those of what they are made of."""
        with np.errstate(all="ignore"):
            for i in self._entries:
                self._bound(i)
                value = self.values[i]
                lost = ~np.isfinite(value.c).all((0, 1)) | np.isnan(value.remainder)
                if lost.any():
                    value.c[:, :, lost] = 0.0
                    value.remainder = np.where(lost, np.inf, value.remainder)
                    value.late = np.where(lost, np.inf, value.late)
                    self._norms.pop(i, None)

    def _bound(self, i: int) -> None:
        operation, a, b = self._tape.entries[i]
        left, right, out = self.values[a], self.values[b], self.values[i]
        if i in self._functions:
            self._functions[i].bound(self._sizes)
            return
        if operation in ("+", "-"):
            rounding = 2 * UNIT_ROUNDOFF * self._norm(i).sum((0, 1))
            out.remainder = (left.remainder + right.remainder + rounding) * ROUNDING_MARGIN
            out.late = left.late + right.late
            return
        if operation == "*":
            na, nb = self._norm(a), self._norm(b)
            beyond, late = self._dropped(na, nb)
            sa, sb = na.sum((0, 1)), nb.sum((0, 1))
            own = _product(left.remainder, right.remainder)
            crossed = _product(sa, right.remainder) + _product(sb, left.remainder)
            out.remainder = (
                beyond + late + own + crossed + self._rounding(sa, sb)
            ) * ROUNDING_MARGIN
            out.late = late + _product(sa, right.late) + _product(sb, left.late)
            return
        # left - right * out is what the quotient still lacks, times the divisor.
        nb, nq = self._norm(b), self._norm(i)
        beyond, late = self._dropped(nb, nq)
        lacking = np.zeros_like(out.c)
        lacking[:, : left.c.shape[1]] += left.c
        for k in range(out.c.shape[1]):
            product = np.zeros_like(out.c[:, 0])
            self._convolve(product, right, TaylorModel(out.c, None, out.remainder, out.late), k)
            lacking[:, k] -= product
        sb, sq = nb.sum((0, 1)), nq.sum((0, 1))
        least = 2 * np.abs(right.c[0, 0]) - (sb + right.remainder) * ROUNDING_MARGIN
        total = np.abs(lacking).sum((0, 1)) + beyond + late + left.remainder
        total += (
            _product(sq, right.remainder)
            + self._rounding(sb, sq)
            + 4 * UNIT_ROUNDOFF * self._norm(a).sum((0, 1))
        )
        bound = total * ROUNDING_MARGIN / least + np.where(total == 0, 0.0, UNDERFLOW)
        out.remainder = np.where(least > 0, bound, np.inf)
        tardy = late + left.late + _product(sq, right.late)
        out.late = np.where(least > 0, tardy / least, np.inf)

    def _rounding(self, left: Array, right: Array) -> Array:
        terms = len(self._monomials) * self._length + 4
        return np.where(
            (left == 0) | (right == 0), 0.0, 2 * UNIT_ROUNDOFF * terms * left * right + UNDERFLOW
        )

    def _norm(self, i: int) -> Array:
        """Sums of magnitudes by degree in d and order in s, shape (D + 1, k, B)."""
        if i not in self._norms:
            self._norms[i] = self._sizes(self.values[i])
        return self._norms[i]

    def _sizes(self, model: TaylorModel) -> Array:
        sizes = np.abs(model.c)
        return np.stack([sizes[part].sum(0) for part in self._monomials.parts])

    def _dropped(self, left: Array, right: Array) -> tuple[Array, Array]:
        """What a product drops: beyond the degree in d; within it, beyond the order in s."""
        most, length = self._monomials.degree, self._length
        beyond = np.zeros(left.shape[2])
        late = np.zeros(left.shape[2])
        total_left, total_right = left.sum(1), right.sum(1)
        for g in range(most + 1):
            for h in range(most - g + 1, most + 1):
                beyond += total_left[g] * total_right[h]
        ka, kb = left.shape[1], right.shape[1]
        if ka + kb - 1 > length:
            tails = np.cumsum(right[:, ::-1], axis=1)[:, ::-1]
            # Over degrees that add up to at most D, from the tails of all degrees up to D - g.
            tails = np.cumsum(tails, axis=0)
            for g in range(most + 1):
                for k in range(max(length - kb + 1, 0), ka):
                    late += left[g, k] * tails[most - g, max(length - k, 0)]
        return beyond, late


def _product(norm: Array, remainder: Array) -> Array:
    """With 0 times infinity nothing: what is zero in the whole box stays so."""
    return np.where((norm == 0) | (remainder == 0), 0.0, norm * remainder + UNDERFLOW)
