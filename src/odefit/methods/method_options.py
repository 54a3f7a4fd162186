"""The options of every method: names, meanings, defaults, and their values as text.

They are the fields of the method's class; its docstring gives their meanings.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from inspect import cleandoc, isabstract, isclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from odefit.common.errors import InputError, did_you_mean
from odefit.methods.method import Method
from odefit.methods.registry import DEFAULT_METHOD, METHODS, MethodEntry, make_method

PARTS = ("odefit.methods.smoothing", "odefit.methods.transcription")
"""Modules of objects that some options take: smoothers, schemes, meshes, formulations and solvers.
Text names their classes as on the command line: ``smoothing-spline`` for ``SmoothingSpline``."""

NOTHING = "none"  # the text of an option that is left open


@dataclass(frozen=True)
class MethodOption:
    """An option of a method in words: its field, values, default, and meaning."""

    name: str
    takes: str
    default: str
    meaning: str


def entry_of(name: str, place: str = "--method") -> MethodEntry:
    """Return the registered row of a method; raises InputError for another name."""
    if name in METHODS:
        return METHODS[name]
    raise InputError(
        f"{place}: unknown method {name!r}{did_you_mean(name, METHODS) or '.'} "
        f"Methods are: {', '.join(METHODS)}"
    )


def method_class(entry: MethodEntry) -> type:
    """Import and return the class of a method."""
    method_type: type = getattr(import_module(entry.module), entry.class_name)
    return method_type


def method_options(name: str) -> tuple[MethodOption, ...]:
    """Return all options of the method `name`, in the order of its class.

    Examples
    --------
    >>> [option.name for option in method_options("automatic")][:3]
    ['starts', 'hits', 'certain_hits']
    """
    owner = method_class(entry_of(name))
    hints = get_type_hints(owner)
    meanings = _meanings(owner)
    return tuple(
        MethodOption(
            field.name,
            " or ".join(_words(hints[field.name])),
            _shown(_default(field)),
            meanings.get(field.name, ""),
        )
        for field in fields(owner)
    )


def summary_of(name: str) -> str:
    """Return the purpose of a method: the first sentence of its docstring."""
    return cleandoc(method_class(entry_of(name)).__doc__ or "").split("\n\n")[0].replace("\n", " ")


def settings(name: str, texts: Iterable[str]) -> dict[str, Any]:
    """Return the values of options that are given as texts ``OPTION=VALUE``.

    A value is written as in TOML (a number, ``true``, ``[0.1, 0.2]``, ``{ k = 1.0 }``), as a bare
    word, as numbers or words separated by commas, or as ``none``. Raises InputError for an unknown
    option, or a value of the wrong type.

    Examples
    --------
    >>> settings("multiple-shooting", ["nodes=20", "tolerance=1e-6"])
    {'nodes': 20, 'tolerance': 1e-06}
    """
    entry = entry_of(name)
    owner = method_class(entry)
    hints = get_type_hints(owner)
    known = [field.name for field in fields(owner)]
    values: dict[str, Any] = {}
    problems: list[str] = []
    for text in texts:
        option, sign, value = text.partition("=")
        option = option.strip().replace("-", "_")
        if not sign:
            problems.append(f"--set: expected OPTION=VALUE such as {known[0]}=10, got {text!r}")
        elif option not in known:
            problems.append(
                f"--set: {entry.name} has no option {option!r}{did_you_mean(option, known) or '.'} "
                f"Its options are: {', '.join(known)}"
            )
        elif option in values:
            problems.append(f"--set: {option} is given twice")
        else:
            try:
                values[option] = converted(value.strip(), hints[option])
            except ValueError:
                expected = " or ".join(_words(hints[option]))
                problems.append(f"--set {option}: expected {expected}, got {value.strip()!r}")
    if problems:
        raise InputError(problems)
    return values


def configured(name: str | None, options: Mapping[str, Any], texts: Iterable[str] = ()) -> Method:
    """Make a method from options of the command line and from texts ``OPTION=VALUE``.

    See :func:`odefit.methods.registry.make_method` and :func:`settings`.
    """
    method = make_method(name, options)
    from_texts = settings(name or DEFAULT_METHOD, texts)
    twice = [key for key in from_texts if options.get(key) is not None]
    if twice:
        raise InputError(f"--set: {twice[0]} is also given as --{twice[0]}; keep one of them")
    changed: Method = replace(method, **from_texts) if from_texts else method  # type: ignore[type-var]
    return changed


def converted(text: str, hint: Any) -> Any:
    """Return the value of a type that a text means; raises ValueError if it means none."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if text == NOTHING and NoneType in choices:
        return None
    for read in (_plain, _collection, _part):
        for choice in choices:
            try:
                return read(value, text, choice)
            except ValueError:
                continue
    if str in choices and isinstance(value, str):
        return value
    raise ValueError(text)


# Values -------------------------------------------------------------------------------------------


def _plain(value: Any, text: str, hint: Any) -> Any:
    """Return a number, a truth value or one of several words."""
    if get_origin(hint) is Literal:
        if text in get_args(hint) or value in get_args(hint):
            return value if value in get_args(hint) else text
    elif hint is bool:
        if isinstance(value, bool):
            return value
    elif hint is int:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    elif hint is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise ValueError(text)


def _collection(value: Any, text: str, hint: Any) -> Any:
    """Return a tuple or a mapping, with every value converted."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is not None and isclass(origin) and issubclass(origin, Mapping):
        if isinstance(value, Mapping):
            return {k: converted(_text(v), inside[1]) for k, v in value.items()}
    elif origin is not None and isclass(origin) and issubclass(origin, Sequence):
        if isinstance(value, list):
            values = [_text(v) for v in value]
        elif isinstance(value, str):
            values = [part.strip() for part in value.split(",")]
        else:
            values = [text]
        return tuple(converted(v, inside[0]) for v in values)
    raise ValueError(text)


def _part(value: Any, text: str, hint: Any) -> Any:
    """Return an object named by its class or, for a local method, by the method."""
    parts = _parts(hint)
    if text not in parts:
        raise ValueError(text)
    return parts[text]()


def _parts(hint: Any) -> dict[str, Callable[[], Any]]:
    """Return the objects that an option takes, by name: all that need no arguments."""
    if not isclass(hint) or hint.__module__ == "builtins" or get_origin(hint) is not None:
        return {}
    if not getattr(hint, "_is_protocol", False):
        return {name: part for name, part in _all_parts().items() if isinstance(part(), hint)}
    attributes = {*vars(hint), *vars(hint).get("__annotations__", {})}
    asked = {name for name in attributes if not name.startswith("_")}
    offered = {n: method_class(e) for n, e in METHODS.items()} if "run" in asked else _all_parts()
    return {name: part for name, part in offered.items() if all(hasattr(part(), a) for a in asked)}


@cache
def _all_parts() -> dict[str, Callable[[], Any]]:
    """Return the parts of methods by name: smoothers, schemes, meshes and so on."""
    parts: dict[str, Callable[[], Any]] = {}
    for module in PARTS:
        package = import_module(module)
        for name in package.__all__:
            part = getattr(package, name)
            if not isclass(part) or isabstract(part) or not is_dataclass(part):
                continue
            if all(
                f.default is not MISSING or f.default_factory is not MISSING
                for f in fields(part)
                if f.init
            ):
                parts[_kebab(name)] = part
    return parts


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def _text(value: Any) -> str:
    """Return the text that gives a value which TOML has parsed."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_text(v) if not isinstance(v, str) else repr(v) for v in value)}]"
    return str(value)


# Words --------------------------------------------------------------------------------------------


def _words(hint: Any) -> list[str]:
    """Return the possible values of an option, in words."""
    if get_origin(hint) in (Union, UnionType):
        choices = [c for c in get_args(hint) if c is not NoneType]
        words = [word for choice in choices for word in _words(choice)]
        open_end = [NOTHING] if NoneType in get_args(hint) else []
        return list(dict.fromkeys([*words, *open_end]))
    if get_origin(hint) is Literal:
        return [str(choice) for choice in get_args(hint)]
    simple = {bool: "true or false", int: "a whole number", float: "a number", str: "a name"}
    if hint in simple:
        return [simple[hint]]
    origin, inside = get_origin(hint), get_args(hint)
    if origin is not None and isclass(origin) and issubclass(origin, Mapping):
        return [f"a table by name, each {' or '.join(_words(inside[1]))}"]
    if origin is not None and isclass(origin) and issubclass(origin, Sequence):
        return [f"a list, each {' or '.join(_words(inside[0]))}"]
    return list(_parts(hint)) or [f"(in Python) a {getattr(hint, '__name__', hint)}"]


def _default(field: Field[Any]) -> Any:
    """Return the default of a field."""
    if field.default is not MISSING:
        return field.default
    assert field.default_factory is not MISSING, "options have defaults"
    return field.default_factory()


def _shown(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(_shown(v) for v in value) or NOTHING
    if isinstance(value, (int, float, str)):
        return str(value)
    parts = vars(value)
    inside = ", ".join(f"{k}={v}" for k, v in parts.items() if isinstance(v, (int, float, str)))
    name = _kebab(type(value).__name__)
    return f"{name} ({inside})" if inside else name


def _meanings(owner: type) -> dict[str, str]:
    """Return the meaning of every attribute in the docstring of a class."""
    text = cleandoc(owner.__doc__ or "")
    match = re.search(r"^Attributes\n-+\n(.*?)(?=^\w+\n-+$|\Z)", text, re.DOTALL | re.MULTILINE)
    if match is None:
        return {}
    meanings: dict[str, str] = {}
    for names, body in re.findall(r"^(\S.*)\n((?:[ ]+.*\n?|\n)+)", match[1], re.MULTILINE):
        meaning = " ".join(body.split()).replace("``", "")
        meaning = re.sub(r"\bNone\b", NOTHING, re.sub(r":\w+:`", "`", meaning))
        for name in names.split(","):
            meanings[name.strip()] = re.sub(r"`~?(?:[\w.]*\.)?(\w+)`", r"\1", meaning)
    return meanings
