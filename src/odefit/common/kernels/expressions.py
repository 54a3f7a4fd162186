"""Translation of expressions from Python's syntax tree into LLVM's language."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from odefit.common.kernels.arithmetic import (
    absolute,
    applied,
    compared,
    negative,
    operation,
    opposite,
)
from odefit.common.kernels.blocks import Blocks, Variable, number
from odefit.common.kernels.values import ArrayValue, Number, TupleValue, Value

UNKNOWN = object()  # stands for what is not known before the kernel runs

Calls = Callable[[Any, Sequence[Value]], Value | None]
"""Returns the result of a call of another kernel; None if the function is not one."""


class UnsupportedError(TypeError):
    """Raised for what kernels cannot hold, with its line."""


class Expressions:
    """The translation of the expressions of one function, for one set of types."""

    def __init__(
        self,
        names: Mapping[str, Any],
        calls: Calls,
        constant_array: Callable[[Any], ArrayValue],
        *,
        contract: bool,
    ) -> None:
        self.b = Blocks(contract=contract)
        self._names = names
        self._calls = calls
        self._constant_array = constant_array
        self._variables: dict[str, Variable] = {}

    def _unsupported(self, node: ast.AST, why: str = "") -> UnsupportedError:
        line = getattr(node, "lineno", 0)
        return UnsupportedError(f"{why or 'not part of kernels'}, line {line}: {ast.unparse(node)}")

    def _static(self, node: ast.expr) -> Any:
        """Return what a name means outside the function; UNKNOWN for anything else."""
        if isinstance(node, ast.Name) and node.id not in self._variables:
            return self._names.get(node.id, getattr(builtins, node.id, UNKNOWN))
        if isinstance(node, ast.Attribute):
            owner = self._static(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr)
        return UNKNOWN

    def _value(self, node: ast.expr) -> Value:
        translate = getattr(self, f"_of_{type(node).__name__}", None)
        if translate is None:
            raise self._unsupported(node)
        value: Value = translate(node)
        return value

    def _number(self, node: ast.expr) -> Number:
        value = self._value(node)
        if not isinstance(value, Number):
            raise self._unsupported(node, "not a number")
        return value

    def _integer(self, node: ast.expr) -> Number:
        value = self._number(node)
        if value.type == "f":
            raise self._unsupported(node, "not an integer")
        return self.b.converted(value, "i")

    def _array(self, node: ast.expr) -> ArrayValue:
        value = self._value(node)
        if not isinstance(value, ArrayValue):
            raise self._unsupported(node, "not an array")
        return value

    def _truth(self, node: ast.expr) -> str:
        return self.b.converted(self._number(node), "b").code

    def _of_Constant(self, node: ast.Constant) -> Value:
        return number(node.value)

    def _of_Name(self, node: ast.Name) -> Value:
        if node.id in self._variables:
            return self.b.load(self._variables[node.id])
        return self._known(node)

    def _known(self, node: ast.expr) -> Value:
        """Return a constant from outside the function."""
        constant = self._static(node)
        if isinstance(constant, np.ndarray):
            return self._constant_array(constant)
        if isinstance(constant, bool | int | float | np.integer):
            return number(constant)
        raise self._unsupported(node, "not known")

    def _of_Attribute(self, node: ast.Attribute) -> Value:
        if self._static(node) is not UNKNOWN:
            return self._known(node)
        value = self._value(node.value)
        if isinstance(value, TupleValue) and node.attr in value.names:
            return value.items[value.names.index(node.attr)]
        if isinstance(value, ArrayValue) and node.attr == "shape":
            return TupleValue((), tuple(Number("i", part) for part in value.shape))
        if isinstance(value, ArrayValue) and node.attr == "size":
            return Number("i", self.b.product(value.shape))
        raise self._unsupported(node)

    def _of_Tuple(self, node: ast.Tuple) -> Value:
        return TupleValue((), tuple(self._value(item) for item in node.elts))

    def _of_Subscript(self, node: ast.Subscript) -> Value:
        value = self._value(node.value)
        if isinstance(value, TupleValue):
            if isinstance(node.slice, ast.Slice):
                first = 0 if node.slice.lower is None else _literal(node.slice.lower)
                last = None if node.slice.upper is None else _literal(node.slice.upper)
                return TupleValue((), value.items[first:last])
            return value.items[_literal(node.slice)]
        if not isinstance(value, ArrayValue):
            raise self._unsupported(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(parts[-1], ast.Slice):
            return self._slice(value, parts[:-1], parts[-1])
        indices = self._indices(value, node.slice)
        place = self.b.address(value, indices)
        if len(indices) == len(value.shape):
            return self.b.read(value.element, place)
        return ArrayValue(value.element, place, value.shape[len(indices) :])

    def _indices(self, array: ArrayValue, node: ast.expr) -> list[str]:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        return [self._index(array, k, part) for k, part in enumerate(parts)]

    def _index(self, array: ArrayValue, axis: int, node: ast.expr) -> str:
        code = self._integer(node).code
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            return self.b.integer("add nsw", array.shape[axis], code)  # from the end
        return code

    def _slice(self, array: ArrayValue, before: list[ast.expr], part: ast.Slice) -> ArrayValue:
        """Return a part of an array along one axis, before which all indices are single."""
        axis = len(before)
        indices = [self._index(array, k, node) for k, node in enumerate(before)]
        first = "0" if part.lower is None else self._integer(part.lower).code
        stop = array.shape[axis] if part.upper is None else self._integer(part.upper).code
        length = stop if first == "0" else self.b.integer("sub nsw", stop, first)
        place = self.b.address(array, [*indices, first])
        return ArrayValue(array.element, place, (length, *array.shape[axis + 1 :]))

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return number(-node.operand.value)  # type: ignore[operator]  # a number
        if isinstance(node.op, ast.Not):
            return opposite(self.b, self._number(node.operand))
        if isinstance(node.op, ast.USub):
            return negative(self.b, self._number(node.operand))
        raise self._unsupported(node)

    def _of_BinOp(self, node: ast.BinOp) -> Value:
        first, second = self._number(node.left), self._number(node.right)
        return operation(self.b, type(node.op), first, second)

    def _of_Compare(self, node: ast.Compare) -> Value:
        left = self._number(node.left)
        result: Number | None = None
        for kind, right_node in zip(node.ops, node.comparators, strict=True):
            right = self._number(right_node)
            holds = compared(self.b, type(kind), left, right)
            if result is not None:
                holds = operation(self.b, ast.BitAnd, result, holds)
            result, left = holds, right
        assert result is not None
        return result

    def _of_BoolOp(self, node: ast.BoolOp) -> Value:
        """Translate `and` and `or`, which leave out what does not matter."""
        result = self.b.variable("b")
        after = self.b.fresh("after")
        for k, item in enumerate(node.values):
            code = self._truth(item)
            self.b.store(result, Number("b", code))
            if k < len(node.values) - 1:
                more = self.b.fresh("more")
                both = (more, after) if isinstance(node.op, ast.And) else (after, more)
                self.b.branch(code, *both)
                self.b.label(more)
        self.b.label(after)
        return self.b.load(result)

    def _of_IfExp(self, node: ast.IfExp) -> Value:
        result: list[Variable] = []

        def keep(part: ast.expr) -> None:
            value = self._value(part)
            if not result:
                result.append(self.b.variable(value.type))
            kind = result[0].type
            if isinstance(value, Number) and isinstance(kind, str) and value.type != "f":
                value = self.b.converted(value, kind)
            if value.type != kind:
                raise self._unsupported(node, "values of different types")
            self.b.store(result[0], value)

        self.b.either(self._truth(node.test), lambda: keep(node.body), lambda: keep(node.orelse))
        return self.b.load(result[0])

    # Calls

    def _of_Call(self, node: ast.Call) -> Value:
        function = self._static(node.func)
        if function in (np.empty, np.zeros):
            return self._new(node, zero=function is np.zeros)
        if function is UNKNOWN and isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        values = [self._value(argument) for argument in node.args]
        if function is builtins.len and isinstance(values[0], ArrayValue):
            return Number("i", values[0].shape[0])
        if function is np.abs and isinstance(values[0], ArrayValue):
            source = values[0]
            return self._copied(source, lambda value: absolute(self.b, value))
        if (result := self._calls(function, values)) is not None:
            return result
        numbers = [value for value in values if isinstance(value, Number)]
        if len(numbers) == len(values):
            result = applied(self.b, builtins.abs if function is np.abs else function, numbers)
            if result is not None:
                return result
        raise self._unsupported(node)

    def _new(self, node: ast.Call, *, zero: bool) -> ArrayValue:
        shape_value = self._value(node.args[0])
        sizes = shape_value.items if isinstance(shape_value, TupleValue) else (shape_value,)
        shape = [size.code for size in sizes if isinstance(size, Number)]
        kinds = {"bool_": "b1", "bool": "b1", "uint32": "u4", "int64": "i8", "intp": "i8"}
        named = [k.value.attr for k in node.keywords if isinstance(k.value, ast.Attribute)]
        element = kinds[named[0]] if named else "f8"
        return self.b.allocated(element, shape, "zeroed" if zero else "allocated")

    def _copied(self, source: ArrayValue, change: Callable[[Number], Number]) -> ArrayValue:
        """Return a new array with the elements of another one, each changed."""
        flat = ArrayValue(source.element, source.pointer, (self.b.product(source.shape),))
        target = self.b.allocated(source.element, source.shape, "allocated")
        return self.b.filled(
            target,
            lambda k: change(self.b.read(flat.element, self.b.address(flat, [k]))),
        )

    def _method(self, node: ast.Call, name: ast.Attribute) -> Value:
        array = self._array(name.value)
        if name.attr == "copy":
            return self._copied(array, lambda value: value)
        if name.attr != "reshape":
            raise self._unsupported(node)
        shape = [self._integer(argument).code for argument in node.args]
        if "-1" in shape:
            others = self.b.product([size for size in shape if size != "-1"])
            whole = self.b.product(array.shape)
            shape[shape.index("-1")] = self.b.integer("sdiv", whole, others)
        return ArrayValue(array.element, array.pointer, tuple(shape))


def _literal(node: ast.expr) -> int:
    return int(ast.literal_eval(node))
