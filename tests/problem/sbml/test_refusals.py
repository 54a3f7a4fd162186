"""What cannot be read is refused, with the element, its line and the reason."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

import odefit
from odefit.problem.sbml import read_sbml
from tests.problem.sbml.texts import (
    compartment,
    event,
    function,
    listed,
    math,
    parameter,
    reaction,
    rule,
    sbml,
    species,
    starting,
)

CELL = listed("Compartments", compartment("c")) + listed("Species", species("A"), species("B"))
PARAMETERS = listed("Parameters", parameter("k"), parameter("y", 1.0, constant=False))


def reactions(*given: str) -> str:
    return sbml(CELL + PARAMETERS + listed("Reactions", *given))


def rules(*given: str) -> str:
    return sbml(CELL + PARAMETERS + listed("Rules", *given))


def events(*given: str) -> str:
    return sbml(CELL + PARAMETERS + listed("Events", *given))


def priority(formula: str) -> str:
    return f"<priority>{math(formula)}</priority>"


DELAYED = f"<delay>{math('2')}</delay>"

CASES = {
    "a reaction without a law": (
        reactions(reaction("r", "A", "B", None)),
        r"reaction 'r' \(line \d+\): it has no kinetic law",
    ),
    "two local parameters of one name": (
        reactions(reaction("r", "A", "B", "q*A", listed(
            "LocalParameters", 2*'<localParameter id="q" value="3"/>'))),
        "reaction 'r': two of its local parameters are named 'q'",
    ),
    "an unknown name in a law": (
        reactions(reaction("r", "A", "B", "kk*A")),
        r"reaction 'r' \(line \d+\): 'kk' is not defined; did you mean 'k'",
    ),
    "a stoichiometry that is missing": (
        reactions(reaction("r", "A", "B", "k*A")).replace('stoichiometry="1"', "", 1),
        r"reaction 'r' \(line \d+\): the stoichiometry of 'A' is not given",
    ),
    "an unknown species": (
        reactions(reaction("r", "AA", "B", "k*A")),
        "reaction 'r' .*there is no species 'AA'; did you mean 'A'",
    ),
    "the delay of a value": (
        rules(rule("rate", "y", "delay(y, 1)")),
        "rate rule of 'y' .*odefit has no delay differential equations",
    ),
    "a function without a counterpart": (
        rules(rule("assignment", "y", "floor(time)")),
        "assignment rule of 'y' .*expressions have no 'floor'",
    ),
    "a circle of rules": (
        sbml(CELL + listed("Parameters", parameter("y", None, False), parameter("z", None, False))
             + listed("Rules", rule("assignment", "y", "z + 1"), rule("assignment", "z", "2*y"))),
        "model: defined by itself: y -> z -> y",
    ),
    "a circle of initial assignments": (
        sbml(CELL + listed("Parameters", parameter("y"), parameter("z"))
             + listed("InitialAssignments", starting("y", "z"), starting("z", "y"))),
        "initial values: defined by itself: y -> z -> y",
    ),
    "two rules for one variable": (
        rules(rule("rate", "y", "1"), rule("rate", "y", "2")),
        "rate rule of 'y' .*'y' has two rules",
    ),
    "a rule for a constant": (
        rules(rule("rate", "k", "1")),
        "rate rule of 'k' .*'k' is constant and cannot have a rule",
    ),
    "a rule for nothing": (
        rules(rule("rate", "z", "1")),
        "rate rule of 'z' .*'z' is not a variable of the model",
    ),
    "a species with a rule and a reaction": (
        sbml(CELL + PARAMETERS + listed("Rules", rule("rate", "A", "1"))
             + listed("Reactions", reaction("r", "A", "", "k*A"))),
        "reaction 'r' .*it changes 'A', which has a rule",
    ),
    "an identifier twice": (
        sbml(CELL + listed("Parameters", parameter("A"))),
        "the identifier 'A' is already used",
    ),
    "a species nowhere": (
        sbml(listed("Compartments", compartment("c")) + listed("Species", species("A", place="d"))),
        r"species 'A' \(line \d+\): there is no compartment 'd'",
    ),
    "a function with too few arguments": (
        sbml(listed("FunctionDefinitions", function("f", "x, y", "x*y")) + CELL + PARAMETERS
             + listed("Rules", rule("assignment", "y", "f(k)"))),
        "the function 'f' takes 2 arguments, got 1",
    ),
    "a function that calls itself": (
        sbml(listed("FunctionDefinitions", function("f", "x", "f(x)*x")) + CELL + PARAMETERS
             + listed("Rules", rule("assignment", "y", "f(k)"))),
        "the function 'f' calls itself",
    ),
    "an event of nothing": (
        events(event("e", "time > 1", {"z": "2"})),
        "event 'e' .*'z' is not a variable of the model",
    ),
    "an infinite value": (
        sbml(listed("Parameters", parameter("k", float("inf"))).replace('"inf"', '"INF"')),
        "parameter 'k' .*its value inf is not finite",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_message_has_the_element_and_the_reason(case: str) -> None:
    text, message = CASES[case]
    with pytest.raises(odefit.InputError, match=f"SBML text: .*{message}"):
        read_sbml(text)


def test_everything_is_reported_at_once() -> None:
    with pytest.raises(odefit.InputError) as caught:
        read_sbml(reactions(reaction("r", "A", "B", None), reaction("s", "A", "B", "q*A")))
    assert len(caught.value.messages) == 2


def test_a_level_2_event_with_an_empty_delay_has_no_delay() -> None:
    text = events(event("e", "time > 1", {"y": "2"}, more=f"<delay>{math('0')}</delay>"))
    assert read_sbml(text).events[0].assign == {"y": "2"}


ENTITIES = (
    '<?xml version="1.0"?><!DOCTYPE sbml [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + ']><sbml xmlns="http://www.sbml.org/sbml/level2/version4" level="2" version="4">'
    "<model id='m'><notes>&i;</notes></model></sbml>"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTITIES, "it declares a document type"),
        ('<!DOCTYPE s SYSTEM "file:///etc/passwd"><sbml/>', "it declares a document type"),
        ("<html></html>", "not SBML: the outermost element is <html>, not <sbml>"),
        ("<sbml", "not XML that can be read, line 1"),
        (sbml("<a>" * 5000 + "</a>" * 5000), "nested deeper than 1500 levels"),
        (
            sbml(CELL).replace("<listOfSpecies>", ""),
            "not XML that can be read, line 4: mismatched tag",
        ),
        (sbml("<nonsense/>"), "line 3: .*Element 'nonsense' is not part"),
    ],
    ids=["entities", "external", "html", "cut", "deep", "unbalanced", "unknown"],
)
def test_harmful_documents_and_other_files_are_refused(text: str, message: str) -> None:
    with pytest.raises(odefit.InputError, match=message):
        read_sbml(text)


def test_texts_that_double_at_each_level_end_in_a_message() -> None:
    names = [f"x{i}" for i in range(40)]
    text = sbml(
        listed("Parameters", parameter("k"), *(parameter(n, None, False) for n in names))
        + listed("Rules", rule("assignment", "x0", "k"),
                 *(rule("assignment", b, f"{a}*({a} + 1)")
                   for a, b in itertools.pairwise(names)))
    )  # fmt: skip
    with pytest.raises(odefit.InputError, match="longer than 100000 characters"):
        read_sbml(text)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(odefit.InputError, match=r"model\.xml: there is no such file"):
        read_sbml(tmp_path / "model.xml")
    (tmp_path / "empty.xml").write_text("", encoding="utf-8")
    with pytest.raises(odefit.InputError, match="the file is empty"):
        read_sbml(tmp_path / "empty.xml")


def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libsbml", None)
    with pytest.raises(odefit.InputError, match=r"pip install odefit\[petab\]"):
        read_sbml(sbml(CELL))


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ('typ="integer"', r"line \d+: unknown attribute 'typ' of <cn>; did you mean 'type'"),
        (
            'xmlns:s="http://www.sbml.org/sbml/level3/version2/core" s:unit="second"',
            r"unknown attribute 'unit' of <cn>; the only attribute that SBML adds",
        ),
    ],
)
def test_unused_attributes_of_numbers_are_refused(attribute: str, message: str) -> None:
    text = rules(rule("rate", "y", "2*k"))
    assert "<cn" in text
    assert read_sbml(text).states["y"] == "2*k"
    with pytest.raises(odefit.InputError, match=message):
        read_sbml(text.replace("<cn", f"<cn {attribute} "))
