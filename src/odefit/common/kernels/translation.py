"""Translation of a function from Python's syntax tree into LLVM's language."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odefit.common.kernels.arithmetic import operation
from odefit.common.kernels.blocks import number
from odefit.common.kernels.expressions import Calls, Expressions
from odefit.common.kernels.values import ArrayValue, Number, TupleValue, Type, Value


class Translation(Expressions):
    """The translation of one function, for one set of types.

    Kernels hold numbers, arrays that are contiguous in C order, and tuples. Each variable keeps the
    type of its first value. Indices are not checked, and negative ones are constants.
    """

    def __init__(
        self,
        names: Mapping[str, Any],
        arguments: Mapping[str, Value],
        calls: Calls,
        constant_array: Callable[[Any], ArrayValue],
        *,
        contract: bool,
    ) -> None:
        super().__init__(names, calls, constant_array, contract=contract)
        self.result: Type | None = None
        self._loops: list[tuple[str, str]] = []  # where `continue` and `break` lead
        for name, value in arguments.items():
            self._assign_name(name, value)

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Translate statements one after the other."""
        for statement in statements:
            translate = getattr(self, f"_do_{type(statement).__name__}", None)
            if translate is None:
                raise self._unsupported(statement)
            translate(statement)

    def _do_Pass(self, node: ast.Pass) -> None:
        """Nothing happens."""

    def _do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._value(node.value)

    def _do_Assign(self, node: ast.Assign) -> None:
        value = self._value(node.value)
        for target in node.targets:
            self._assign(target, value)

    def _do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, self._value(node.value))

    def _do_AugAssign(self, node: ast.AugAssign) -> None:
        kind = type(node.op)
        if isinstance(node.target, ast.Subscript):
            array = self._array(node.target.value)
            place = self.b.address(array, self._indices(array, node.target.slice))
            old = self.b.read(array.element, place)
            new = operation(self.b, kind, old, self._number(node.value))
            self.b.write(array.element, place, new)
            return
        assert isinstance(node.target, ast.Name)
        old = self._number(node.target)
        self._assign(node.target, operation(self.b, kind, old, self._number(node.value)))

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._assign_name(target.id, value, target)
        elif isinstance(target, ast.Tuple) and isinstance(value, TupleValue):
            for item, part in zip(target.elts, value.items, strict=True):
                self._assign(item, part)
        elif isinstance(target, ast.Subscript) and isinstance(value, Number):
            array = self._array(target.value)
            indices = self._indices(array, target.slice)
            if len(indices) != len(array.shape):
                raise self._unsupported(target, "assignment to a part of an array")
            self.b.write(array.element, self.b.address(array, indices), value)
        else:
            raise self._unsupported(target)

    def _assign_name(self, name: str, value: Value, node: ast.AST | None = None) -> None:
        if name not in self._variables:
            self._variables[name] = self.b.variable(value.type)
        variable = self._variables[name]
        if isinstance(value, Number) and isinstance(variable.type, str):
            if variable.type != "f" and value.type == "f":
                raise self._unsupported(node or ast.Name(name), "a float for an integer variable")
            value = self.b.converted(value, variable.type)
        if value.type != variable.type:
            raise self._unsupported(node or ast.Name(name), "another type than before")
        self.b.store(variable, value)

    def _do_If(self, node: ast.If) -> None:
        no = (lambda: self.body(node.orelse)) if node.orelse else None
        self.b.either(self._truth(node.test), lambda: self.body(node.body), no)

    def _do_While(self, node: ast.While) -> None:
        test, inside, after = (self.b.fresh(name) for name in ("test", "inside", "after"))
        self.b.label(test)
        self.b.branch(self._truth(node.test), inside, after)
        self.b.label(inside)
        self._loop(node.body, test, after)
        self.b.jump(test)
        self.b.label(after)

    def _loop(self, statements: Sequence[ast.stmt], following: str, after: str) -> None:
        self._loops.append((following, after))
        self.body(statements)
        self._loops.pop()

    def _do_Break(self, node: ast.Break) -> None:
        self.b.jump(self._loops[-1][1])

    def _do_Continue(self, node: ast.Continue) -> None:
        self.b.jump(self._loops[-1][0])

    def _do_Return(self, node: ast.Return) -> None:
        value = TupleValue((), ()) if node.value is None else self._value(node.value)
        if self.result is None:
            self.result = value.type
        elif isinstance(value, Number) and isinstance(self.result, str):
            value = self.b.converted(value, self.result)
        if value.type != self.result:
            raise self._unsupported(node, "another type of result than before")
        self.b.returned(value)

    def _do_For(self, node: ast.For) -> None:
        over = node.iter
        if isinstance(over, ast.Call) and self._static(over.func) is builtins.range:
            self._for_range(node, over)
            return
        value = self._value(over)
        if isinstance(value, ArrayValue):
            self._for_range(node, None, value)
            return
        assert isinstance(value, TupleValue)
        after = self.b.fresh("after")
        for item in value.items:
            following = self.b.fresh("following")
            self._assign(node.target, item)
            self._loop(node.body, following, after)
            self.b.label(following)
        self.b.label(after)

    def _for_range(
        self, node: ast.For, over: ast.Call | None, array: ArrayValue | None = None
    ) -> None:
        """Translate a loop over a range, or over the elements of an array of one dimension."""
        b = self.b
        start, stop, step = number(0), number(0), 1
        if array is not None:
            stop = Number("i", array.shape[0])
        elif over is not None:
            limits = [self._integer(argument) for argument in over.args[:2]]
            start, stop = (limits[0], limits[1]) if len(limits) > 1 else (start, limits[0])
            step = int(self._integer(over.args[2]).code) if len(over.args) > 2 else 1
        counter = b.variable("i")
        b.store(counter, start)
        test, inside, following, after = (
            b.fresh(name) for name in ("test", "inside", "following", "after")
        )
        b.label(test)
        now = b.load(counter)
        assert isinstance(now, Number)
        sign = "slt" if step > 0 else "sgt"
        b.branch(b.register(f"icmp {sign} i64 {now.code}, {stop.code}"), inside, after)
        b.label(inside)
        element = now if array is None else b.read(array.element, b.address(array, [now.code]))
        self._assign(node.target, element)
        self._loop(node.body, following, after)
        b.label(following)
        now = b.load(counter)
        assert isinstance(now, Number)
        b.store(counter, Number("i", b.integer("add nsw", now.code, str(step))))
        b.jump(test)
        b.label(after)
