"""Arrays: ``x[1:8]`` as a key, ``x[i-1]`` and ``sum(x[1:8])`` in expressions, expanded.

The element ``x[3]`` is the quantity ``x_3``, and ``x[3, 2]`` is ``x_3_2``.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from odefit.common.errors import shown
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import ExpressionError, parse
from odefit.expressions.grammar import MAX_LENGTH, MAX_NESTING

INDICES = ("i", "j")
"""The names of the indices in an array's equation."""

MAX_ELEMENTS = 10_000
"""Largest number of elements of one key or slice."""

MAX_INDEX = 10**9
"""Largest absolute value of an index."""

REDUCTIONS = ("sum", "prod", "mean")
"""Functions that reduce the elements of arrays to one value, besides ``min`` and ``max``."""

Index = tuple[int, ...]

_KEY = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*\[([^\[\]]*)\]\s*\Z")
_OPENED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*([\[(])")
_NAME = re.compile(r"(?<![\w.\x00])[A-Za-z_][A-Za-z0-9_]*(?!\w|\s*[\[(])")
_CALL = re.compile(rf"\b({'|'.join(REDUCTIONS)})\s*\(")
_JOINING = re.compile(r"[-+<>=&|!]")

HOLE = "\x00"
"""A character that marks an array element, and that users' texts cannot contain."""


class Element(NamedTuple):
    """One element that a key represents: its name, and the values of its indices by letter."""

    name: str
    indices: Mapping[str, int]


class Arrays:
    """The arrays of a model; indices may contain `numbers`, integer constants of the model."""

    def __init__(self, numbers: Mapping[str, float]) -> None:
        self._numbers = dict(numbers)
        self._elements: dict[str, set[Index]] = {}

    def declare(self, key: object) -> None:
        """Declare the elements of `key`, if it is a valid key of an array."""
        try:
            name, indices = self._key(key)
        except ExpressionError:
            return
        for index in indices:
            if index:
                self._elements.setdefault(name, set()).add(index)

    @property
    def names(self) -> frozenset[str]:
        """Names of the arrays."""
        return frozenset(self._elements)

    def elements(self, key: object) -> list[Element]:
        """Return the elements of a key such as ``x[1:8]``; for a plain name, that name."""
        name, indices = self._key(key)
        return [
            Element(element_name(name, index), dict(zip(INDICES, index, strict=False)))
            for index in indices
        ]

    def member(self, name: str, inside: str, indices: Mapping[str, int]) -> str:
        """Return the key of one element, ``x[3]`` for ``x[i + 1]``, even if it does not exist."""
        whole = f"{name}[{inside}]"
        parts = [self._slice(part, indices, name, whole) for part in inside.split(",")]
        text_of = _products(parts, whole)
        if len(text_of) != 1:
            raise ExpressionError(
                f"{shown(whole)} stands for {len(text_of)} species; write {name}[i] in a reaction "
                'whose key has a range, as in "r[1:8]"'
            )
        return f"{name}[{', '.join(map(str, text_of[0]))}]"

    def written_out(self, text: str, indices: Mapping[str, int], taken: frozenset[str]) -> str:
        """Return an expression without arrays, at values of ``i`` and ``j``.

        `taken` are names with another meaning in the model, such as a state ``i``. Raises
        ExpressionError for an index that does not exist, a slice where one value is expected, and
        arrays of different lengths in a sum.
        """
        if HOLE in text or len(text) > MAX_LENGTH:
            return text  # the parser reports the reason
        expanded = text
        whole = any(m[0] in self._elements for m in _NAME.finditer(text))
        if "[" in text or _CALL.search(text) or whole:
            expanded = self._expanded(text, indices, None, 0)
        visible = {k: v for k, v in indices.items() if k not in taken}
        if visible:
            expanded = _NAME.sub(lambda m: str(visible.get(m[0], m[0])), expanded)
        return expanded

    def _key(self, key: object) -> tuple[str, list[Index]]:
        match = _KEY.match(key) if isinstance(key, str) else None
        if match is None:
            return str(key), [()]
        name, inside = match[1], match[2]
        slices = [self._slice(part, {}, name, f"{name}[{inside}]") for part in inside.split(",")]
        return name, _products(slices, f"{name}[{inside}]")

    def _slice(
        self, part: str, indices: Mapping[str, int], name: str, whole: str
    ) -> list[int] | int:
        """Return the indices of a slice ``a:b`` with both ends, or one index."""
        ends = part.split(":")
        if len(ends) > 2:
            raise ExpressionError(f"{shown(whole)} has more than one colon; write first:last")
        numbers = [self._number(end, indices, whole) for end in ends]
        if len(numbers) == 1:
            return numbers[0]
        first, last = numbers
        if last < first:
            raise ExpressionError(
                f"{shown(whole)} has no elements, as {last} is less than {first}; write first:last"
            )
        if last - first >= MAX_ELEMENTS:
            raise ExpressionError(f"{shown(whole)} has more than {MAX_ELEMENTS} elements")
        return list(range(first, last + 1))

    def _number(self, text: str, indices: Mapping[str, int], whole: str) -> int:
        try:
            expression = parse(text)
        except ExpressionError as error:
            raise ExpressionError(f"the index of {shown(whole)}: {error}") from None
        values = {**self._numbers, **indices}
        for name in sorted(expression.names):
            if name in INDICES and name not in values:
                raise ExpressionError(
                    f"'{name}' in {shown(whole)} is the index of an array's equation, whose key "
                    'has a range, as in "x[1:8]"; here it has no value'
                )
            if name not in values:
                raise ExpressionError(
                    f"the index '{name}' in {shown(whole)} is not known; indices have numbers, "
                    f"{', '.join(INDICES)}, and numbers of [constants]"
                )
        with np.errstate(all="ignore"):
            value = float(expression.evaluate({k: np.float64(v) for k, v in values.items()}, NUMPY))
        if not value.is_integer():
            raise ExpressionError(
                f"the index {text.strip()!r} in {shown(whole)} is {value:g}, which is not a whole "
                "number"
            )
        if abs(value) > MAX_INDEX:
            raise ExpressionError(
                f"the index {text.strip()!r} in {shown(whole)} is {value:.12g}; indices are "
                f"from {-MAX_INDEX} to {MAX_INDEX}"
            )
        return int(value)

    def _expanded(
        self, text: str, indices: Mapping[str, int], slices: list[list[str]] | None, depth: int
    ) -> str:
        """Return `text` without arrays; `slices` collects those of a sum, replaced by holes."""
        if depth > MAX_NESTING:
            raise ExpressionError(f"nested deeper than {MAX_NESTING} levels")
        pieces, at = [], 0
        while (match := _OPENED.search(text, at)) is not None:
            pieces.append(self._whole_arrays(text[at : match.start()], slices))
            name, bracket = match.groups()
            close = _closing(text, match.end() - 1)
            inside = text[match.end() : close]
            at = close + 1
            if bracket == "[":
                pieces.append(self._element(name, inside, indices, slices))
            elif name in REDUCTIONS:
                pieces.append(self._reduced(name, inside, indices, depth))
            elif name in ("min", "max"):
                pieces.append(self._extreme(name, inside, indices, slices, depth))
            else:
                pieces.append(f"{name}({self._expanded(inside, indices, slices, depth + 1)})")
        pieces.append(self._whole_arrays(text[at:], slices))
        return "".join(pieces)

    def _whole_arrays(self, text: str, slices: list[list[str]] | None) -> str:
        """Return `text` with holes for names of arrays, which mean all of their elements."""

        def hole(match: re.Match[str]) -> str:
            name = match[0]
            if name not in self._elements:
                return name
            every = sorted(self._elements[name])
            if slices is None:
                raise ExpressionError(
                    f"'{name}' is an array of {len(every)} elements where one value is expected; "
                    f"write {name}[i], or sum({name})"
                )
            slices.append([element_name(name, index) for index in every])
            return f"{HOLE}{len(slices) - 1}{HOLE}"

        return _NAME.sub(hole, text)

    def _element(
        self, name: str, inside: str, indices: Mapping[str, int], slices: list[list[str]] | None
    ) -> str:
        whole = f"{name}[{inside}]"
        if "[" in inside:
            raise ExpressionError(f"an index within an index in {shown(whole)} cannot be used")
        known = self._elements.get(name)
        parts: list[list[int] | int] = []
        for k, part in enumerate(inside.split(",")):
            if part.strip() == ":" and known:
                parts.append(sorted({index[k] for index in known if k < len(index)}))
            else:
                parts.append(self._slice(part, indices, name, whole))
        text_of = _products(parts, whole)
        moving = not {*INDICES}.isdisjoint(re.findall(r"[A-Za-z_]\w*", inside))
        for index in text_of:
            if known is not None and index not in known:
                raise ExpressionError(
                    f"there is no {name}[{', '.join(map(str, index))}], to which {shown(whole)} "
                    f"refers: the indices of '{name}' are {_ranges(known)}"
                    + "; write the equations of the ends apart"
                    * moving
                )
        names = [element_name(name, index) for index in text_of]
        if not any(isinstance(part, list) for part in parts):
            return names[0]
        if slices is None:
            raise ExpressionError(
                f"{shown(whole)} stands for {len(names)} values where one is expected; write "
                f"{name}[i] in an equation of an array, or sum({whole})"
            )
        slices.append(names)
        return f"{HOLE}{len(slices) - 1}{HOLE}"

    def _terms(self, text: str, indices: Mapping[str, int], depth: int) -> list[str] | None:
        """Return `text` once for each element of the slices in it; None if it has no slices."""
        slices: list[list[str]] = []
        pattern = self._expanded(text, indices, slices, depth + 1)
        if not slices:
            return None
        lengths = {len(names) for names in slices}
        if len(lengths) > 1:
            raise ExpressionError(
                f"arrays of different lengths ({', '.join(map(str, sorted(lengths)))}) in "
                f"{shown(text)}; they are combined element by element"
            )
        count = lengths.pop()
        if count * len(pattern) > MAX_LENGTH:
            raise ExpressionError(f"{shown(text)} is too long when it is written out")
        return [
            re.sub(rf"{HOLE}(\d+){HOLE}", lambda m, k=k: slices[int(m[1])][k], pattern)  # type: ignore[misc]
            for k in range(count)
        ]

    def _reduced(self, name: str, inside: str, indices: Mapping[str, int], depth: int) -> str:
        terms = self._terms(inside, indices, depth)
        if terms is None:
            raise ExpressionError(
                f"{name}({inside}) has no array; write, for example, {name}(x[1:8])"
            )
        terms = [f"({t})" if _JOINING.search(t) else t for t in terms]
        if name == "prod":
            return f"({'*'.join(terms)})"
        total = " + ".join(terms)
        return f"(({total})/{len(terms)})" if name == "mean" else f"({total})"

    def _extreme(
        self,
        name: str,
        inside: str,
        indices: Mapping[str, int],
        slices: list[list[str]] | None,
        depth: int,
    ) -> str:
        arguments = []
        for argument in split_arguments(inside):
            terms = self._terms(argument, indices, depth) if slices is None else None
            arguments += terms or [self._expanded(argument, indices, slices, depth + 1)]
        one = len(arguments) == 1 and slices is None
        return f"({arguments[0]})" if one else f"{name}({', '.join(arguments)})"


def whole_numbers(constants: Mapping[Any, object]) -> dict[str, float]:
    """Return the constants that indices may contain."""
    return {
        str(name): float(value)
        for name, value in constants.items()
        if isinstance(value, (int, float)) and abs(value) <= MAX_INDEX and value == int(value)
    }


def number_text(value: object) -> str | None:
    """Return a number as text for an expression; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return repr(float(value)) if math.isfinite(value) else None
    except OverflowError:
        return None


def element_name(name: str, index: Sequence[int]) -> str:
    """Return the plain name of an element of an array; a minus sign becomes ``m``.

    >>> element_name("x", (3,)), element_name("x", (0, -1)), element_name("x", ())
    ('x_3', 'x_0_m1', 'x')
    """
    return "_".join([name, *(str(k).replace("-", "m") for k in index)])


def _products(parts: Sequence[list[int] | int], whole: str) -> list[Index]:
    if len(parts) > len(INDICES):
        raise ExpressionError(f"{shown(whole)} has more than {len(INDICES)} indices")
    lists = [part if isinstance(part, list) else [part] for part in parts]
    if int(np.prod([len(part) for part in lists])) > MAX_ELEMENTS:
        raise ExpressionError(f"{shown(whole)} has more than {MAX_ELEMENTS} elements")
    return list(itertools.product(*lists))


def _ranges(indices: set[Index]) -> str:
    """Return indices in words: ``1 to 8``."""
    if any(len(index) > 1 for index in indices):
        first, last = min(indices), max(indices)
        return f"[{', '.join(map(str, first))}] to [{', '.join(map(str, last))}]"
    numbers = sorted(index[0] for index in indices)
    runs = []
    for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run_numbers = [number for _, number in run]
        runs.append(
            f"{run_numbers[0]} to {run_numbers[-1]}"
            if len(run_numbers) > 1
            else str(run_numbers[0])
        )
    return ", ".join(runs)


def _closing(text: str, start: int) -> int:
    """Return the position where the bracket opened at `start` closes."""
    opening = text[start]
    closing = {"(": ")", "[": "]"}[opening]
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if not depth:
            return at
    raise ExpressionError(f"{opening!r} at position {start + 1} of {shown(text)} is never closed")


def split_arguments(text: str) -> Iterator[str]:
    """Yield the arguments that commas separate."""
    depth = start = 0
    for at, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            yield text[start:at]
            start = at + 1
    yield text[start:]
