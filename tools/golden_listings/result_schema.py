"""The JSON schema of result files of format 1, derived from the classes of their content."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from odefit.assessment.parts import Assessment, ProvedInterval, ProvedRegion
from odefit.methods.estimate import Certificate
from odefit.problem.problem import Problem
from odefit.result_data import ResultData
from odefit.result_data.result_file import FORMAT, KEYS, OPTIONAL_KEYS

FILE = Path(__file__).parents[2] / f"docs/_static/result-format-{FORMAT}.schema.json"

BY_NAME = {"type": "object", "additionalProperties": {"$ref": "#/$defs/number"}}
ARRAY = {"$ref": "#/$defs/array"}

BY_KEY: Mapping[str, Any] = {
    "standard_errors": BY_NAME,
    "intervals": {"type": "object", "additionalProperties": ARRAY},
}
"""Fields that are arrays in Python, and tables by the keys of unknowns in files."""

REPEATED: Mapping[str, Any] = {
    "format": {"const": FORMAT, "description": "The version of the format."},
    "problem": {"type": "string", "description": "The name of the problem."},
    "objective": {
        "anyOf": [{"$ref": "#/$defs/number"}, {"type": "null"}],
        "description": "The weighted sum of squared residuals of the best solution.",
    },
    "log_likelihood": {
        "anyOf": [{"$ref": "#/$defs/number"}, {"type": "null"}],
        "description": "The logarithm of its likelihood, where the noise is given or estimated.",
    },
    "measure": {"type": "string", "description": "The name of the numbers in values."},
    "values": {
        "type": "array",
        "items": {"$ref": "#/$defs/number"},
        "description": "By which solutions compare, in their order: -2 log L, or the objective.",
    },
    "parameters": BY_NAME | {"description": "Parameters of the best solution by name."},
    "initial": BY_NAME | {"description": "Initial values of the best solution by state."},
    "noise": BY_NAME | {"description": "Estimated parameters of the noise by name."},
    "dates": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "description": "Dates of estimates that are points of time, and of their intervals' ends.",
    },
    "unknowns": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Names of what was estimated, in the order of every vector.",
    },
    "problem_definition": {
        "type": "object",
        "description": "The problem with its data, in the structure of problem files.",
    },
}
"""Keys that are no attributes of :class:`ResultData`, for readers without odefit."""


def schema() -> dict[str, Any]:
    """Return the schema of a result file."""
    definitions: dict[str, Any] = {
        "number": {
            "anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}, {"type": "null"}],
            "description": "A number; null is not-a-number, which JSON cannot write.",
        },
        "array": {
            "type": "array",
            "items": {"anyOf": [{"$ref": "#/$defs/number"}, ARRAY]},
            "description": "Numbers, or rows of numbers.",
        },
    }
    own = _object(ResultData, definitions)["properties"]
    properties = {key: REPEATED[key] if key in REPEATED else own[key] for key in KEYS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Result of odefit, format {FORMAT}",
        "description": "Keys may be added to any object; readers pass over those unknown to them.",
        "type": "object",
        "required": [key for key in KEYS if key not in OPTIONAL_KEYS],
        "properties": properties,
        "$defs": dict(sorted(definitions.items())),
    }


def strict(part: Any) -> Any:
    """Return a schema that refuses keys that it does not name, to test that it names all."""
    if isinstance(part, list):
        return [strict(item) for item in part]
    if not isinstance(part, dict):
        return part
    found = {key: strict(value) for key, value in part.items()}
    closed = isinstance(part.get("properties"), dict) and part.get("type") == "object"
    return found | {"additionalProperties": False} if closed else found


def without_words(part: Any) -> Any:
    """Return a schema without its descriptions."""
    if isinstance(part, list):
        return [without_words(item) for item in part]
    if not isinstance(part, dict):
        return part
    # A property may have this name; its schema is an object, a description is a text.
    return {
        key: without_words(value)
        for key, value in part.items()
        if key != "description" or not isinstance(value, str)
    }


def _object(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a dataclass in a file."""
    hints, words = get_type_hints(kind), _attributes(kind.__doc__ or "")
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in fields(kind):
        if not field.metadata.get("saved", True):
            continue
        name = "global" if kind is Assessment and field.name == "bounds" else field.name
        inner = _schema(hints[field.name], definitions)
        if field.name in BY_KEY and kind not in (ProvedInterval, ProvedRegion):
            inner = BY_KEY[field.name]
            words |= {field.name: f"{words[field.name].split(',')[0]}, by the key of the unknown."}
        properties[name] = inner | (
            {"description": words[field.name]} if field.name in words else {}
        )
        if not field.metadata.get("optional", False):
            required.append(name)
    if kind is Certificate:
        properties["gap"] = {
            "$ref": "#/$defs/number",
            "description": "The relative distance between the bounds.",
        }
        required.append("gap")
    first = (kind.__doc__ or "").strip().split("\n")[0]
    return {
        "type": "object",
        "description": first,
        "required": required,
        "properties": properties,
    }


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type in result files."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is float:
        return {"$ref": "#/$defs/number"}
    if kind in (int, str, bool):
        return {"type": {int: "integer", str: "string", bool: "boolean"}[kind]}
    if kind is NoneType:
        return {"type": "null"}
    if kind is Problem:
        return {"type": "object"}
    alias = getattr(origin, "__value__", None)  # which NDArray is from NumPy 2.5 on
    if np.ndarray in (kind, origin, get_origin(alias)):
        return ARRAY
    if origin is Literal:
        return {"enum": list(arguments)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(argument, definitions) for argument in arguments]}
    if origin is tuple and arguments[-1] is not ...:
        items = [_schema(argument, definitions) for argument in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
    if origin in (tuple, list) or (isinstance(origin, type) and issubclass(origin, Sequence)):
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # a class may hold others of its kind
            definitions[kind.__name__] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    raise SystemExit(f"no schema is known for {kind!r}; add it to golden_listings/result_schema.py")


def _attributes(docstring: str) -> dict[str, str]:
    """Return the descriptions of attributes in the docstring of a class."""
    section = re.search(
        r"\n\s*Attributes\n\s*-+\n(.*?)(?:\n\s*\n\s*\w+\n\s*-+\n|\Z)", docstring, re.S
    )
    if section is None:
        return {}
    lines = section[1].split("\n")
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    found: dict[str, str] = {}
    current: list[str] = []
    for line in lines:
        if line.strip() and len(line) - len(line.lstrip()) == indent:
            current = [name.strip() for name in line.split(",")]
        else:
            for name in current:
                found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return {
        name: re.sub(r":\w+:`~?([^`]*)`|``([^`]*)``", r"\1\2", text) for name, text in found.items()
    }
