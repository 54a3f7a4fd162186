"""Names that clash, are missing, unknown or unused are told, each cause once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Errors = Callable[..., tuple[str, ...]]

HEAD = 'format = 1\n[ode]\nx1 = "-k_1*x1 + c"\nx2 = "k_1*x1 - k_2*x2"\n'
REST = "[constants]\nc = 1.0\n[parameters]\nk_1 = {}\nk_2 = {}\n[initial]\nx1 = 1.0\nx2 = 0.0\n"
RUN = '[[experiment]]\nname = "A"\ndata = "d.csv"\n'
OTHER = '[[experiment]]\nname = "B"\ndata = "d.csv"\n'


@pytest.fixture
def check(errors: Errors, folder: object) -> Callable[[str], tuple[str, ...]]:
    folder.write("d.csv", "t,x1,x2\n0,1,2\n1,2,3\n")  # type: ignore[attr-defined] # conftest's
    return errors


def test_the_unchanged_problem_is_valid(check: Errors) -> None:
    assert check(HEAD + REST + RUN + OTHER) == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # names in equations
        (
            "- k_2*x2",
            "- k2*x2",
            "[ode] x2: unknown name 'k2' in 'k_1*x1 - k2*x2'; did you mean 'k_2'?",
        ),
        (
            "- k_2*x2",
            "- qqq*x2 + qqq",
            "'qqq' in 'k_1*x1 - qqq*x2 + qqq'; declare it in [parameters]",
        ),
        ("+ c", "+ y", "[ode] x1: unknown name 'y' in '-k_1*x1 + y'; declare it"),
        (
            "[constants]",
            '[observables]\nx1 = "x1"\ny = "x1"\nz = "y+x2"\n[constants]',
            "refers to the observable 'y'",
        ),
        # declarations
        (
            "[parameters]",
            "[parameters]\nx1 = {}",
            "[parameters] x1: the name is already used in [ode]",
        ),
        (
            "[parameters]",
            "[parameters]\nc = {}",
            "[parameters] c: the name is already used in [constants]",
        ),
        ("[parameters]", "[parameters]\nt = {}", "[parameters] t: 't' is the time"),
        ("[parameters]", "[parameters]\n__import__ = {}", "names that start with __ are reserved"),
        ("[parameters]", '[parameters]\n"a b" = {}', "[parameters] 'a b': a name is letters"),
        # initial values
        ("x2 = 0.0\n", "", "[initial] x2: the initial value is missing"),
        (
            "x2 = 0.0",
            "X2 = 0.0",
            "[initial] X2: there is no state 'X2' in [ode]; did you mean 'x2'?",
        ),
        ("x2 = 0.0", "x2 = 0.0\nqqq = 1", "[initial] qqq: there is no state 'qqq'"),
        ("x2 = 0.0", 'x2 = "t"', "'t' in 't' is the time; only parameters and constants"),
        ("x2 = 0.0", 'x2 = "x1"', "'x1' in 'x1' is a state; only parameters and constants"),
        (
            "x2 = 0.0",
            'x2 = "1 - x1"',
            "; make the initial value of x1 a parameter, and use that: [parameters] x1_0 = {}, [",
        ),
        ("x2 = 0.0", 'x2 = "k1"', "[initial] x2: unknown name 'k1' in 'k1'; did you mean 'k_1'?"),
        # experiments
        ('name = "B"', 'name = "A"', '[[experiment]] "A": two experiments have this name'),
        ('name = "B"', 'name = "B"\ninitial = { x3 = 1 }', "no state 'x3'"),
        ('name = "B"', 'name = "B"\ninitial = { x1 = "x2" }', "'x2' in 'x2' is a state; only"),
        (
            'name = "B"',
            'name = "B"\nconstants = { x1 = 1 }',
            "'x1' is a state or an input, not a constant",
        ),
        ('name = "B"', 'name = "B"\nconstants = { c = "2*c" }', "constants.c: refers to itself"),
        (
            'name = "B"',
            'name = "B"\nconstants = { c = "2*k_1", k_1 = "k_2" }',
            "refers to 'k_1', which is computed",
        ),
        ('name = "B"', 'name = "B"\nconstants = { c = "x1" }', "only parameters and constants"),
        (
            'name = "B"',
            'name = "B"\nconstants = { k_3 = 1 }',
            "'k_3' occurs in no equation; did you mean",
        ),
        (
            "c = 1.0\n",
            "",
            "unknown name 'c' in '-k_1*x1 + c'; declare it in [parameters] or [constants]",
        ),
        # events
        (
            OTHER,
            OTHER + "[[experiment.event]]\ntime = 1\nassign = { x3 = 1 }",
            "no state or constant 'x3'",
        ),
        (OTHER, OTHER + "[[experiment.event]]\ntime = 1\nassign = { t = 1 }", "'t' is neither"),
        (
            OTHER,
            OTHER + '[[experiment.event]]\ntime = 1\nassign = { x1 = "x3" }',
            "unknown name 'x3'",
        ),
    ],
    ids=range(28),
)
def test_a_mistake_gives_one_message(check: Errors, old: str, new: str, message: str) -> None:
    text = HEAD + REST + RUN + OTHER
    assert text.count(old) == 1
    found = check(text.replace(old, new))
    assert len(found) == 1, found
    assert message in found[0]


def test_a_constant_that_only_some_experiments_give_is_missing_in_the_others(
    check: Errors,
) -> None:
    found = check(HEAD + REST.replace("c = 1.0\n", "") + RUN + "constants = { c = 2 }\n" + OTHER)
    assert len(found) == 1
    assert "\"B\" constants: no value for 'c', which other experiments give; give one" in found[0]


def test_a_name_that_is_declared_nowhere_is_reported_once_however_often_it_occurs(
    check: Errors,
) -> None:
    found = check((HEAD + REST + RUN).replace("k_1*x1", "qqq*x1").replace("k_1 = {}\n", ""))
    assert len(found) == 1


def test_an_equation_that_cannot_be_read_does_not_make_its_names_unknown(check: Errors) -> None:
    found = check((HEAD + REST + RUN).replace('c"', 'c +"'))
    assert len(found) == 1
