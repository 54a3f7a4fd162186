"""The text of a function in LLVM's language: blocks, arithmetic, memory."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from odefit.common.kernels.values import (
    ELEMENTS,
    REGISTERS,
    ArrayValue,
    Number,
    TupleValue,
    Type,
    Value,
    assembled,
    listed,
    parts,
    pointer_to,
    registers,
)

ARENA = "%arena"
"""The argument of all functions that holds memory to be freed, and whether memory was missing."""


def constant(value: float) -> str:
    """Return a float as LLVM writes it, digit by digit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def number(value: object) -> Number:
    """Return a Python number as a constant."""
    if isinstance(value, bool):
        return Number("b", "true" if value else "false")
    if isinstance(value, float):
        return Number("f", constant(float(value)))
    return Number("i", str(int(value)))  # type: ignore[call-overload]  # of any integer


class Variable:
    """A local variable: a place on the stack for each part, which LLVM turns into registers."""

    def __init__(self, kind: Type, places: Sequence[str]) -> None:
        self.type = kind
        self.places = places


class Blocks:
    """The instructions of a function that is being written."""

    def __init__(self, *, contract: bool = True) -> None:
        # A product and a sum may be rounded together, but sums may not be reordered.
        self.floats = "contract double" if contract else "double"
        self.lines: list[str] = []
        self.stack: list[str] = []
        self._count = 0
        self._ended = False

    def fresh(self, name: str = "v") -> str:
        """Return a name that is not used yet."""
        self._count += 1
        return f"{name}{self._count}"

    def emit(self, line: str) -> None:
        """Append an instruction without a result."""
        if self._ended:
            self.label(self.fresh("dead"))
        self.lines.append(f"  {line}")

    def register(self, instruction: str) -> str:
        """Append an instruction, and return the register of its result."""
        name = f"%{self.fresh()}"
        self.emit(f"{name} = {instruction}")
        return name

    def end(self, line: str) -> None:
        """Append the last instruction of a block."""
        self.emit(line)
        self._ended = True

    def label(self, name: str) -> None:
        """Begin a block."""
        if not self._ended and self.lines:
            self.lines.append(f"  br label %{name}")
        self.lines.append(f"{name}:")
        self._ended = False

    def jump(self, name: str) -> None:
        """Go to a block."""
        self.end(f"br label %{name}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """Go to one of two blocks."""
        self.end(f"br i1 {condition}, label %{yes}, label %{no}")

    def either(
        self, condition: str, yes: Callable[[], None], no: Callable[[], None] | None = None
    ) -> None:
        """Write one of two sequences of instructions, or none, by a condition."""
        first, second, after = self.fresh("yes"), self.fresh("no"), self.fresh("after")
        self.branch(condition, first, second if no else after)
        self.label(first)
        yes()
        if no:
            if not self._ended:
                self.jump(after)
            self.label(second)
            no()
        self.label(after)

    def count(self, length: str, body: Callable[[str], None]) -> None:
        """Write a loop over the numbers below `length`."""
        counter = self.variable("i")
        self.store(counter, number(0))
        test, inside, after = self.fresh("test"), self.fresh("inside"), self.fresh("after")
        self.label(test)
        now = parts(self.load(counter))[0]
        self.branch(self.register(f"icmp slt i64 {now}, {length}"), inside, after)
        self.label(inside)
        body(now)
        self.store(counter, Number("i", self.register(f"add nsw i64 {now}, 1")))
        self.jump(test)
        self.label(after)

    # Variables

    def variable(self, kind: Type) -> Variable:
        """Return a new variable of a type."""
        places = [f"%{self.fresh('p')}" for _ in registers(kind)]
        for place, register in zip(places, registers(kind), strict=True):
            self.stack.append(f"  {place} = alloca {register}")
        return Variable(kind, places)

    def store(self, variable: Variable, value: Value) -> None:
        """Assign a value of the same type."""
        for place, register, part in zip(
            variable.places, registers(variable.type), parts(value), strict=True
        ):
            self.emit(f"store {register} {part}, {pointer_to(register)} {place}")

    def load(self, variable: Variable) -> Value:
        """Return the value of a variable."""
        codes = [
            self.register(f"load {register}, {pointer_to(register)} {place}")
            for place, register in zip(variable.places, registers(variable.type), strict=True)
        ]
        return assembled(variable.type, iter(codes))

    # Numbers

    def converted(self, value: Number, kind: str) -> Number:
        """Return a number as one of another type; floats become integers towards zero."""
        code, old = value.code, value.type
        if old == kind:
            return value
        if kind == "f":
            if old == "i" and code.lstrip("-").isdigit():
                return number(float(int(code)))
            act = "uitofp i1" if old == "b" else "sitofp i64"
            return Number("f", self.register(f"{act} {code} to double"))
        if kind == "i":
            act = "zext i1" if old == "b" else "fptosi double"
            return Number("i", self.register(f"{act} {code} to i64"))
        zero = constant(0.0) if old == "f" else "0"
        test = "fcmp une double" if old == "f" else "icmp ne i64"
        return Number("b", self.register(f"{test} {code}, {zero}"))

    def integer(self, operation: str, first: str, second: str) -> str:
        """Return the result of an operation of integers."""
        return self.register(f"{operation} i64 {first}, {second}")

    def product(self, factors: Sequence[str]) -> str:
        """Return a product of integers."""
        result = "1"
        for factor in factors:
            result = factor if result == "1" else self.integer("mul nsw", result, factor)
        return result

    def chosen(self, condition: str, yes: Number, no: Number) -> Number:
        """Return one of two numbers of a type, both of which are known."""
        kind = REGISTERS[yes.type]
        code = self.register(f"select i1 {condition}, {kind} {yes.code}, {kind} {no.code}")
        return Number(yes.type, code)

    # Arrays

    def address(self, array: ArrayValue, indices: Sequence[str]) -> str:
        """Return the pointer to the element, or part, at the first indices."""
        offset = "0"
        for k, index in enumerate(indices):
            scaled = self.product([index, *array.shape[k + 1 :]])
            offset = scaled if offset == "0" else self.integer("add nsw", offset, scaled)
        stored = ELEMENTS[array.element].stored
        if offset == "0":
            return array.pointer
        return self.register(
            f"getelementptr inbounds {stored}, {pointer_to(stored)} {array.pointer}, i64 {offset}"
        )

    def read(self, element: str, place: str) -> Number:
        """Return an element of an array."""
        stored, _, kind, _ = ELEMENTS[element]
        code = self.register(f"load {stored}, {pointer_to(stored)} {place}")
        if element == "u4":
            code = self.register(f"zext i32 {code} to i64")
        elif element == "u1":
            code = self.register(f"zext i8 {code} to i64")
        elif element == "b1":
            code = self.register(f"icmp ne i8 {code}, 0")
        return Number(kind, code)

    def write(self, element: str, place: str, value: Number) -> None:
        """Write an element of an array."""
        stored, _, kind, _ = ELEMENTS[element]
        code = self.converted(value, kind).code
        if element in ("u4", "u1"):
            code = self.register(f"trunc i64 {code} to {stored}")
        elif element == "b1":
            code = self.register(f"zext i1 {code} to i8")
        self.emit(f"store {stored} {code}, {pointer_to(stored)} {place}")

    def allocated(self, element: str, shape: Sequence[str], function: str) -> ArrayValue:
        """Return a new array, from one of the functions that allocate."""
        stored, size = ELEMENTS[element][:2]
        length = self.product([str(size), *shape])
        at = self.register(f"call i64 @{function}({pointer_to('i64')} {ARENA}, i64 {length})")
        self.end_if(self.register(f"icmp eq i64 {at}, 0"))
        place = self.register(f"inttoptr i64 {at} to {pointer_to(stored)}")
        return ArrayValue(element, place, tuple(shape))

    def end_if(self, condition: str) -> None:
        """Leave the function without a result by a condition."""
        go, stop = self.fresh("go"), self.fresh("stop")
        self.branch(condition, stop, go)
        self.label(stop)
        self.end("LEAVE")  # the caller of this class knows the type of the result
        self.label(go)

    def lacks_memory(self) -> str:
        """Return whether memory was missing in a function that was called."""
        place = self.register(f"getelementptr inbounds i64, {pointer_to('i64')} {ARENA}, i64 1")
        flag = self.register(f"load i64, {pointer_to('i64')} {place}")
        return self.register(f"icmp ne i64 {flag}, 0")

    def filled(self, target: ArrayValue, value: Callable[[str], Number]) -> ArrayValue:
        """Fill a whole array with values by position."""
        flat = ArrayValue(target.element, target.pointer, (self.product(target.shape),))
        self.count(
            flat.shape[0],
            lambda k: self.write(flat.element, self.address(flat, [k]), value(k)),
        )
        return target

    # Results

    def returned(self, value: Value) -> None:
        """Leave the function with a result."""
        kinds, codes = registers(value.type), parts(value)
        if not kinds:
            self.end("ret void")
        elif len(kinds) == 1:
            self.end(f"ret {kinds[0]} {codes[0]}")
        else:
            whole, result = structure(value.type), "undef"
            for k, (kind, code) in enumerate(zip(kinds, codes, strict=True)):
                result = self.register(f"insertvalue {whole} {result}, {kind} {code}, {k}")
            self.end(f"ret {whole} {result}")

    def called(self, name: str, arguments: Sequence[Value], result: Type) -> Value:
        """Call another function of the module."""
        pairs = [(pointer_to("i64"), ARENA)]
        for value in arguments:
            pairs += zip(registers(value.type), parts(value), strict=True)
        kinds = registers(result)
        call = f"call {structure(result)} @{name}({listed(pairs)})"
        if not kinds:
            self.emit(call)
            return TupleValue((), ())
        whole = self.register(call)
        if len(kinds) == 1:
            return assembled(result, iter([whole]))
        codes = [
            self.register(f"extractvalue {structure(result)} {whole}, {k}")
            for k in range(len(kinds))
        ]
        return assembled(result, iter(codes))


def structure(kind: Type) -> str:
    """Return the type of a result in LLVM."""
    kinds = registers(kind)
    if not kinds:
        return "void"
    return kinds[0] if len(kinds) == 1 else "{ " + ", ".join(kinds) + " }"
