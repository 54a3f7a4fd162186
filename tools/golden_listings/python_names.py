"""The public Python names: those of ``odefit.__all__`` and of docs/api, with their signatures."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import odefit

PAGES = Path(__file__).parents[2] / "docs/api"
DIRECTIVE = re.compile(r"\.\. auto(?:class|function|exception|data):: (odefit\.[\w.]+)")


def names() -> list[str]:
    """Return all public names, each with the module from which users import it."""
    found = {f"odefit.{name}" for name in odefit.__all__}
    for page in PAGES.glob("*.md"):
        found.update(DIRECTIVE.findall(page.read_text(encoding="utf-8")))
    return sorted(found)


def listing() -> dict[str, Any]:
    """Return every public name with its kind and signature."""
    return {name: _entry(_object(name)) for name in names()}


def _object(name: str) -> Any:
    """Return the object of a full name, in a module or in a class."""
    module, _, rest = name.partition(".")
    value: Any = import_module(module)
    while rest:
        first, _, rest = rest.partition(".")
        module = f"{module}.{first}"
        try:
            value = getattr(value, first)
        except AttributeError:
            value = import_module(module)
    return value


def _entry(value: Any) -> dict[str, Any]:
    if isinstance(value, ModuleType):
        return {"kind": "module"}
    if isinstance(value, type) and issubclass(value, Enum):
        return {"kind": "enumeration", "members": {m.name: m.value for m in value}}
    if isinstance(value, type):
        return {"kind": "class", "parameters": _parameters(value), "members": _members(value)}
    if callable(value):
        return {"kind": "function", "parameters": _parameters(value)}
    return {"kind": "value"}


def _members(cls: type) -> dict[str, Any]:
    """Return its public methods and properties that classes of odefit define."""
    inherited = {
        name
        for base in cls.__mro__
        if base.__module__.split(".")[0] == "odefit"
        for name in vars(base)
        if not name.startswith("_")
    }
    own = {field.name for field in fields(cls)} if is_dataclass(cls) else set()
    found: dict[str, Any] = {}
    for name in sorted(inherited - own):
        value = inspect.getattr_static(cls, name)
        if isinstance(value, staticmethod | classmethod):
            kind = "static method" if isinstance(value, staticmethod) else "class method"
            found[name] = {"kind": kind, "parameters": _parameters(getattr(cls, name))}
        elif inspect.isfunction(value):
            found[name] = {"kind": "method", "parameters": _parameters(value)}
        else:
            found[name] = {"kind": "attribute"}
    return found


def _parameters(value: Any) -> dict[str, Any]:
    """Return the parameters of a call by name; types are left out, since they may widen.

    A parameter without a position is keyword-only.
    """
    try:
        signature = inspect.signature(value)
    except ValueError:  # members of Python's classes are left out
        return {}
    found = {}
    for position, (name, parameter) in enumerate(signature.parameters.items()):
        if name == "self" or name.startswith("_"):
            continue
        required = parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        )
        entry: dict[str, Any] = {"required": True} if required else {}
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            entry["kind"] = parameter.kind.description
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            entry["position"] = position
        if parameter.default is not parameter.empty:
            entry["default"] = _default(parameter)
        found[name] = entry
    return found


def _default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    if inspect.isfunction(value) or isinstance(value, type):
        return value.__qualname__
    text = repr(value)
    # The default representation contains an address, which differs between runs.
    return type(value).__name__ if re.search(r" at 0x[0-9a-fA-F]+>", text) else text
