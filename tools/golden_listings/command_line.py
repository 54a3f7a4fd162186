"""Every command with its arguments and options, their placeholders, choices and defaults."""

from __future__ import annotations

import argparse
from typing import Any

from odefit.cli.commands import parser as command_parser
from odefit.cli.exit_statuses import DONE, INTERRUPTED, NO_FIT, TERMINATED, TIME_LIMIT, UNUSABLE
from odefit.methods.registry import METHODS


def listing() -> dict[str, Any]:
    """Return the commands, the methods by name, and the exit statuses."""
    parser = command_parser()
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return {
        "options": _arguments(parser),
        "commands": {name: _arguments(sub) for name, sub in commands.choices.items()},
        "methods": {name: entry.class_name for name, entry in METHODS.items()},
        "exit statuses": {
            "done": DONE,
            "unusable input": UNUSABLE,
            "no acceptable fit": NO_FIT,
            "time limit": TIME_LIMIT,
            "interrupted": INTERRUPTED,
            "terminated": TERMINATED,
        },
    }


def _arguments(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Return the arguments of a parser by the longest name of each option, without hidden ones."""
    found = {}
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        names = sorted(action.option_strings, key=len, reverse=True)
        entry: dict[str, Any] = {
            # Of several files or none, Python 3.13 says that they are required, 3.14 does not.
            "required": action.required and action.nargs != "*",
            "names": names or [action.dest],
            "placeholder": action.metavar,
            "values": action.nargs if isinstance(action.nargs, int | str) else 1,
            "default": _plain(action.default),
            "type": getattr(action.type, "__name__", None),
            "repeats": isinstance(action, argparse._AppendAction | argparse._ExtendAction),
        }
        if action.choices is not None:
            entry["choices"] = [str(choice) for choice in action.choices]
        found[names[0] if names else action.dest] = entry
    return found


def _plain(value: Any) -> Any:
    """Return a default as a JSON value."""
    if value is argparse.SUPPRESS:
        return None
    return value if isinstance(value, str | int | float | list | None) else str(value)
