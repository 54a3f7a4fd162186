"""Result files: JSON that any program can read, and that gives the same result back.

Numbers that JSON cannot write are written as follows: not-a-number as ``null``, infinities as
``"inf"`` and ``"-inf"``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import numpy as np

from odefit.assessment.parts import Assessment, Trouble
from odefit.assessment.profiles.parts import Verdict
from odefit.common.arrays import Array
from odefit.common.errors import InputError, shown
from odefit.common.partial_files import write_atomically
from odefit.methods.estimate import Certificate, Status
from odefit.problem.inputs.file_access import read_content, refuse_controls
from odefit.problem.inputs.issues import Issues
from odefit.problem.problem import Problem
from odefit.problem.variants.dated_unknowns import dated_unknowns
from odefit.result_data import ResultData
from odefit.result_data.notices import Notice, NoticeKind
from odefit.result_data.result_checks import check_repeated, check_shapes, check_values

if TYPE_CHECKING:
    from cattrs import Converter

FORMAT = 1
"""Version of the file format."""

ORDER = (
    "format", "problem", "method", "status", "message", "objective", "log_likelihood",
    "measure", "values", "parameters", "initial", "noise", "solutions", "assessment",
    "dates", "uncertainty", "goodness", "warnings", "notices", "reasons", "failed_stages",
    "seconds", "seed", "versions", "unknowns", "outliers", "profiles", "routes", "starts",
)  # fmt: skip
KEYS = (
    *ORDER,
    *(f.name for f in fields(ResultData) if f.name not in ORDER),
    "problem_definition",
)
"""The keys of a file, in their order. Those that are no attributes of :class:`ResultData` repeat
other values, for programs that read the file without odefit."""

OPTIONAL_KEYS = (
    *(f.name for f in fields(ResultData) if f.metadata.get("optional", False)),
    "measure",
    "values",
    "dates",
)
"""Keys that a file omits if they would be empty."""

BY_KEY = ("standard_errors", "intervals")
"""Parts of the uncertainty that are written by the key of the unknown, to be looked up there."""

ENUMERATIONS: tuple[type[Enum], ...] = (Status, Trouble, Verdict, NoticeKind)
"""Enumerations whose values files hold; other values are refused."""

_EQUAL_SOLUTIONS = re.compile(
    r"(\d+) different solutions fit equally well; they differ in (.*?)\. The estimates"
)
"""The warning of several equally good solutions in files of odefit 0.1 without ``notices``."""

MAX_SIZE = 200_000_000
"""Largest size of a file in bytes, five times that of ten thousand starts of 100 unknowns."""

MAX_KEYS, MAX_VALUES = 1_000_000, 20_000_000
"""Largest number of keys of all objects of a file, and of commas."""

MAX_DIGITS = 300  # of a whole number

REMEDY = (
    "the file is damaged or not a result of odefit; write it again with --json or result.save()"
)


def save_result(result: ResultData, path: str | Path) -> None:
    """Write `result` to `path`; an existing file is replaced only once the new one is complete."""
    write_atomically(path, f"{_text(to_mapping(result))}\n")


def read_result(path: str | Path) -> ResultData:
    """Read a file of :func:`save_result`; an :class:`InputError` says what is wrong with it."""
    issues = Issues()
    content = read_content(Path(path), str(path), issues, MAX_SIZE)
    issues.raise_errors()
    try:
        text = (content or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text; {REMEDY}") from error
    for entries, count, most in (
        ("keys", text.count('":'), MAX_KEYS),
        ("values", text.count(","), MAX_VALUES),
    ):
        if count > most:
            raise InputError(f"{path}: has {count} {entries}, and {most} are read at most")
    try:
        data = json.loads(
            text, parse_constant=_no_constant, parse_int=_whole, object_pairs_hook=_once
        )
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not valid JSON: {error}; {REMEDY}") from error
    return from_mapping(data, str(path))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; a key that occurs twice raises a ValueError."""
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in content if keys.count(key) > 1)
        raise ValueError(f"the key {shown(twice)} occurs twice in one object")
    return content


def _whole(digits: str) -> int:
    """Return a whole number; one that no float can hold raises a ValueError."""
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a whole number has {len(digits)} digits")
    return int(digits)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _text(value: Any, indent: str = "") -> str:
    """Return JSON with objects spread over lines, and lists of numbers on one."""
    if isinstance(value, dict) and value:
        items = [f"{json.dumps(k)}: {_text(v, indent + '  ')}" for k, v in value.items()]
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        items = [_text(item, f"{indent}  ") for item in value]
    else:
        return json.dumps(value, allow_nan=False)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inside = f",\n{indent}  ".join(items)
    return f"{opening}\n{indent}  {inside}\n{indent}{closing}"


def to_mapping(result: ResultData) -> dict[str, Any]:
    """Return `result` as plain values: dicts, lists, strings, finite numbers, None."""
    from odefit.problem.toml.files import problem_to_mapping

    problem, plain = result.problem, _converter().unstructure(result)
    best = plain["solutions"][0] if result.solutions else {"parameters": {}, "initial": {}}
    vector = best.get("vector", [None] * len(problem.keys))
    plain |= {key: best.get(key) for key in ("objective", "log_likelihood")}
    plain |= {key: best[key] for key in ("parameters", "initial")}
    plain["noise"] = {
        u.key: v for u, v in zip(problem.unknowns, vector, strict=True) if u.kind == "noise"
    }
    uncertainty = plain["uncertainty"]
    for name in BY_KEY if uncertainty else ():
        uncertainty[name] = dict(zip(uncertainty["keys"], uncertainty[name], strict=True))
    plain |= {"format": FORMAT, "problem": problem.name, "unknowns": list(problem.keys)}
    plain["problem_definition"] = _converter().unstructure(problem_to_mapping(problem))
    if result.log_likelihood is not None:  # otherwise objectives compare
        plain["measure"] = result.measure
        plain["values"] = [result.value_of(solution) for solution in result.solutions]
    plain["dates"] = _dates(result)
    empty = {key for key in OPTIONAL_KEYS if not plain.get(key)}
    if all(notice.kind is NoticeKind.OTHER for notice in result.notices):
        empty.add("notices")  # a file of a version that had none stays as it is
    return {key: plain[key] for key in KEYS if key not in empty}


def _dates(result: ResultData) -> dict[str, dict[str, str | None]]:
    """Return the dates of estimates that are points of time, and of the ends of their intervals."""
    dates: dict[str, dict[str, str | None]] = {}
    uncertainty = result.uncertainty
    for key, dated in dated_unknowns(result.problem).items() if result.solutions else ():
        values = {"estimate": float(result.best.vector[result.problem.keys.index(key)])}
        if uncertainty is not None and key in uncertainty.keys:
            ends = map(float, uncertainty.intervals[uncertainty.keys.index(key)])
            values |= zip(("lower", "upper"), ends, strict=True)
        of_key = {name: dated.date(value) for name, value in values.items()}
        dates[key] = {
            name: None if date is None else date.isoformat() for name, date in of_key.items()
        }
    return dates


def from_mapping(data: Any, source: str = "result") -> ResultData:
    """Return the result whose plain values, those of :func:`to_mapping`, are given.

    An :class:`InputError` names `source`, the place and what was expected there.
    """
    from cattrs import BaseValidationError

    if not isinstance(data, Mapping):
        raise InputError(f"{source}: expected an object; {REMEDY}")
    # True equals 1 in Python, and is no format.
    if isinstance(data.get("format"), bool) or data.get("format") != FORMAT:
        raise InputError(
            f"{source}, format: expected {FORMAT}, got {data.get('format')!r}; "
            "it was written by another version of odefit, or is not a result"
        )
    issues = Issues(source)
    refuse_controls(data, issues)
    issues.raise_errors()
    problem = _problem(data.get("problem_definition"), source)
    if data.get("unknowns") != list(problem.keys):
        raise InputError(
            f"{source}, unknowns: are not those of problem_definition "
            f"({', '.join(problem.keys)}); {REMEDY}"
        )
    repeated = {*KEYS} - {f.name for f in fields(ResultData)}
    content = {key: value for key, value in data.items() if key not in repeated}
    try:
        if "uncertainty" in content:
            content["uncertainty"] = _in_order(content["uncertainty"])
        result: ResultData = _converter().structure(content | {"problem": problem}, ResultData)
        if "notices" not in content:
            result = replace(result, notices=notices_of_sentences(result))
        check_shapes(result)
        check_values(result)
        check_repeated(data, to_mapping(result))
    except (BaseValidationError, ValueError) as error:
        raise InputError(f"{source}{_first(error)}; {REMEDY}") from error
    return result


def notices_of_sentences(result: ResultData) -> tuple[Notice, ...]:
    """Return the facts in the warnings of a file from before files held facts.

    Only the facts that tables and reports depend on are read from the sentences.
    """
    bad = "" if result.goodness is None else result.goodness.sentence

    def notice(warning: str) -> Notice:
        several = _EQUAL_SOLUTIONS.match(warning)
        if several is not None:
            numbers = {"count": float(several[1])}
            return Notice(NoticeKind.EQUAL_SOLUTIONS, numbers, tuple(several[2].split(", ")))
        return Notice(NoticeKind.NOT_NOISE if bad and warning == bad else NoticeKind.OTHER)

    return tuple(map(notice, result.warnings))


def _problem(definition: Any, source: str) -> Problem:
    from odefit.problem.toml.files import problem_from_mapping

    if not isinstance(definition, Mapping):
        raise InputError(f"{source}, problem_definition: expected an object; {REMEDY}")
    experiments = definition.get("experiment")
    for table in experiments if isinstance(experiments, list) else []:
        if isinstance(table, Mapping) and isinstance(table.get("data"), str):
            raise InputError(
                f"{source}, problem_definition: names the file {_shown(table['data'])}, where a "
                f"result holds its data; {REMEDY}"
            )
    try:
        return problem_from_mapping(definition)
    except InputError as error:
        messages = [f"{source}, problem_definition: {m}" for m in error.messages]
        raise InputError(messages) from error


def _in_order(uncertainty: Any) -> Any:
    """Return the uncertainty with lists, in the order of its keys, in place of tables by key."""
    if not isinstance(uncertainty, Mapping):
        return uncertainty
    keys, content = uncertainty.get("keys"), dict(uncertainty)
    for name in BY_KEY:
        table = content.get(name)
        if not (isinstance(table, Mapping) and isinstance(keys, list) and [*table] == keys):
            raise ValueError(f"uncertainty.{name}: expected a value for each unknown")
        content[name] = [*table.values()]
    return content


# Values and plain values -----------------------------------------------------------------------


@cache
def _converter() -> Converter:
    """Return the rules by which values become plain, and come back.

    cattrs walks through the dataclasses and records the place of each mistake. The rules define how
    numbers and arrays are written, and refuse values of another type.
    """
    from cattrs import Converter, cols, gen

    converter = Converter(unstruct_collection_overrides={Sequence: list})

    def rules(kind: Any) -> dict[str, Any]:
        hidden = [f.name for f in fields(kind) if not f.metadata.get("saved", True)]
        renamed = {"bounds": gen.override(rename="global")} if kind is Assessment else {}
        optional = [f.name for f in fields(kind) if f.metadata.get("optional", False)]
        left_out = {name: gen.override(omit_if_default=True) for name in optional}
        return renamed | left_out | {name: gen.override(omit=True) for name in hidden}

    def read(kind: Any) -> Any:
        strict = kind is not Certificate  # which has a gap, too
        fields = gen.make_dict_structure_fn(
            kind, converter, _cattrs_forbid_extra_keys=strict, **rules(kind)
        )
        return _only(Mapping, "an object", fields)

    def write(kind: Any) -> Any:
        plain = gen.make_dict_unstructure_fn(kind, converter, **rules(kind))
        if kind is not Certificate:
            return plain
        return lambda bounds: plain(bounds) | {"gap": plain_number(bounds.gap)}

    def is_literal(kind: Any) -> bool:
        return get_origin(kind) is Literal

    def is_array(kind: Any) -> bool:
        return np.ndarray in (kind, get_origin(kind))

    tuples, objects = cols.homogenous_tuple_structure_factory, cols.mapping_structure_factory
    converter.register_structure_hook_factory(is_dataclass, read)
    converter.register_structure_hook_factory(
        cols.is_sequence, lambda t: _only(list, "a list", tuples(t, converter))
    )
    converter.register_structure_hook_factory(
        cols.is_mapping, lambda t: _only(Mapping, "an object", objects(t, converter))
    )
    for kind, words in ((str, "a text"), (int, "a whole number"), (bool, "true or false")):
        converter.register_structure_hook(kind, _only(kind, words, lambda value, _: value))
    converter.register_structure_hook_func(is_literal, _one_of)
    for enumeration in ENUMERATIONS:
        # Each by itself: those whose members are texts would be read as any text.
        converter.register_structure_hook(enumeration, _one_of)
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook(Problem, lambda problem, _: problem)
    converter.register_structure_hook_func(is_array, _only(list, "a list of numbers", _array))
    converter.register_unstructure_hook_factory(is_dataclass, write)
    converter.register_unstructure_hook(float, plain_number)
    converter.register_unstructure_hook(Problem, lambda problem: problem)
    converter.register_unstructure_hook_func(is_array, lambda a: converter.unstructure(a.tolist()))
    return converter


def _only(kind: type, words: str, read: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return `read` restricted to one type of values; true and false are not integers."""

    def guarded(value: Any, target: Any) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"expected {words}, got {_shown(value)}")
        return read(value, target)

    return guarded


def plain_number(value: float) -> float | str | None:
    """Return a number for JSON: None for NaN, and infinities as texts."""
    if math.isfinite(value):
        return float(value)
    return None if math.isnan(value) else "inf" if value > 0 else "-inf"


def _number(value: Any, _: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not (isinstance(value, int | float) or value in ("inf", "-inf")):
        raise ValueError(f"expected a number, got {_shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("expected a number, got a very large integer") from None


def _one_of(value: Any, kind: Any) -> Any:
    known = {getattr(choice, "value", choice): choice for choice in get_args(kind) or kind}
    if value not in [*known]:
        raise ValueError(f"expected one of {', '.join(map(repr, known))}, got {_shown(value)}")
    return known[value]


def _array(value: list[Any], _: Any) -> Array:
    if any(isinstance(item, list) for item in value):
        if len({len(item) if isinstance(item, list) else -1 for item in value}) > 1:
            raise ValueError("expected rows of equal length")
        return np.array([_array(item, _) for item in value])
    return np.array([_number(item, _) for item in value], dtype=float)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _first(error: Exception) -> str:
    """Return the place of the first mistake and the reason, as messages give them."""
    from cattrs import (
        BaseValidationError,
        ClassValidationError,
        ForbiddenExtraKeysError,
        IterableValidationError,
    )

    if not isinstance(error, BaseValidationError):
        return f", {error}"  # our own checks give the place themselves
    place = ""
    while isinstance(error, ClassValidationError | IterableValidationError):
        noted, others = error.group_exceptions()
        note: object = noted[0][1] if noted else None
        error = noted[0][0] if noted else others[0]
        key = getattr(note, "name", getattr(note, "index", ""))
        place += f"[{key}]" if isinstance(key, int) else f".{key}" if key else ""
    if isinstance(error, ForbiddenExtraKeysError):
        reason = f"unknown key {', '.join(sorted(error.extra_fields))}"
    else:
        reason = "is missing" if isinstance(error, KeyError) else str(error)
    return f", {place.removeprefix('.')}: {reason}" if place else f": {reason}"
