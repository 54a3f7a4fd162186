"""Result files: JSON that any program can read, and that gives the same result back.

Numbers that JSON cannot write are written as follows: not-a-number as ``null``, infinities as
``"inf"`` and ``"-inf"``.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from odefit.assessment.parts import Assessment, Continuity, Local, Uncertainty
from odefit.methods.estimate import Agreement, Certificate, Completeness, Start, Status
from odefit.problem.errors import InputError
from odefit.problem.problem import Problem
from odefit.result_data import ResultData, Solution

FORMAT = 1
"""Version of the file format."""

REMEDY = "the file is damaged or no result of odefit; write it again with --json or result.save()"


def save_result(result: ResultData, path: str | Path) -> None:
    """Write `result` to `path`; an existing file is replaced only once the new one is complete.

    Raises
    ------
    InputError
        The place cannot be written to.
    """
    write_atomically(path, f"{_text(to_mapping(result))}\n")


def read_result(path: str | Path) -> ResultData:
    """Read what :func:`save_result` wrote.

    Raises
    ------
    InputError
        The file cannot be read, or holds no result of this format.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text; {REMEDY}") from error
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not valid JSON: {error}; {REMEDY}") from error
    return from_mapping(data, str(path))


def _text(value: Any, indent: str = "") -> str:
    """JSON with objects spread over lines, and lists of numbers on one."""
    if isinstance(value, dict) and value:
        items = [f"{json.dumps(k)}: {_text(v, indent + '  ')}" for k, v in value.items()]
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        items = [_text(item, f"{indent}  ") for item in value]
    else:
        return json.dumps(value, allow_nan=False)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inside = f",\n{indent}  ".join(items)
    return f"{opening}\n{indent}  {inside}\n{indent}{closing}"


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def to_mapping(result: ResultData) -> dict[str, Any]:
    """`result` as plain values: dicts, lists, strings, finite numbers, None."""
    from odefit.problem.files import problem_to_mapping

    best = result.solutions[0] if result.solutions else None
    assessment = result.assessment
    noise = {
        u.key: _plain(float(best.vector[i])) if best else None
        for i, u in enumerate(result.problem.unknowns)
        if u.kind == "noise"
    }
    return {
        "format": FORMAT,
        "problem": result.problem.name,
        "method": result.method,
        "status": result.status.value,
        "message": result.message,
        "objective": _plain(best.objective) if best else None,
        "log_likelihood": _plain(best.log_likelihood) if best else None,
        "parameters": _plain(best.parameters) if best else {},
        "initial": _plain(best.initial) if best else {},
        "noise": noise,
        "solutions": _plain(result.solutions),
        "assessment": {
            "local": _plain(assessment.local),
            "complete": _plain(assessment.complete),
            "global": _plain_bounds(assessment.bounds),
            "discretisation": _plain(assessment.discretisation),
            "continuity": _plain(assessment.continuity),
        },
        "uncertainty": _plain_uncertainty(result.uncertainty),
        "warnings": _plain(result.warnings),
        "seconds": _plain(result.seconds),
        "seed": int(result.seed),
        "versions": _plain(result.versions),
        "unknowns": list(result.problem.keys),
        "starts": _plain(result.starts),
        "problem_definition": _plain(problem_to_mapping(result.problem)),
    }


def from_mapping(data: Any, source: str = "result") -> ResultData:
    """A result from the plain values of :func:`to_mapping`.

    Parameters
    ----------
    data
        The values.
    source
        Where they come from, for messages.

    Raises
    ------
    InputError
        They are no result of this format.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"{source}: expected an object; {REMEDY}")
    if data.get("format") != FORMAT:
        raise InputError(
            f"{source}, format: expected {FORMAT}, got {data.get('format')!r}; "
            "it was written by another version of odefit, or is no result"
        )
    problem = _problem(data, source)

    def part(kind: Any, key: str) -> Any:
        return _typed(kind, _item(data, key, source), f"{source}, {key}")

    if part(tuple[str, ...], "unknowns") != problem.keys:
        raise InputError(
            f"{source}, unknowns: are not those of problem_definition "
            f"({', '.join(problem.keys)}); {REMEDY}"
        )
    result = ResultData(
        problem=problem,
        method=part(str, "method"),
        status=part(Status, "status"),
        message=part(str, "message"),
        solutions=part(tuple[Solution, ...], "solutions"),
        starts=part(tuple[Start, ...], "starts"),
        assessment=_assessment(_item(data, "assessment", source), f"{source}, assessment"),
        uncertainty=_uncertainty(_item(data, "uncertainty", source), f"{source}, uncertainty"),
        warnings=part(tuple[str, ...], "warnings"),
        seconds=part(float, "seconds"),
        seed=part(int, "seed"),
        versions=part(dict[str, str], "versions"),
    )
    _check_shapes(result, source)
    return result


def _problem(data: Mapping[str, Any], source: str) -> Problem:
    from odefit.problem.files import problem_from_mapping

    definition = _item(data, "problem_definition", source)
    if not isinstance(definition, Mapping):
        raise InputError(f"{source}, problem_definition: expected an object; {REMEDY}")
    try:
        return problem_from_mapping(definition)
    except InputError as error:
        messages = [f"{source}, problem_definition: {m}" for m in error.messages]
        raise InputError(messages) from error


def _assessment(data: Any, place: str) -> Assessment:
    if not isinstance(data, Mapping):
        raise InputError(f"{place}: expected an object, got {_shown(data)}; {REMEDY}")
    return Assessment(
        local=_typed(Local | None, data.get("local"), f"{place}.local"),
        complete=_typed(Completeness | None, data.get("complete"), f"{place}.complete"),
        bounds=_typed(Certificate | None, data.get("global"), f"{place}.global"),
        discretisation=_typed(
            Agreement | None, data.get("discretisation"), f"{place}.discretisation"
        ),
        continuity=_typed(Continuity | None, data.get("continuity"), f"{place}.continuity"),
    )


def _plain_bounds(bounds: Certificate | None) -> dict[str, Any] | None:
    return None if bounds is None else {**_plain(bounds), "gap": _plain(bounds.gap)}


def _plain_uncertainty(uncertainty: Uncertainty | None) -> dict[str, Any] | None:
    """Standard errors and intervals by key: that is how a reader looks them up."""
    if uncertainty is None:
        return None
    found: dict[str, Any] = _plain(uncertainty)
    for name in ("standard_errors", "intervals"):
        found[name] = dict(zip(uncertainty.keys, found[name], strict=True))
    return found


def _uncertainty(data: Any, place: str) -> Uncertainty | None:
    if not isinstance(data, Mapping):
        return None if data is None else _typed(Uncertainty, data, place)
    listed = dict(data)
    keys = _typed(tuple[str, ...], _item(data, "keys", place), f"{place}.keys")
    for name in ("standard_errors", "intervals"):
        table = _item(data, name, place)
        if not isinstance(table, Mapping) or set(table) != set(keys):
            raise InputError(f"{place}.{name}: expected a value for each unknown; {REMEDY}")
        listed[name] = [table[key] for key in keys]
    found: Uncertainty = _typed(Uncertainty, listed, place)
    n = len(keys)
    for name, shape in (("intervals", (n, 2)), ("covariance", (n, n)), ("correlation", (n, n))):
        array = getattr(found, name)
        if array.size != math.prod(shape):
            raise InputError(f"{place}.{name}: expected the shape {shape}; {REMEDY}")
        object.__setattr__(found, name, array.reshape(shape))  # [] does not say its width
    return found


def _check_shapes(result: ResultData, source: str) -> None:
    n = len(result.problem.unknowns)
    for i, solution in enumerate(result.solutions):
        if solution.vector.shape != (n,):
            raise InputError(f"{source}, solutions[{i}].vector: expected {n} numbers; {REMEDY}")
    for i, start in enumerate(result.starts):
        if start.start.shape != (n,) or start.vector.shape != (n,):
            raise InputError(f"{source}, starts[{i}]: expected vectors of {n} numbers; {REMEDY}")
    uncertainty = result.uncertainty
    if uncertainty is not None and not set(uncertainty.keys) <= set(result.problem.keys):
        raise InputError(f"{source}, uncertainty.keys: not all are unknowns; {REMEDY}")


def _saved(kind: Any) -> list[Field[Any]]:
    return [entry for entry in fields(kind) if entry.metadata.get("saved", True)]


def _item(data: Mapping[str, Any], key: str, place: str) -> Any:
    if key not in data:
        raise InputError(f"{place}: {key!r} is missing; {REMEDY}")
    return data[key]


# Plain values ---------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """Dataclasses, arrays and numbers as what JSON can hold."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if math.isnan(number):
            return None
        return number if math.isfinite(number) else ("inf" if number > 0 else "-inf")
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in _saved(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    raise TypeError(f"expected plain values, arrays or dataclasses, got {type(value).__name__}")


# Typed values ---------------------------------------------------------------------------------


def _typed(kind: Any, value: Any, place: str) -> Any:
    """`value`, as read from JSON, as the type `kind`.

    Raises
    ------
    InputError
        It is none.
    """
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        (kind,) = (k for k in get_args(kind) if k is not type(None))
        return _typed(kind, value, place)
    if origin is Literal:
        if value in get_args(kind):
            return value
        raise _wrong(place, f"one of {', '.join(map(repr, get_args(kind)))}", value)
    if kind is float:
        return _number(value, place)
    if origin is np.ndarray:
        return _array(value, place)
    if origin in (tuple, Sequence, list):
        if not isinstance(value, list):
            raise _wrong(place, "a list", value)
        inner = get_args(kind)[0]
        return tuple(_typed(inner, item, f"{place}[{i}]") for i, item in enumerate(value))
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise _wrong(place, "an object", value)
        inner = get_args(kind)[1]
        return {key: _typed(inner, item, f"{place}.{key}") for key, item in value.items()}
    if is_dataclass(kind):
        return _instance(kind, value, place)
    if issubclass(kind, Enum):
        known = [member.value for member in kind]
        if value in known:
            return kind(value)
        raise _wrong(place, f"one of {', '.join(map(repr, known))}", value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _wrong(place, _NAMES.get(kind, kind.__name__), value)
    return value


_NAMES = {str: "a text", int: "a whole number", bool: "true or false"}


def _instance(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        raise _wrong(place, "an object", value)
    hints = get_type_hints(kind)
    given = {}
    for entry in _saved(kind):
        if entry.name in value:
            at = f"{place}.{entry.name}"
            given[entry.name] = _typed(hints[entry.name], value[entry.name], at)
        elif entry.default is MISSING and entry.default_factory is MISSING:
            raise InputError(f"{place}: {entry.name!r} is missing; {REMEDY}")
    return kind(**given)


def _number(value: Any, place: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(place, "a number", value)
    return float(value)


def _array(value: Any, place: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    if not isinstance(value, list):
        raise _wrong(place, "a list of numbers", value)
    if any(isinstance(item, list) for item in value):
        rows = [_array(item, f"{place}[{i}]") for i, item in enumerate(value)]
        if len({row.shape for row in rows}) > 1:
            raise InputError(f"{place}: expected rows of equal length; {REMEDY}")
        return np.array(rows, dtype=float)
    return np.array([_number(v, f"{place}[{i}]") for i, v in enumerate(value)], dtype=float)


def _wrong(place: str, expected: str, value: Any) -> InputError:
    return InputError(f"{place}: expected {expected}, got {_shown(value)}; {REMEDY}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# Writing --------------------------------------------------------------------------------------


def write_atomically(path: str | Path, text: str) -> None:
    """Write a text file so that nobody ever sees half of it.

    Raises
    ------
    InputError
        The place cannot be written to.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # a pipe or a device can't be replaced
            target.write_text(text, encoding="utf-8")
            return
        target = target.resolve()  # a link stays a link
        beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
        try:
            with beside.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror or error}; choose another place"
        ) from error
