"""Mutations of Python code: operators, comparisons, conditions, constants. Part of `mutation.py`.

A mutation replaces the exact span of one expression by the text of a changed one, so that no other
line moves. Annotations, decorators, f-strings, sums of texts, and the body of ``if TYPE_CHECKING``
are left out.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
}
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPPOSITES = {"min": "max", "minimum": "maximum", "all": "any", "fmin": "fmax"}
OPPOSITES |= {after: before for before, after in OPPOSITES.items()}


@dataclass(frozen=True)
class Mutation:
    """One change of one file.

    Attributes
    ----------
    path
        The file, relative to the package.
    line
        The line of the first changed character, from 1.
    start, end
        The bytes of the file that are replaced.
    before, after
        Their text and the new one.
    kind
        ``"arithmetic"``, ``"comparison"``, ``"condition"``, ``"boolean"``, ``"constant"``,
        ``"sign"``, ``"not"`` or ``"extreme"``.
    """

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str
    kind: str

    @property
    def package(self) -> str:
        """The package whose tests have to detect the mutation."""
        first, *rest = self.path.split("/")
        return first if rest else "odefit"

    def of(self, source: bytes) -> bytes:
        """The mutated file."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutations(root: Path, path: str) -> Iterator[Mutation]:
    """Return all mutations of a file, in the order of its lines."""
    source = (root / path).read_bytes()
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    for node, changed, kind in _changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = source[start:end].decode()
        after = ast.unparse(ast.fix_missing_locations(changed))
        if isinstance(changed, ast.expr):
            # The number of lines stays, so that all other lines keep their numbers.
            after = f"({after}{chr(10) * before.count(chr(10))})"
        yield Mutation(path, node.lineno, start, end, before, after, kind)


Change = tuple[ast.expr | ast.stmt, ast.expr | ast.stmt, str]


def _changes(tree: ast.Module) -> Iterator[Change]:
    """Yield all changed nodes, each with the node that it replaces."""
    for node in _reached(tree):
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            if not (_is_text(node.left) or _is_text(node.right)):
                yield node, _with(node, op=ARITHMETIC[type(node.op)]()), "arithmetic"
        elif isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
            if not _is_text(node.value):
                yield node, _with(node, op=ARITHMETIC[type(node.op)]()), "arithmetic"
        elif isinstance(node, ast.Compare):
            for k, operator in enumerate(node.ops):
                for other in COMPARISONS[type(operator)]:
                    ops = [*node.ops[:k], other(), *node.ops[k + 1 :]]
                    yield node, _with(node, ops=ops), "comparison"
        elif isinstance(node, ast.BoolOp):
            other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, _with(node, op=other_op), "boolean"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield node, copy.deepcopy(node.operand), "sign"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, copy.deepcopy(node.operand), "not"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, ast.Constant(not node.value), "constant"
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield node, ast.Constant(node.value + 1), "constant"
        elif isinstance(node, ast.Call):
            function = copy.deepcopy(node.func)
            if isinstance(function, ast.Name) and function.id in OPPOSITES:
                function.id = OPPOSITES[function.id]
                yield node, _with(node, func=function), "extreme"
            elif isinstance(function, ast.Attribute) and function.attr in OPPOSITES:
                function.attr = OPPOSITES[function.attr]
                yield node, _with(node, func=function), "extreme"
        for test in _conditions(node):
            if not isinstance(test, ast.Compare | ast.UnaryOp):
                yield test, ast.UnaryOp(ast.Not(), copy.deepcopy(test)), "condition"


def _conditions(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return [] if isinstance(node.test, ast.Constant) else [node.test]
    return list(node.ifs) if isinstance(node, ast.comprehension) else []


def _with(node: ast.AST, **changed: object) -> ast.expr:
    found = copy.copy(node)
    for name, value in changed.items():
        setattr(found, name, value)
    assert isinstance(found, ast.expr | ast.stmt)
    return found  # type: ignore[return-value]


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it that are evaluated when the code runs."""
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    left_out = {"annotation", "returns", "decorator_list"}
    for name, value in ast.iter_fields(node):
        if name in left_out or (isinstance(node, ast.Subscript) and _is_type(node)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _reached(child)


def _is_type(node: ast.Subscript) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("Literal", "Callable", "tuple")
