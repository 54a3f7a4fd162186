"""Types and values of kernels, and their parts in the code that LLVM compiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

Scalar = str
"""A type of numbers: "f" for floats, "i" for integers, "b" for truth values."""

REGISTERS: dict[Scalar, str] = {"f": "double", "i": "i64", "b": "i1"}
"""The types of numbers in LLVM."""


class Element(NamedTuple):
    """An element of an array: its type in memory, its size in bytes, its type in kernels."""

    stored: str
    size: int
    kind: Scalar
    number: int  # NumPy's number of the type, which depends on the system


ELEMENTS = {
    name: Element(*element, np.dtype(name).num)
    for name, element in {
        "f8": ("double", 8, "f"),
        "i8": ("i64", 8, "i"),
        "u4": ("i32", 4, "i"),
        "u1": ("i8", 1, "i"),
        "b1": ("i8", 1, "b"),
    }.items()
}
"""Elements of arrays by their names in NumPy's array interface."""


class ArrayType(NamedTuple):
    """The type of an array, whose elements are contiguous in C order."""

    element: str
    dimensions: int


class TupleType(NamedTuple):
    """The type of a tuple, with names for those of named tuples."""

    names: tuple[str, ...]
    items: tuple[Type, ...]


Type = Scalar | ArrayType | TupleType

NOTHING = TupleType((), ())  # of functions without a result
WRONG_TYPES = 2  # what machine code returns if arrays have other types


class Number(NamedTuple):
    """A number: its type, and the register or constant that holds it."""

    type: Scalar
    code: str


class ArrayValue(NamedTuple):
    """An array: the type of its elements, the pointer to the first, and its shape."""

    element: str
    pointer: str
    shape: tuple[str, ...]

    @property
    def type(self) -> ArrayType:
        return ArrayType(self.element, len(self.shape))


class TupleValue(NamedTuple):
    """A tuple of values, perhaps with names."""

    names: tuple[str, ...]
    items: tuple[Value, ...]

    @property
    def type(self) -> TupleType:
        return TupleType(self.names, tuple(item.type for item in self.items))


Value = Number | ArrayValue | TupleValue


@cache
def typed_pointers() -> bool:
    """Return whether pointers have types, as they have until version 16 of LLVM."""
    from llvmlite import binding  # takes time, and may be missing

    return bool(binding.llvm_version_info[0] < 17)


def pointer_to(stored: str) -> str:
    """Return the type of a pointer, which may name what it points to."""
    return f"{stored}*" if typed_pointers() else "ptr"


def registers(kind: Type) -> list[str]:
    """Return the types in LLVM of the parts of a value."""
    if isinstance(kind, str):
        return [REGISTERS[kind]]
    if isinstance(kind, ArrayType):
        return [pointer_to(ELEMENTS[kind.element].stored)] + ["i64"] * kind.dimensions
    return [part for item in kind.items for part in registers(item)]


def parts(value: Value) -> list[str]:
    """Return the registers and constants that hold a value."""
    if isinstance(value, Number):
        return [value.code]
    if isinstance(value, ArrayValue):
        return [value.pointer, *value.shape]
    return [part for item in value.items for part in parts(item)]


def assembled(kind: Type, codes: Iterator[str]) -> Value:
    """Return the value of a type that has these parts."""
    if isinstance(kind, str):
        return Number(kind, next(codes))
    if isinstance(kind, ArrayType):
        first = next(codes)
        return ArrayValue(kind.element, first, tuple(next(codes) for _ in range(kind.dimensions)))
    return TupleValue(kind.names, tuple(assembled(item, codes) for item in kind.items))


def listed(pairs: Sequence[tuple[str, str]]) -> str:
    """Return types with registers, as arguments are written."""
    return ", ".join(f"{kind} {code}" for kind, code in pairs)
