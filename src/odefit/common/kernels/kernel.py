"""Kernels: functions that are compiled when they are first called."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from ctypes import addressof, c_int64, memmove
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np

from odefit.common.kernels.values import ELEMENTS, WRONG_TYPES, ArrayType, TupleType, Type

if TYPE_CHECKING:
    from odefit.common.kernels import machine

P = ParamSpec("P")
R = TypeVar("R")

HEADER = object.__basicsize__
"""Size of Python's own part of an object, which NumPy's follows."""


def compiled(function: Callable[P, R]) -> Kernel[P, R]:
    """Return a function that is compiled on its first call, see :class:`Kernel`.

    A product and a sum may be rounded together.
    """
    return Kernel(function)


def rigorous(function: Callable[P, R]) -> Kernel[P, R]:
    """Return a function that is compiled on its first call, with operations as in IEEE 754.

    Every operation is rounded by itself. Divisions by zero give infinities, as in NumPy.
    """
    return Kernel(function, contract=False)


class Kernel(Generic[P, R]):
    """A function of numbers, arrays and named tuples, which kernels and Python may call.

    It is written in the part of Python that :mod:`odefit.common.kernels.translation` knows. Other
    threads run meanwhile. A call from Python costs some microseconds. Machine code is kept on disk,
    and made again if the function changes, one that it calls, a constant, or the processor. Where
    LLVM is missing, Python runs the function.
    """

    def __init__(self, function: Callable[P, R], *, contract: bool = True) -> None:
        self.function = function
        self.contract = contract
        self._ready: list[Callable[[tuple[Any, ...]], tuple[bool, Any]]] = []
        update_wrapper(self, function)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Call the machine code, which is compiled for the first arguments of these types."""
        if named:
            raise TypeError(f"{self.function.__name__} has no arguments by name")
        for call in self._ready:
            fits, result = call(arguments)
            if fits:
                return result  # type: ignore[no-any-return]  # as the function says
        try:
            from odefit.common.kernels import machine
        except ImportError:
            return self.function(*arguments, **named)
        with machine.LOCK:
            self._ready.append(self._made(arguments))
        fits, result = self._ready[-1](arguments)
        if not fits:
            raise TypeError(f"{self.function.__name__} needs arrays in C order")
        return result  # type: ignore[no-any-return]

    def __reduce__(self) -> str:
        """Pickle the kernel by its name."""
        return self.function.__qualname__

    def _made(self, arguments: Sequence[Any]) -> Callable[[tuple[Any, ...]], tuple[bool, Any]]:
        """Return the call for arguments of the types of these."""
        from odefit.common.kernels import machine

        kinds = [
            "f" if kind == "float" else type_of(value)
            for value, kind in zip(arguments, self._annotations(), strict=True)
        ]
        digest = hashlib.sha256()
        _describe(self, digest, set())

        def text() -> tuple[str, str]:
            from odefit.common.kernels.modules import Module  # only if something is compiled

            made, result = Module(_syntax).text(self, kinds, HEADER)
            return made, _described(result)

        key = f"{digest.hexdigest()} {kinds} {HEADER}"
        place = self.function.__module__.split(".")[-2:]
        name = ".".join([*place, self.function.__name__])
        described, code = machine.kept(name, key, text)
        return _caller(kinds, described, *machine.loaded(code))

    def _annotations(self) -> list[object]:
        count = self.function.__code__.co_argcount
        names = self.function.__code__.co_varnames[:count]
        return [self.function.__annotations__.get(name) for name in names]


def _syntax(kernel: Any) -> tuple[Any, dict[str, Any], bool] | None:
    """Return the syntax tree of a kernel and the names around it; None for other functions."""
    from odefit.common.kernels.modules import syntax_of

    if not isinstance(kernel, Kernel):
        return None
    return syntax_of(kernel.function), kernel.function.__globals__, kernel.contract


def _describe(kernel: Kernel[..., Any], digest: Any, seen: set[int]) -> None:
    """Add all that the code of a kernel depends on: its instructions, callees and constants."""
    if id(kernel) in seen:
        return
    seen.add(id(kernel))
    code = kernel.function.__code__
    parts = code.co_code, code.co_consts, code.co_names, code.co_varnames, kernel.contract
    digest.update(repr(parts).encode())
    for name in code.co_names:
        value = kernel.function.__globals__.get(name)
        if isinstance(value, Kernel):
            _describe(value, digest, seen)
        elif isinstance(value, np.ndarray):
            digest.update(value.tobytes())
        elif isinstance(value, int | float | np.integer):
            digest.update(repr((name, float(value))).encode())


def type_of(value: Any) -> Type:
    """Return the type of an argument."""
    if isinstance(value, tuple):
        names = getattr(value, "_fields", ())
        return TupleType(tuple(names), tuple(type_of(item) for item in value))
    if isinstance(value, np.ndarray):
        interface = value.__array_interface__
        if interface["strides"] is not None or interface["typestr"][1:] not in ELEMENTS:
            raise TypeError(f"kernels have no such array: {interface}")
        return ArrayType(interface["typestr"][1:], value.ndim)
    if isinstance(value, bool | np.bool_):
        return "b"
    return "f" if isinstance(value, float) else "i"


def _caller(
    kinds: Sequence[Type], described: str, entry: machine.Entry, release: machine.Release
) -> Callable[[tuple[Any, ...]], tuple[bool, Any]]:
    """Return the call of machine code: whether the arguments fit, and the result."""
    pack = _packer(kinds)
    whole, results = described.startswith("("), described.strip("()").split(",")
    letters = "".join(map(_letters, results))
    layout = struct.Struct("=q" + letters)
    words = c_int64 * (1 + len(letters))
    arrays = ":" in described
    simple = whole and not arrays and "b" not in described

    def result_of(words: Iterator[Any]) -> Any:
        values = [_part(part, words) for part in results]
        return tuple(values) if whole else values[0]

    def call(arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        try:
            packed = pack(arguments)
        except (TypeError, ValueError, struct.error):
            packed = None
        if packed is None:
            return False, None
        out = words()
        status = entry(packed, addressof(out))
        if status == WRONG_TYPES:
            return False, None
        block, *values = layout.unpack(out)
        try:
            if status:
                raise MemoryError
            return True, tuple(values) if simple else result_of(iter(values))
        finally:
            if arrays:
                release(block)

    return call


def _part(described: str, words: Iterator[Any]) -> Any:
    """Return a part of a result from its words; arrays are copied."""
    element, _, dimensions = described.partition(":")
    if dimensions:
        place, shape = next(words), [next(words) for _ in range(int(dimensions))]
        array = np.empty(shape, element)
        if array.size:
            memmove(array.ctypes.data, place, array.nbytes)
        return array
    if not element:
        return None
    return bool(next(words)) if element == "b" else next(words)


def _letters(result: str) -> str:
    """Return the words of a part of a result as :mod:`struct` writes them."""
    element, _, dimensions = result.partition(":")
    if dimensions:
        return "q" * (1 + int(dimensions))
    return {"": "", "f": "d"}.get(element, "q")


def _packer(kinds: Sequence[Type]) -> Callable[[tuple[Any, ...]], bytes | None]:
    """Return a function that writes arguments into words, None if an argument has another type."""
    words: list[str] = []
    letters: list[str] = []
    arrays: list[str] = []

    def pattern(kind: Type) -> str:
        if isinstance(kind, TupleType):
            return "(" + "".join(f"{pattern(item)}, " for item in kind.items) + ")"
        name = f"x{len(words)}"
        if isinstance(kind, ArrayType):
            arrays.append(f"type({name}) is ndarray")
        words.append(f"id({name})" if isinstance(kind, ArrayType) else name)
        letters.append("d" if kind == "f" else "q")
        return name

    targets = pattern(TupleType((), tuple(kinds)))
    source = f"""
def pack(arguments):
    {targets} = arguments
    if {" and ".join(arrays) or "True"}:
        return layout.pack({", ".join(words)})
"""
    space: dict[str, Any] = {"ndarray": np.ndarray, "layout": struct.Struct("=" + "".join(letters))}
    exec(source, space)  # noqa: S102  # unpacks and checks faster than any loop over the arguments
    made: Callable[[tuple[Any, ...]], bytes | None] = space["pack"]
    return made


def _described(kind: Type) -> str:
    """Return the type of a result as a text."""
    if isinstance(kind, TupleType):
        return "(" + ",".join(_described(item) for item in kind.items) + ")" if kind.items else ""
    return kind if isinstance(kind, str) else f"{kind.element}:{kind.dimensions}"
