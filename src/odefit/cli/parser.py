"""Parsers of the words of a command, which say what to write instead of a word they do not know."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from odefit.common.errors import closest, did_you_mean, listed

FILES = (".toml", ".yaml", ".yml", ".json", ".csv", ".xlsx")
"""Endings of the files that a command reads."""

OUTPUT = ("-o", "--out", "--output", "--save")
"""Names that other programs give to the option for the file that is written."""

ONE_WORD = ("--only", "--times")
"""Options whose value may be a list, with commas and without spaces."""


class CommandParser(argparse.ArgumentParser):
    """Parses the words of one command.

    An option with several values, such as ``--fix``, leaves a file after them to the command.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words, and end the program with a remedy if there is an unknown one."""
        words = self._values_ended(list(args or ()))
        options, unknown = super().parse_known_args(words, namespace)
        if unknown:
            self.error(f"{self._mistake(list(args or ()), unknown)}; see {self.prog} --help")
        return options, unknown

    def _values_ended(self, words: Sequence[str]) -> list[str]:
        """Return the words with every value of an option with several beside its own option."""
        several = {
            name
            for action in self._actions
            if action.nargs == "+" and not str(action.metavar).startswith("FILE")
            for name in action.option_strings
        }
        ended: list[str] = []
        option = ""
        for k, word in enumerate(words):
            if word == "--":
                return [*ended, *words[k:]]
            if word.startswith("-"):
                option = word if word in several else ""
            elif word.endswith(FILES) and "=" not in word and words[k - 1] != option:
                option = ""
            if not option:
                ended.append(word)
            elif word != option:
                ended.append(f"{option}={word}")
            elif k + 1 == len(words) or words[k + 1].startswith("-"):
                ended.append(word)  # without a value, which argparse reports
        return ended

    def _mistake(self, words: Sequence[str], unknown: Sequence[str]) -> str:
        """Return what is wrong with the words that are unknown, and what would be right."""
        name = unknown[0].split("=")[0]
        if name.startswith("-"):
            return f"there is no option {name}{self._instead(name)}"
        option, values = _before(words, unknown[0])
        if option in ONE_WORD:
            return f"{option} takes one word: write {option} {','.join(values)}"
        action = self._option_string_actions.get(option)
        if isinstance(action, argparse._AppendAction):
            repeated = " ".join(f'{option} "{value}"' for value in values)
            return f"{option} takes one text and may be repeated: write {repeated}"
        extra = listed([f"'{word}'" for word in unknown if not word.startswith("-")])
        return f"unexpected {extra}"

    def _instead(self, name: str) -> str:
        """Return what an unknown option may mean, as the end of a sentence."""
        if name in OUTPUT:
            files = [
                f"{action.option_strings[-1]} {action.metavar}"
                for action in self._actions
                if action.option_strings and str(action.metavar).startswith("FILE.")
            ]
            return f"; a file is written by {' or '.join(files)}" if files else ""
        known = {n.lstrip("-"): n for action in self._actions for n in action.option_strings}
        meant = closest(name.lstrip("-"), known)
        return f"; did you mean {known[meant]}?" if meant else ""


def mistaken_command(word: str, names: Iterable[str]) -> str:
    """Return what is wrong with a first word that is not a command, and what would be right."""
    if word.removeprefix("--") in names:
        return f"a command has no dashes: write odefit {word.removeprefix('--')}"
    if word.startswith("-"):
        return f"there is no option {word}; see odefit --help"
    if word.endswith(FILES):
        return f"a command is missing, as in odefit fit {word}; see odefit --help"
    return f"there is no command '{word}'{did_you_mean(word, names) or '; see odefit --help'}"


def _before(words: Sequence[str], word: str) -> tuple[str, list[str]]:
    """Return the option before a word, and all values that follow that option."""
    place = words.index(word)
    while place > 0 and not words[place].startswith("-"):
        place -= 1
    values = []
    for value in words[place + 1 :]:
        if value.startswith("-"):
            break
        values.append(value.strip(","))
    return words[place], values
