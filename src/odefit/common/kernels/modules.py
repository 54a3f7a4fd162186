"""A module for LLVM: a kernel with all that it calls, and an entry for Python."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from odefit.common.kernels.arithmetic import DECLARATIONS
from odefit.common.kernels.blocks import ARENA, Blocks, constant, structure
from odefit.common.kernels.translation import Translation
from odefit.common.kernels.values import (
    ELEMENTS,
    NOTHING,
    WRONG_TYPES,
    ArrayType,
    ArrayValue,
    Number,
    TupleType,
    Type,
    Value,
    assembled,
    listed,
    parts,
    pointer_to,
    registers,
)

I64 = pointer_to("i64")

MEMORY = f"""
declare i64 @odefit_allocate(i64)
declare void @odefit_free(i64)

define internal i64 @allocated({I64} %arena, i64 %bytes) {{
  %whole = add i64 %bytes, 16
  %block = call i64 @odefit_allocate(i64 %whole)
  %none = icmp eq i64 %block, 0
  br i1 %none, label %missing, label %there
missing:
  %flag = getelementptr i64, {I64} %arena, i64 1
  store i64 1, {I64} %flag
  ret i64 0
there:
  %before = load i64, {I64} %arena
  %link = inttoptr i64 %block to {I64}
  store i64 %before, {I64} %link
  store i64 %block, {I64} %arena
  %first = add i64 %block, 16
  ret i64 %first
}}

define internal i64 @zeroed({I64} %arena, i64 %bytes) {{
  %first = call i64 @allocated({I64} %arena, i64 %bytes)
  %none = icmp eq i64 %first, 0
  br i1 %none, label %after, label %there
there:
  %place = inttoptr i64 %first to {I64}
  %more = add i64 %bytes, 7
  %count = lshr i64 %more, 3
  br label %test
test:
  %k = phi i64 [ 0, %there ], [ %next, %inside ]
  %some = icmp slt i64 %k, %count
  br i1 %some, label %inside, label %after
inside:
  %at = getelementptr i64, {I64} %place, i64 %k
  store i64 0, {I64} %at
  %next = add i64 %k, 1
  br label %test
after:
  ret i64 %first
}}

define void @release(i64 %block) {{
  br label %test
test:
  %now = phi i64 [ %block, %0 ], [ %before, %inside ]
  %some = icmp ne i64 %now, 0
  br i1 %some, label %inside, label %after
inside:
  %link = inttoptr i64 %now to {I64}
  %before = load i64, {I64} %link
  call void @odefit_free(i64 %now)
  br label %test
after:
  ret void
}}
"""
"""Memory of a call: blocks in a list, whose first one is in the arena, all freed at the end.

The arena's second number tells whether memory was missing: functions then end without a result.
Up to eight bytes beyond an array, which belong to it, are set to zero with it."""

DATA, DIMENSIONS, SHAPE, DESCRIPTION, FLAGS, NUMBER = 0, 1, 2, 5, 6, 12
"""Places in NumPy's array objects after Python's part, in words of eight bytes. They hold the
pointer to the data, the number of dimensions, pointers to shape and description of the elements,
and flags. The last is the place of the type's number in such a description, in bytes.
"""

CONTIGUOUS_AND_ALIGNED = 0x101  # flags of an array


class Module:
    """The functions that a kernel needs, as they are found by translating it."""

    def __init__(self, syntax: Callable[[Any], tuple[Any, dict[str, Any], bool] | None]) -> None:
        self._syntax = syntax
        self._functions: dict[tuple[int, tuple[Type, ...]], tuple[str, Type, bool]] = {}
        self._kept: list[Any] = []  # the kernels, whose identities are keys
        self._texts: list[str] = []
        self._arrays: dict[int, ArrayValue] = {}

    def function(self, kernel: Any, types: Sequence[Type]) -> tuple[str, Type, bool] | None:
        """Return name, type of result and need of memory of a kernel; None for other functions."""
        key = id(kernel), tuple(types)
        if key in self._functions:
            return self._functions[key]
        syntax = self._syntax(kernel)
        if syntax is None:
            return None
        node, names, contract = syntax
        self._kept.append(kernel)
        symbol = f"k{len(self._kept)}_{node.name}"
        head, arguments = [(I64, ARENA)], {}
        for argument, kind in zip(node.args.args, types, strict=True):
            codes = [f"%{argument.arg}.{k}" for k in range(len(registers(kind)))]
            head += zip(registers(kind), codes, strict=True)
            arguments[argument.arg] = assembled(kind, iter(codes))
        needs_memory = False

        def calls(callee: Any, values: Sequence[Value]) -> Value | None:
            nonlocal needs_memory
            inner = self.function(callee, [value.type for value in values])
            if inner is None:
                return None
            result = t.b.called(inner[0], values, inner[1])
            if inner[2]:
                needs_memory = True
                t.b.end_if(t.b.lacks_memory())
            return result

        t = Translation(names, arguments, calls, self._constant, contract=contract)
        t.body(node.body)
        result = NOTHING if t.result is None else t.result
        whole = structure(result)
        zero = {"double": constant(0.0), "void": ""}.get(whole, "zeroinitializer")
        leave = f"ret {whole} {zero}".rstrip()
        lines = [line.replace("LEAVE", leave) for line in t.b.lines]
        needs_memory |= any("@allocated(" in line or "@zeroed(" in line for line in lines)
        last = "ret void" if result == NOTHING else "unreachable"
        opening = f"define internal {whole} @{symbol}({listed(head)}) {{"
        text = [opening, "begin:", *t.b.stack, "  br label %first", "first:", *lines]
        ended = lines and lines[-1].lstrip().startswith(("ret ", "br ", "unreachable"))
        self._texts.append("\n".join([*text, *([] if ended else [f"  {last}"]), "}\n"]))
        self._functions[key] = symbol, result, needs_memory
        return self._functions[key]

    def _constant(self, array: Any) -> ArrayValue:
        """Return an array of the program, which is copied into the module."""
        if id(array) not in self._arrays:
            element = array.__array_interface__["typestr"][1:]
            stored, size, kind, _ = ELEMENTS[element]
            flat = np.ascontiguousarray(array).ravel().tolist()
            codes = [constant(x) if kind == "f" else str(int(x)) for x in flat]
            name = f"@constant{len(self._arrays)}"
            whole = f"[{len(flat)} x {stored}]"
            values = listed([(stored, code) for code in codes])
            self._texts.append(f"{name} = internal constant {whole} [{values}], align {size}\n")
            place = f"getelementptr ({whole}, {pointer_to(whole)} {name}, i64 0, i64 0)"
            shape = tuple(str(part) for part in array.shape)
            self._arrays[id(array)] = ArrayValue(element, place, shape)
            self._kept.append(array)
        return self._arrays[id(array)]

    def text(self, kernel: Any, types: Sequence[Type], header: int) -> tuple[str, Type]:
        """Return the module with an entry for Python, and the type of the result.

        The entry gets pointers to its arguments, one word for each number and array object, and to
        space for the result: two words, and one for each part. `header` is the size of Python's
        part of an object.
        """
        translated = self.function(kernel, types)
        assert translated is not None
        symbol, result, _ = translated
        b = Blocks()
        wrong = b.fresh("wrong")
        words = itertools.count()
        arguments = [_argument(b, kind, words, header, wrong) for kind in types]
        arena = b.register("alloca [2 x i64]")
        address = b.register(f"ptrtoint {pointer_to('[2 x i64]')} {arena} to i64")
        b.emit(f"{ARENA} = inttoptr i64 {address} to {I64}")
        flag = b.register(f"getelementptr i64, {I64} {ARENA}, i64 1")
        b.emit(f"store i64 0, {I64} {ARENA}")
        b.emit(f"store i64 0, {I64} {flag}")
        value = b.called(symbol, arguments, result)
        for k, part in enumerate(_words(b, value)):
            b.emit(f"store i64 {part}, {I64} {_word(b, '%out', 1 + k)}")
        block = b.register(f"load i64, {I64} {ARENA}")
        b.emit(f"store i64 {block}, {I64} {_word(b, '%out', 0)}")
        if not _has_arrays(result):
            b.emit(f"call void @release(i64 {block})")
        missing = b.register(f"load i64, {I64} {flag}")
        b.end(f"ret i64 {missing}")
        b.label(wrong)
        b.end(f"ret i64 {WRONG_TYPES}")
        entry = [f"define i64 @entry({I64} %in, {I64} %out) {{", "begin:", *b.lines, "}\n"]
        return "\n".join([DECLARATIONS, MEMORY, *self._texts, *entry]), result


def _word(b: Blocks, start: str, k: int) -> str:
    return b.register(f"getelementptr i64, {I64} {start}, i64 {k}")


def _field(b: Blocks, address: str, word: int) -> str:
    """Return a word of an object at an address."""
    at = b.register(f"inttoptr i64 {address} to {I64}")
    return b.register(f"load i64, {I64} {_word(b, at, word)}")


def _argument(b: Blocks, kind: Type, words: Iterator[int], header: int, wrong: str) -> Value:
    """Return an argument from its word; leave for the block `wrong` if it has another type."""
    if isinstance(kind, TupleType):
        items = (_argument(b, item, words, header, wrong) for item in kind.items)
        return assembled(kind, iter([part for item in items for part in parts(item)]))
    code = b.register(f"load i64, {I64} {_word(b, '%in', next(words))}")
    if kind == "f":
        return Number("f", b.register(f"bitcast i64 {code} to double"))
    if isinstance(kind, str):
        return b.converted(Number("i", code), kind)
    array = b.integer("add", code, str(header))
    flags = b.integer("and", _field(b, array, FLAGS), str(CONTIGUOUS_AND_ALIGNED))
    dimensions = b.integer("and", _field(b, array, DIMENSIONS), str(2**32 - 1))
    description = _field(b, array, DESCRIPTION)
    at = b.integer("add", description, str(header + NUMBER))
    i32 = pointer_to("i32")
    place = b.register(f"inttoptr i64 {at} to {i32}")
    short = b.register(f"load i32, {i32} {place}")
    number = b.register(f"zext i32 {short} to i64")
    for value, expected in (
        (flags, CONTIGUOUS_AND_ALIGNED),
        (dimensions, kind.dimensions),
        (number, ELEMENTS[kind.element].number),
    ):
        go = b.fresh("go")
        b.branch(b.register(f"icmp eq i64 {value}, {expected}"), go, wrong)
        b.label(go)
    stored = pointer_to(ELEMENTS[kind.element].stored)
    pointer = b.register(f"inttoptr i64 {_field(b, array, DATA)} to {stored}")
    shape = _field(b, array, SHAPE)
    sizes = tuple(_field(b, shape, k) for k in range(kind.dimensions))
    return ArrayValue(kind.element, pointer, sizes)


def _words(b: Blocks, value: Value) -> list[str]:
    """Return the parts of a result as words of eight bytes."""
    words = []
    for kind, code in zip(registers(value.type), parts(value), strict=True):
        if kind == "i64":
            words.append(code)
            continue
        act = {"double": "bitcast", "i1": "zext"}.get(kind, "ptrtoint")
        words.append(b.register(f"{act} {kind} {code} to i64"))
    return words


def _has_arrays(kind: Type) -> bool:
    if isinstance(kind, TupleType):
        return any(_has_arrays(item) for item in kind.items)
    return isinstance(kind, ArrayType)


def syntax_of(function: Callable[..., Any]) -> Any:
    """Return the syntax tree of a function."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    first = function.__code__.co_firstlineno
    ast.increment_lineno(tree, first - 1)
    return tree
