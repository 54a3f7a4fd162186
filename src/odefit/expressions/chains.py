"""Long sums and products combined by halves: a thousand terms are then ten levels deep."""

from __future__ import annotations

from dataclasses import dataclass

from odefit.expressions.expressions import Expression, Instruction

LONG_CHAIN = 32
"""Number of terms or factors above which :func:`balanced` changes their order."""


def balanced(expression: Expression) -> Expression:
    """Return `expression` with long sums and products combined by halves.

    ``a + b + c + d`` becomes ``(a + b) + (c + d)``, so that a thousand terms are ten levels deep.
    """
    stack: list[_Chain] = []
    for instruction in expression.program:
        if instruction.kind in ("name", "number"):
            stack.append(_Chain("", [[instruction]]))
            continue
        operands = stack[len(stack) - instruction.arity :]
        del stack[len(stack) - instruction.arity :]
        if instruction.kind == "binary" and instruction.text in "+*":
            stack.append(operands[0].joined(instruction.text, operands[1]))
        else:
            written = [i for operand in operands for i in operand.program()]
            stack.append(_Chain("", [[*written, instruction]]))
    program = tuple(stack[0].program())
    return expression if program == expression.program else Expression(expression.text, program)


@dataclass(frozen=True)
class _Chain:
    """Operands joined by one operator; a single operand has no operator."""

    operator: str
    operands: list[list[Instruction]]

    def joined(self, operator: str, other: _Chain) -> _Chain:
        """Return the chain with another one appended."""
        last = other.program()
        if self.operator == operator:
            self.operands.append(last)
            return self
        return _Chain(operator, [self.program(), last])

    def program(self) -> list[Instruction]:
        """Return the chain as written, or by halves if it is long."""
        parts, join = self.operands, Instruction("binary", self.operator, 2)
        if len(parts) < LONG_CHAIN:
            written = list(parts[0])
            for part in parts[1:]:
                written += [*part, join]
            return written
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            odd = parts[-1:] if len(parts) % 2 else []
            parts = [*([*one, *other, join] for one, other in pairs), *odd]
        return parts[0]
