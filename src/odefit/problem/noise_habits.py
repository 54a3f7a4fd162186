"""Other programs' ways to describe noise, with the table that is right here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from odefit.common.errors import MAX_SHOWN_LENGTH

ESTIMATED = frozenset(
    "estimate estimated estimation fit fitted free unknown auto automatic ? true yes none default "
    "optimise optimize".split()
)
"""Words that mean: estimate this from the data."""

RELATIVE = frozenset(
    "relative rel proportional prop cv rsd percent percentage multiplicative fraction".split()
)
ABSOLUTE = frozenset(
    "sd std sigma stdev stddev noise error err additive add absolute abs constant scale value "
    "standard deviation uncertainty homoscedastic".split()
)
VARIANCE = frozenset("variance var sigma2 sigmasq".split())
COMBINED = frozenset("combined mixed both additive+proportional combined1 combined2".split())
LOWER_LIMIT = frozenset("lloq llod loq lod blq bloq".split())
UPPER_LIMIT = frozenset("uloq ulod".split())
KIND = frozenset("type model kind noise error form distribution dist family".split())
LAWS = {
    "gaussian": "normal", "gauss": "normal", "normal": "normal",
    "lognormal": "log-normal", "log_normal": "log-normal", "exponential": "log-normal",
    "laplacian": "laplace", "negbin": "negative-binomial", "nbinom": "negative-binomial",
    "negativebinomial": "negative-binomial", "negative_binomial": "negative-binomial",
}  # fmt: skip

COUNTS = frozenset({"negative-binomial"})
"""Laws whose scatter is a dispersion."""

_PERCENT = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(%?)\s*\Z")
_UNKNOWN_FRACTION = "f = { lower = 0.001, upper = 1 } in [parameters]"
_UNKNOWN_PARTS = "a = { lower = 0 } and b = { lower = 0, upper = 1 } in [parameters]"


def is_word_of_others(field: str, value: object, fields: Iterable[object] = ()) -> bool:
    """Return whether the value of a field is a word of other programs, and not one of ours.

    Names alone are not among them in ``sd``, since they may be parameters.
    """
    if field == "sd":
        return value is True or (isinstance(value, (str, Mapping)) and _is_foreign_spread(value))
    if field == "relative":
        beside = "sd" in fields and _word(value) in ESTIMATED
        return value is True or beside or (isinstance(value, str) and _fraction(value) != value)
    foreign = RELATIVE | COMBINED | ABSOLUTE | LAWS.keys()
    return field == "distribution" and value not in LAWS.values() and _word(value) in foreign


def _is_foreign_spread(value: str | Mapping[Any, Any]) -> bool:
    return isinstance(value, Mapping) or "%" in value


def noise_meant(raw: Mapping[Any, Any], known: tuple[str, ...], observable: str) -> str | None:
    """Return how to write a noise whose keys or words are those of other programs.

    Parameters
    ----------
    given
        The table of the noise as it was given.
    known
        The fields that such a table has here.
    observable
        The name of the observable.

    Returns
    -------
    str or None
        The whole right table, with the parameters that it needs; None where a key is unknown in
        other programs, too.
    """
    absolute: Any = None
    relative: Any = None
    parts: list[str] = []
    counts = False
    for key, value in raw.items():
        tokens = frozenset(_word(key).split("_"))
        word = _word(value)
        if key == "relative" or (key not in known and tokens & RELATIVE):
            relative = _fraction(value) if "percent" not in tokens else _hundredth(value)
        elif key not in known and tokens & VARIANCE:
            absolute = _root(value)
        elif key not in known and tokens & LOWER_LIMIT:
            parts.append(f"lower_limit = {_written(value)}")
        elif key not in known and tokens & UPPER_LIMIT:
            parts.append(f"upper_limit = {_written(value)}")
        elif word in RELATIVE and (key in {"sd", "distribution"} or tokens & (KIND | ABSOLUTE)):
            relative = "estimate" if relative is None else relative
        elif word in COMBINED and tokens & KIND:
            absolute = relative = "estimate"
        elif word in ABSOLUTE and tokens & KIND:
            absolute = "estimate" if absolute is None else absolute
        elif word in LAWS and (key == "distribution" or (key not in known and tokens & KIND)):
            parts.append(f'distribution = "{LAWS[word]}"' if LAWS[word] != "normal" else "")
            counts = LAWS[word] in COUNTS
        elif key == "sd" or (key not in known and tokens & ABSOLUTE):
            if isinstance(value, str) and "%" in value:
                relative = _fraction(value)
            else:
                absolute = _fraction(value)
        elif key in known:
            parts.append(f"{key} = {_written(value)}")
        else:
            return None
    if absolute is not None and relative == "estimate" and "value" in raw:
        relative, absolute = absolute, None  # the value belongs to the word of the kind
    if counts:
        absolute = "estimate" if absolute is None else absolute
        scatter = [] if "dispersion" in raw else [f"dispersion = {_written(absolute)}"]
        return _written_table(observable, [*parts, *scatter])
    return _table(absolute, relative, [part for part in parts if part], observable)


def _written_table(observable: str, parts: Iterable[str]) -> str:
    return f"write {observable} = {{ {', '.join(parts)} }}"


def _table(absolute: Any, relative: Any, parts: list[str], observable: str) -> str:
    """Return the table of a noise with an absolute part, a relative one, or both, as written."""
    needed = ""
    if isinstance(absolute, Mapping):
        spread, needed = 'sd = "s"', f", with s = {_bounds(absolute)} in [parameters]"
    elif absolute is not None and relative is not None:
        known = absolute != "estimate" and relative != "estimate"
        a, b = (absolute, relative) if known else ("a", "b")
        spread = f'sd = "sqrt({a}^2 + ({b}*{observable})^2)"'
        needed = "" if known else f", with {_UNKNOWN_PARTS}"
    elif relative == "estimate":
        spread, needed = f'sd = "f*{observable}"', f", with {_UNKNOWN_FRACTION}"
    elif relative is not None:
        spread = f"relative = {_written(relative)}"
    else:
        spread = f"sd = {_written('estimate' if absolute is None else absolute)}"
    return f"{_written_table(observable, (spread, *parts))}{needed}"


def noise_of_unknown_name(name: str, alone: bool, observable: str) -> str | None:
    """Return the remedy for an undeclared name in a standard deviation.

    `alone` says that the name is the whole expression. None if the name is not a word for noise.
    """
    if alone and _word(name) in RELATIVE:
        return f"; {_table(None, 'estimate', [], observable)}"
    if alone and _word(name) in ESTIMATED | ABSOLUTE | {"normal", "gaussian"}:
        return f"; {_table('estimate', None, [], observable)}"
    if alone and name == f"{observable}_sd":
        return (
            f"; a column {name} of the data is used without being named: leave sd out, or write "
            'sd = "estimate"'
        )
    if _word(name) in ESTIMATED:
        return (
            f'; an estimated value needs a name: write sd = "f*{observable}", '
            f"with {_UNKNOWN_FRACTION}"
        )
    return None


def is_noise_field(key: object, known: tuple[str, ...]) -> bool:
    """Return whether a key is a field of noise, here or in other programs."""
    tokens = frozenset(_word(key).split("_"))
    others = RELATIVE | VARIANCE | LOWER_LIMIT | UPPER_LIMIT | (ABSOLUTE - {"value", "constant"})
    return key in known or bool(tokens <= others)


def _word(value: object) -> str:
    text = "true" if value is True else value
    if not isinstance(text, str) or len(text) > MAX_SHOWN_LENGTH:
        return ""
    return text.strip().casefold().replace("-", "_").replace(" ", "_")


def _fraction(value: object) -> Any:
    """Return a value as meant: a number, ``"estimate"``, or an expression."""
    if _word(value) in ESTIMATED | RELATIVE | ABSOLUTE:
        return "estimate"
    number = _PERCENT.match(value) if isinstance(value, str) else None
    if number is None:
        return f"({value})" if hasattr(value, "program") else value
    try:
        return float(number[1]) / (100.0 if number[2] else 1.0)
    except ValueError:
        return value


def _hundredth(value: object) -> Any:
    number = _fraction(f"{value:g}%" if _is_number(value) else value)
    return "estimate" if isinstance(number, str) and number == "estimate" else number


def _root(value: object) -> Any:
    number = _fraction(value)
    return math.sqrt(number) if _is_number(number) and number > 0 else "estimate"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _bounds(table: Mapping[Any, Any]) -> str:
    """Return the table of a parameter as written, where a noise had one."""
    fields = [f"{key} = {_written(value)}" for key, value in table.items() if _is_number(value)]
    return f"{{ {', '.join(fields)} }}" if fields and all(map(str.isprintable, fields)) else "{}"


def _written(value: object) -> str:
    """Return a value in the notation of problem files; VALUE if it has none."""
    if _is_number(value):
        return f"{value:.6g}"
    if isinstance(value, str) and value.isprintable() and len(value) <= MAX_SHOWN_LENGTH:
        return f'"{value}"'
    return "VALUE"
