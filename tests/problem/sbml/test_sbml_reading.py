"""SBML models become equations that mean the same."""

from __future__ import annotations

import random
from pathlib import Path

import libsbml
import pytest

import odefit
from odefit.problem.sbml import read_sbml
from tests.problem.sbml.interpreter import Interpreter, evaluated
from tests.problem.sbml.texts import (
    compartment,
    function,
    listed,
    parameter,
    reaction,
    rule,
    sbml,
    species,
    starting,
)

DATA = Path(__file__).parents[2] / "data" / "petab"
MODELS = sorted(DATA.glob("*/*model*.xml"))


def agree(text: str, time: float = 1.7) -> None:
    """Compare right-hand sides, assigned values and starts with the file itself."""
    document = libsbml.readSBMLFromString(text)
    model = document.getModel()
    found = read_sbml(text)
    numbers = random.Random(1)
    start = Interpreter(model, {})
    first = dict(found.constants)
    for name, formula in found.computed.items():
        first[name] = evaluated(formula, found.constants)
        assert first[name] == pytest.approx(start.symbol(name), rel=1e-12)
    for name, formula in found.initial.items():
        assert evaluated(formula, first) == pytest.approx(start.symbol(name), rel=1e-12)
    for _ in range(3):
        values = {name: numbers.uniform(0.5, 2.0) for name in found.states}
        here = Interpreter(model, values, time)
        for name, formula in found.states.items():
            element = model.getElementBySId(name)
            if isinstance(element, libsbml.Species):
                expected = here.change(element)
            else:
                expected = here.value(model.getRateRule(name).getMath())
            value = evaluated(formula, {**first, **values}, time)
            assert value == pytest.approx(expected, rel=1e-12, abs=1e-14)
        for name, formula in found.assigned.items():
            value = evaluated(formula, {**first, **values}, time)
            assert value == pytest.approx(here.symbol(name), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_published_models_agree_with_their_files(path: Path) -> None:
    assert len(MODELS) > 2
    agree(path.read_text(encoding="utf-8"))


CHAIN = sbml(
    listed("Compartments", compartment("c", 2.0))
    + listed("Species", species("A", 3.0), species("B", 4.0, given="Amount"))
    + listed("Parameters", parameter("k", 0.5), parameter("kb", 0.1))
    + listed("Reactions", reaction("r", "A", "2*B", "c*k*A"), reaction("b", "B", "", "kb*B"))
)


def test_a_reaction_in_a_compartment_changes_concentrations() -> None:
    model = read_sbml(CHAIN)
    assert dict(model.states) == {"A": "-k*A", "B": "2*k*A - kb*B/c"}
    assert dict(model.initial) == {"A": "3", "B": "4/c"}
    assert dict(model.constants) == {"c": 2.0, "k": 0.5, "kb": 0.1}
    assert dict(model.concentrations) == {"A": "c", "B": "c"}
    assert model.assigned["r"] == "c*k*A"
    agree(CHAIN)


def test_a_model_has_the_equations_and_its_parameters() -> None:
    model = odefit.Model.from_sbml(CHAIN, parameters=["k"])
    assert model.states == ("A", "B")
    assert model.parameters == {"k"}
    assert dict(model.constants) == {"c": 2.0, "kb": 0.1}
    with pytest.raises(odefit.InputError, match="no constant 'kk'; did you mean 'k'"):
        odefit.Model.from_sbml(CHAIN, parameters=["kk"])


def test_amounts_stay_amounts() -> None:
    text = sbml(
        listed("Compartments", compartment("c", 2.0))
        + listed(
            "Species",
            species("A", 3.0, amount=True),
            species("B", 4.0, amount=True, given="Amount"),
        )
        + listed("Parameters", parameter("k", 0.5))
        + listed("Reactions", reaction("r", "A", "B", "k*A"))
    )
    model = read_sbml(text)
    assert dict(model.states) == {"A": "-k*A", "B": "k*A"}
    assert dict(model.initial) == {"A": "3*c", "B": "4"}
    assert not model.concentrations
    agree(text)


def test_rules_functions_and_initial_assignments_are_written_out() -> None:
    text = sbml(
        listed("FunctionDefinitions", function("MM", "s, vmax, km", "vmax*s/(km + s)"),
               function("twice", "x", "MM(x, 2, 1)*2"))
        + listed("Compartments", compartment("c", 1.5))
        + listed("Species", species("S", None), species("P", 0.0))
        + listed("Parameters", parameter("v", 2.0), parameter("km", 0.3), parameter("total", None),
                 parameter("y", None, constant=False), parameter("z", 0.2, constant=False),
                 parameter("w", None, constant=False), parameter("km2", None))
        + listed("InitialAssignments", starting("S", "2*total + w"), starting("total", "v + km"),
                 starting("km2", "total^2"))
        + listed("Rules", rule("assignment", "y", "S + w"), rule("assignment", "w", "z*P + time"),
                 rule("rate", "z", "-y*z + km2"))
        + listed("Reactions", reaction("r", "S", "P", "c*MM(S, v, km)*twice(y)"))
    )  # fmt: skip
    model = read_sbml(text)
    assert model.assigned["y"] == "S + z*P + t"
    assert dict(model.computed) == {"total": "v + km", "km2": "(v + km)^2"}
    assert model.initial["S"] == "2*total + 0.2*0 + 0"
    assert any("'MM' is written out" in sentence for sentence in model.translated)
    agree(text)


def test_a_species_that_nothing_changes_is_constant() -> None:
    text = sbml(
        listed("Compartments", compartment("c", 2.0))
        + listed("Species", species("A"), species("E", 0.7), species("F", boundary=True),
                 species("G", 5.0, given="Amount"), species("cat"))
        + listed("Parameters", parameter("k"))
        + listed("Reactions", reaction("r", "A F cat", "cat", "c*k*A*E*F*G*cat"))
    )  # fmt: skip
    model = read_sbml(text)
    assert set(model.states) == {"A"}
    assert model.constants["E"] == 0.7
    assert model.computed == {"G": "5/c"}
    assert "E" in model.concentrations
    agree(text)


def test_starts_follow_what_a_condition_changes() -> None:
    text = sbml(
        listed("Compartments", compartment("c", 2.0))
        + listed("Species", species("A", None), species("B", 4.0, given="Amount"))
        + listed("Parameters", parameter("k"), parameter("p", None), parameter("q", None))
        + listed("InitialAssignments", starting("A", "B*q"), starting("p", "2*k"),
                 starting("q", "p + 1"))
        + listed("Reactions", reaction("r", "A", "B", "c*k*A*q"))
    )  # fmt: skip
    model = read_sbml(text)
    assert model.at_start().computed == {"p": "2*k", "q": "2*k + 1"}
    assert model.at_start().initial == {"A": "(4/c)*q", "B": "4/c"}
    changed = model.at_start({"p": 3, "B": "b0"})
    assert changed.computed == {"q": "p + 1"}
    assert changed.initial == {"A": "b0*q", "B": "b0"}
    with pytest.raises(odefit.InputError, match="'P' is not a state or constant"):
        model.at_start({"P": 1})
