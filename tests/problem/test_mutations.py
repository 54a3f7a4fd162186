"""Whatever is in a problem file, it gives a problem or an InputError: nothing else, and soon.

``ODEFIT_MUTATIONS=10000 python -m pytest tests/problem/test_mutations.py`` makes that many
mutated files of each kind.
"""

from __future__ import annotations

import datetime
import json
import os
import pickle
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from odefit.problem import (
    InputError,
    Problem,
    load,
    problem_from_mapping,
    problem_to_mapping,
)
from tests.problem.texts import DECAY, FULL, FULL_DATA

COUNT = int(os.environ.get("ODEFIT_MUTATIONS", "250"))

JUNK = (
    "",
    "0",
    "1",
    "-1",
    "true",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1979-05-27",
    "07:32:00",
    "[]",
    "{}",
    "[[1], 2]",
    "{ a = { b = [] } }",
    '""',
    '"x"',
    '"x1 +"',
    '"1/0"',
    '"x^1e9"',
    '"\\u0000"',
    "'''",
    '"""',
    "0x" + "F" * 5000,
    "9" * 5000,
    "[" * 2000,
    '"' + "(" * 5000 + '"',
    "x",
    "t",
    "__import__",
    "lower",
    "[ode]",
    "[[experiment]]",
    "[[experiment.event]]",
    "[experiment]",
    "format",
    "=",
    ".",
    ",",
    ";",
    "\\t",
    "#",
    "\\ufeff",
    "\\x00",
    "é",
    '"estimate"',
    '"log10"',
    "1_0",
    "<0.1",
    "1,5",
    "..",
    "/dev/zero",
    "one.csv",
    "full.toml",
    '"exp(exp(exp(1000)))"',
    '"min(x)"',
    '"gut[1]"',
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    0.0,
    2.5,
    float("nan"),
    float("inf"),
    10**30,
    1 << 20_000,
    "",
    "x",
    "x +",
    "1/0",
    "x^1e9",
    "(" * 2000,
    "estimate",
    "log10",
    "linear",
    "one.csv",
    ".",
    "a\x00",
    "k",
    "__import__('os')",
    [],
    [1],
    [[]],
    ["a"],
    [{}],
    {},
    {"a": 1},
    {"x": {}},
    {"lower": 2, "upper": 1},
    {"sd": 1},
    {"mean": 1, "sd": 1},
    datetime.date(1979, 5, 27),
    datetime.time(7, 32),
    b"bytes",
    {1: 2},
    {"t": [0, 1], "x": [1, None]},
    {"t": 3},
    (1, 2),
    1j,
)
KEYS = (
    "format",
    "ode",
    "odes",
    "x",
    "t",
    "exp",
    "",
    "a b",
    "__class__",
    "x" * 100,
    "é",
    "lower",
    "event",
    "sd",
    "data",
    "name",
    "V",
    "k12",
    "y1",
    "y1_sd",
    "u",
    "gut",
    "time",
    "times",
    "assign",
)


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    """`text` after one to four accidents."""
    for _ in range(draw(st.integers(1, 4))):
        lines = text.split("\n")
        line = draw(st.integers(0, len(lines) - 1))
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        junk = draw(st.sampled_from(JUNK) | st.text(max_size=6))
        what = draw(st.integers(0, 7))
        if what == 0:
            text = text[:start] + junk + text[end:]
        elif what == 1:
            text = text[:start] + text[end:]
        elif what == 2:
            text = "\n".join([*lines[:line], *lines[line + 1 :]])
        elif what == 3:
            other = draw(st.integers(0, len(lines) - 1))
            lines[line], lines[other] = lines[other], lines[line]
            text = "\n".join(lines)
        elif what == 4:
            text = "\n".join([*lines[:line], lines[line], *lines[line:]])
        elif what == 5:
            key, equals, _ = lines[line].partition("=")
            lines[line] = f"{key}{equals} {junk}"
            text = "\n".join(lines)
        elif what == 6:
            key, equals, value = lines[line].partition("=")
            lines[line] = f"{junk} {equals}{value}"
            text = "\n".join(lines)
        else:
            words = sorted({w for w in text.replace('"', " ").split() if w.isidentifier()})
            old = draw(st.sampled_from(words)) if words else "x"
            text = text.replace(old, draw(st.sampled_from([*words, junk])), 1)
    return text


@st.composite
def mutated_tree(draw: st.DrawFn, tree: Any) -> Any:
    """`tree` with one to four nodes replaced, removed, renamed or moved."""
    for _ in range(draw(st.integers(1, 4))):
        tree = _changed(draw, tree)
    return tree


def _changed(draw: st.DrawFn, node: Any) -> Any:
    if not isinstance(node, (dict, list)) or not node or draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(VALUES))
    inner: dict[Any, Any] = node if isinstance(node, dict) else dict(enumerate(node))
    key = draw(st.sampled_from(list(inner)))
    what = draw(st.integers(0, 6))
    if what <= 3:
        changed = {**inner, key: _changed(draw, inner[key])}
    elif what == 4:
        changed = {k: v for k, v in inner.items() if k != key}
    elif what == 5 and isinstance(node, dict):
        new = draw(st.sampled_from(KEYS))
        changed = {(new if k == key else k): v for k, v in inner.items()}
    else:
        changed = {**inner, key: draw(st.sampled_from(VALUES))}
    return changed if isinstance(node, dict) else list(changed.values())


def usable(problem: Problem) -> None:
    """A problem that was accepted can be written, read again, and sent to a worker."""
    mapping = problem_to_mapping(problem)
    again = problem_from_mapping(json.loads(json.dumps(mapping, allow_nan=False)))
    assert again.unknowns == problem.unknowns
    assert again.size == problem.size
    assert len(pickle.loads(pickle.dumps(problem)).keys) == len(problem.keys)


def readable(error: InputError) -> None:
    """Every message has a place and is not a page long."""
    assert error.messages
    for message in error.messages:
        assert ": " in message
        assert len(message) < 1000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutations")


def checks(count: int) -> settings:
    return settings(
        max_examples=count,
        deadline=datetime.timedelta(seconds=5),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


SOME, MANY = checks(min(60, COUNT)), checks(COUNT)

FILES = st.one_of(
    st.tuples(mutated(FULL), *map(st.just, FULL_DATA.values())),
    st.tuples(mutated(DECAY), mutated(FULL_DATA["one.csv"]), mutated("t,x\n0,1\n1,2\n")),
    st.tuples(st.just(FULL), mutated(FULL_DATA["one.csv"]), mutated(FULL_DATA["two.csv"])),
    st.tuples(mutated(FULL), mutated(FULL_DATA["one.csv"]), st.just(FULL_DATA["two.csv"])),
)


@pytest.mark.slow
@SOME
@given(FILES)
def test_a_mutated_file_is_a_problem_or_an_input_error(
    place: Path, texts: tuple[str, str, str]
) -> None:
    loaded_or_refused(place, texts)


@pytest.mark.slow
@MANY
@given(FILES)
def test_many_mutated_files_load_or_are_refused(place: Path, texts: tuple[str, str, str]) -> None:
    loaded_or_refused(place, texts)


def loaded_or_refused(place: Path, texts: tuple[str, str, str]) -> None:
    for name, text in zip(("full.toml", "one.csv", "two.csv"), texts, strict=True):
        (place / name).write_text(text, encoding="utf-8", errors="replace", newline="")
    (place / "data.csv").write_text(texts[2], encoding="utf-8", errors="replace", newline="")
    try:
        problem = load(place / "full.toml")
    except InputError as error:
        event("input error")
        readable(error)
    else:
        event("problem")
        usable(problem)


def in_place(text: str, data: Mapping[str, Mapping[str, Any]]) -> Any:
    tree = tomllib.loads(text)
    for experiment in tree["experiment"]:
        experiment["data"] = data[experiment["data"]]
    return tree


TREES = (
    in_place(DECAY, {"data.csv": {"t": [0, 1], "x": [1.0, None]}}),
    in_place(
        FULL,
        {
            "one.csv": {"t": [0, 1, 2], "y1": [1, 2, 3], "y2": [2, None, 1], "u": [0, 0, 1]},
            "two.csv": {"t": [5, 6], "y1": [1, 2], "y1_sd": [0.1, 0.2], "u": [1, 1]},
        },
    ),
    tomllib.loads(DECAY),
)


@SOME
@given(st.one_of(*map(mutated_tree, TREES)))
def test_a_mutated_structure_is_a_problem_or_an_input_error(place: Path, tree: Any) -> None:
    made_or_refused(place, tree)


@pytest.mark.slow
@MANY
@given(st.one_of(*map(mutated_tree, TREES)))
def test_many_mutated_structures_load_or_are_refused(place: Path, tree: Any) -> None:
    made_or_refused(place, tree)


def made_or_refused(place: Path, tree: Any) -> None:
    (place / "data.csv").write_text("t,x\n0,1\n1,2\n")
    try:
        problem = problem_from_mapping(tree, place)
    except InputError as error:
        event("input error")
        readable(error)
    else:
        event("problem")
        usable(problem)


@pytest.mark.parametrize("tree", TREES[:2], ids=["decay", "full"])
def test_without_mutation_it_is_a_problem(tree: Any) -> None:
    usable(problem_from_mapping(tree))
