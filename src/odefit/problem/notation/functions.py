"""Functions and named expressions of the user, in postfix form with holes for arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from odefit.common.errors import shown
from odefit.expressions.derived_functions import DerivedFunction
from odefit.expressions.expressions import ExpressionError
from odefit.expressions.grammar import FUNCTIONS, NAME_PATTERN, RESERVED, Instruction, tokens_of
from odefit.expressions.parser import Parser
from odefit.expressions.postfix import TIME
from odefit.problem.inputs.issues import Issues
from odefit.problem.notation.arrays import number_text

_HEAD = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*\(([^()]*)\)\s*\Z")

FORM = 'write, for example, "mm(s, vmax, km)" = "vmax*s/(km + s)"'


@dataclass
class _Text:
    """A function or a named expression as written."""

    place: str
    arguments: tuple[str, ...]
    body: str = ""


def own_functions(
    functions: Mapping[str, object],
    definitions: Mapping[str, object],
    written_out: Callable[[str, frozenset[str]], str],
    issues: Issues,
) -> tuple[dict[str, DerivedFunction], frozenset[str]]:
    """Return functions and named expressions by name, and the names of mistaken ones.

    `functions` has bodies by heads, as in ``{"mm(s, vmax, km)": "vmax*s/(km + s)"}``. They may
    refer to each other in any order, but not in a circle. `written_out` expands the arrays of an
    expression, given the names that are taken.
    """
    texts: dict[str, _Text] = {}
    broken: set[str] = set()

    def add(name: str, made: _Text, body: object) -> None:
        if name in texts:
            issues.error(made.place, f"'{name}' is defined twice; see {texts[name].place}")
            return
        body = number_text(body) or body
        try:
            if isinstance(body, str):
                made.body = written_out(body, frozenset(made.arguments))
                texts[name] = made
                return
        except ExpressionError as error:
            issues.error(made.place, str(error))
        else:
            issues.expression(made.place, body)
            if not issues.has_errors(made.place):
                issues.expected(made.place, "an expression in quotes", body)
        broken.add(name)

    for head, body in functions.items():
        place = f"[functions] {head}"
        signature = _head(head, place, issues)
        if signature is None:
            broken.update(re.findall(r"\s*([A-Za-z_]\w*)", head)[:1])
        else:
            add(signature[0], _Text(place, signature[1]), body)
    for name, body in definitions.items():
        place = f"[definitions] {name}"
        if not NAME_PATTERN.match(str(name)) or name in RESERVED or name == TIME:
            issues.error(place, f"{shown(str(name))} cannot be a name; choose another")
            broken.add(str(name))
        else:
            add(str(name), _Text(place, ()), body)
    return _resolved(texts, broken, issues), frozenset(broken)


def _head(head: str, place: str, issues: Issues) -> tuple[str, tuple[str, ...]] | None:
    match = _HEAD.match(head)
    if match is None:
        issues.error(place, f"expected a name with its arguments; {FORM}")
        return None
    name, inside = match[1], match[2]
    arguments = tuple(a.strip() for a in inside.split(","))
    wrong = [a for a in arguments if not NAME_PATTERN.match(a) or a in RESERVED]
    if name in FUNCTIONS or name in RESERVED:
        issues.error(place, f"'{name}' is a function already; choose another name")
    elif arguments == ("",):
        issues.error(
            place, f"the function has no arguments; give its expression in [definitions] {name}"
        )
    elif wrong:
        issues.error(place, f"the argument {shown(wrong[0])} is not a name; {FORM}")
    elif len(set(arguments)) < len(arguments):
        issues.error(place, "two arguments have the same name; rename one")
    else:
        return name, arguments
    return None


def _resolved(
    texts: Mapping[str, _Text], failed: set[str], issues: Issues
) -> dict[str, DerivedFunction]:
    resolved: dict[str, DerivedFunction] = {}
    path: list[str] = []

    def resolve(name: str) -> None:
        """Parse the body of `name` after the bodies that it refers to."""
        text = texts[name]
        path.append(name)
        try:
            tokens = tokens_of(text.body)
        except ExpressionError as error:
            issues.error(text.place, str(error))
            failed.add(name)
            path.pop()
            return
        used = dict.fromkeys(t.text for t in tokens if t.kind == "name")
        for other in used:
            if other in text.arguments or other not in {*texts, *failed}:
                continue
            if other in path:
                circle = " -> ".join([*path[path.index(other) :], other])
                issues.error(
                    text.place, f"refers to itself ({circle}); write its expression without that"
                )
                failed.add(name)
            elif other not in resolved and other not in failed:
                if len(path) > MAX_CHAIN:
                    issues.error(text.place, f"more than {MAX_CHAIN} refer to each other in a row")
                    failed.add(other)
                else:
                    resolve(other)
            if other in failed:
                failed.add(name)
        if name not in failed:
            _parse(name, text)
        path.pop()

    def _parse(name: str, text: _Text) -> None:
        # Arguments must differ from names of the model that definitions in the body introduce.
        holes = {
            a: DerivedFunction((), None, (Instruction("name", f"{HOLE}{k}"),))
            for k, a in enumerate(text.arguments)
        }
        visible = {**resolved, **holes}
        try:
            program = Parser(text.body, visible).parse(condition=False)
        except ExpressionError as error:
            issues.error(text.place, str(error))
            failed.add(name)
            return
        holed = tuple(
            int(step.text.removeprefix(HOLE)) if step.text.startswith(HOLE) else step
            for step in program
        )
        resolved[name] = DerivedFunction(text.arguments, None, holed)

    for name in texts:
        if name not in resolved and name not in failed:
            resolve(name)
    return resolved


MAX_CHAIN = 200
"""Longest chain of definitions that refer to each other."""


HOLE = "\x00"
"""Prefix of argument names while a function is expanded; users' names cannot have it."""
