"""The options of campaigns, read from text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from odefit.common.errors import InputError, did_you_mean


def read_options(
    chosen: Mapping[str, str], meanings: Mapping[str, str], read: Callable[[str, str], Any]
) -> dict[str, Any]:
    """Return the values of the chosen options."""
    found: dict[str, Any] = {}
    for name, text in chosen.items():
        if name not in meanings:
            hint = did_you_mean(name, meanings) or ";"
            have = ", ".join(meanings)
            raise InputError(f"there is no option {name!r}{hint} options are: {have}")
        try:
            found[name] = read(name, text)
        except ValueError as error:
            raise InputError(f"{name}: expected {meanings[name]}; got {text!r}") from error
    return found


def check_known(
    option: str, given: Iterable[str], known: Collection[str], shown: Iterable[str] | None = None
) -> None:
    """Refuse names that an option does not have."""
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or ";"
            have = ", ".join(known if shown is None else shown)
            raise InputError(f"{option}: there is no {name!r}{hint} {option} are: {have}")
