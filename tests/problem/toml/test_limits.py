"""Texts that would keep a parser busy are refused before it, whatever their kind and size."""

from __future__ import annotations

import random
import time
import tomllib
from collections.abc import Callable

import pytest

from odefit import InputError
from odefit.problem.toml.files import parsed_toml
from odefit.problem.toml.limits import MAX_DEPTH, MAX_KEYS, MAX_PARTS, check_toml

GROWING: dict[str, tuple[Callable[[int], str], str]] = {
    "parts of a key": (lambda n: ".".join("a" * n) + " = 1", "a key has more than 100 parts"),
    "parts of a header": (lambda n: f"[{'.'.join('a' * n)}]", "a key has more than 100 parts"),
    "quoted parts": (lambda n: " . ".join(['"."'] * n) + " = 1", "a key has more than 100 parts"),
    "lists": (lambda n: f"z = {'[' * n}", "in more than 100 levels are nested too deeply"),
    "tables": (lambda n: f"z = {'{a=' * n}", "in more than 100 levels are nested too deeply"),
    "keys": (lambda n: "\n".join(f"k{i} = 1" for i in range(n * 1000)), "more than 100000 keys"),
    "headers": (lambda n: "\n".join(f"[k{i}]" for i in range(n * 1000)), "more than 100000 keys"),
    "keys with parts": (lambda n: "\n".join(f"k{i}{'.a' * 90}=1" for i in range(n * 15)), "keys"),
    "values": (lambda n: f"z = [{'1,' * (n * 10_000)}]", "more than 1000000 values in lists"),
}
"""What grows with a number above 100, and what is told of it."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", GROWING)
def test_an_oversized_file_is_refused_with_the_limit_and_the_place(kind: str) -> None:
    made, told = GROWING[kind]
    size = random.Random(kind).randrange(120, 200)
    began = time.process_time()
    with pytest.raises(InputError, match=rf"f\.toml: .*{told}.* \(at line \d+, column \d+\)") as e:
        parsed_toml(f"format = 1\n{made(size)}", "f.toml")
    assert time.process_time() - began < 10.0
    assert len(str(e.value)) < 200


def test_brackets_in_texts_and_comments_do_not_count() -> None:
    inside = "[{.=," * 1000
    text = f'a = """{inside}\n"""\nb = \'{inside}\' # {inside}\nc = "\\"{inside}"\n'
    assert tomllib.loads(text)
    check_toml(text, "f.toml")


@pytest.mark.parametrize("text", ['a = "' + '\\"' * 500_000, '"' * 500_000, "'" * 500_000])
def test_an_unterminated_text_is_scanned_once(text: str) -> None:
    began = time.process_time()
    check_toml(text, "f.toml")
    assert time.process_time() - began < 5.0


def test_a_problem_of_ten_thousand_equations_is_within_the_limits() -> None:
    keys = "\n".join(f'"x[{i}]" = "-k{i}*x[{i}] + 1.5"' for i in range(10_000))
    check_toml(f"[ode]\n{keys}\n[data]\ny = [{'1.5, ' * 100_000}]", "f.toml")
    assert (MAX_DEPTH, MAX_PARTS, MAX_KEYS) == (100, 100, 100_000)
