"""Rules, reactions and compartments of every kind mean what SBML says."""

from __future__ import annotations

import numpy as np
import pytest

import odefit
from odefit.problem.sbml import read_sbml
from tests.problem.sbml.interpreter import evaluated
from tests.problem.sbml.test_sbml_reading import agree
from tests.problem.sbml.texts import (
    compartment,
    event,
    listed,
    math,
    parameter,
    reaction,
    rule,
    sbml,
    species,
    starting,
)


def simulated(text: str, times: list[float]) -> dict[str, list[float]]:
    """Simulate a model of one experiment through odefit."""
    sections = read_sbml(text).mapping()
    [experiment] = sections["experiment"]
    experiment["data"] = {"t": times, next(iter(sections["ode"])): [1.0] * len(times)}
    problem = odefit.problem.problem_from_mapping(sections)
    found = odefit.simulate(problem, np.zeros(0), np.array(times))
    assert not isinstance(found, odefit.Failure)
    return {name: list(found.states[name]) for name in sections["ode"]}


def test_local_parameters_get_their_own_names() -> None:
    local = listed("LocalParameters", '<localParameter id="k" value="3"/>')
    text = sbml(
        listed("Compartments", compartment("c"))
        + listed("Species", species("A"), species("B"))
        + listed("Parameters", parameter("k", 0.5))
        + listed("Reactions", reaction("r1", "A", "B", "c*k*A", local),
                 reaction("r2", "B", "A", "c*k*B"))
    )  # fmt: skip
    model = read_sbml(text)
    assert dict(model.states) == {"A": "-r1_k*A + k*B", "B": "r1_k*A - k*B"}
    assert model.constants["r1_k"] == 3.0
    assert "the parameter 'k' of the reaction 'r1' is named 'r1_k'" in model.translated
    agree(text)


def test_the_rate_of_a_local_parameter_is_zero() -> None:
    """As in case 01460 of the semantic test suite: it hides a variable of the same name."""
    local = listed("LocalParameters", '<localParameter id="k" value="3"/>')
    text = sbml(
        listed("Compartments", compartment("c"))
        + listed("Species", species("A"), species("B"))
        + listed("Parameters", parameter("k", constant=False))
        + listed("Rules", rule("rate", "k", "2"))
        + listed("Reactions", reaction("r", "A", "B", "rateOf(k)", local))
    )
    assert read_sbml(text).states["k"] == "2"
    assert read_sbml(text).assigned["r"] == "0"


def test_conversion_factors_multiply_what_reactions_make() -> None:
    text = sbml(
        listed("Compartments", compartment("c", 2.0))
        + listed("Species", species("A"), species("B", more='conversionFactor="f"'))
        + listed("Parameters", parameter("f", 3.0), parameter("g", 0.5))
        + listed("Reactions", reaction("r", "A", "B", "c*A")),
        attributes='conversionFactor="g"',
    )
    assert dict(read_sbml(text).states) == {"A": "g*(-A)", "B": "f*A"}
    agree(text)


def test_a_stoichiometry_can_follow_from_an_assignment() -> None:
    made = '<speciesReference id="n" species="B" constant="false"/>'
    text = sbml(
        listed("Compartments", compartment("c"))
        + listed("Species", species("A"), species("B", 0.0))
        + listed("Parameters", parameter("k"))
        + listed("Rules", rule("assignment", "n", "k + time"))
        + listed("Reactions",
                 reaction("r", "A", "", "c*A").replace(
                     "<kineticLaw>", f"{listed('Products', made)}<kineticLaw>"))
    )  # fmt: skip
    assert read_sbml(text).states["B"] == "(k + t)*A"
    agree(text)


def test_level_2_and_level_1_are_read() -> None:
    level2 = (
        '<sbml xmlns="http://www.sbml.org/sbml/level2/version4" level="2" version="4">'
        '<model id="m">'
        + listed("Compartments", '<compartment id="c" size="2"/>')
        + listed("Species", '<species id="A" compartment="c" initialAmount="3"/>',
                 '<species id="B" compartment="c" initialConcentration="1"/>')
        + listed("Parameters", '<parameter id="k" value="0.5"/>')
        + "<listOfReactions><reaction id='r'><listOfReactants><speciesReference species='A'/>"
        "</listOfReactants><listOfProducts><speciesReference species='B'><stoichiometryMath>"
        + math("k + 2")
        + "</stoichiometryMath></speciesReference></listOfProducts><kineticLaw>"
        + math("c*k2*A")
        + '<listOfParameters><parameter id="k2" value="7"/></listOfParameters></kineticLaw>'
        "</reaction></listOfReactions></model></sbml>"
    )  # fmt: skip
    model = read_sbml(level2)
    assert dict(model.states) == {"A": "-r_k2*A", "B": "(k + 2)*r_k2*A"}
    assert model.time_unit == "s"
    agree(level2)
    level1 = (
        '<sbml xmlns="http://www.sbml.org/sbml/level1" level="1" version="2"><model name="m">'
        + listed("Compartments", '<compartment name="c" volume="2"/>')
        + listed("Species", '<species name="A" compartment="c" initialAmount="3"/>')
        + listed("Parameters", '<parameter name="k" value="0.5"/>')
        + '<listOfReactions><reaction name="r" reversible="false"><listOfReactants>'
        '<speciesReference species="A" stoichiometry="3" denominator="2"/></listOfReactants>'
        '<kineticLaw formula="c * k * pow(A, 2)"/></reaction></listOfReactions></model></sbml>'
    )
    model = read_sbml(level1)
    assert dict(model.states) == {"A": "-1.5*k*A^2"}
    assert dict(model.initial) == {"A": "3/c"}


def test_concentrations_are_diluted_in_a_growing_compartment() -> None:
    text = sbml(
        listed("Compartments", compartment("V", 2.0, constant=False))
        + listed("Species", species("A", 3.0, "V"), species("B", 1.0, "V", boundary=True))
        + listed("Parameters", parameter("k", 0.5), parameter("g", 0.1))
        + listed("Rules", rule("rate", "V", "g*V"))
        + listed("Reactions", reaction("r", "A", "", "V*k*A"))
    )
    found = simulated(text, [0.0, 1.0, 2.0])
    decay = [3.0 * 2.718281828459045 ** (-0.6 * t) for t in (0, 1, 2)]
    assert found["A"] == pytest.approx(decay, rel=1e-6)
    assert found["B"] == pytest.approx([2.718281828459045 ** (-0.1 * t) for t in (0, 1, 2)])


def test_amounts_are_states_where_a_rule_gives_the_size_of_the_compartment() -> None:
    text = sbml(
        listed("Compartments", compartment("V", None, constant=False))
        + listed("Species", species("A", 3.0, "V"))
        + listed("Parameters", parameter("k", 0.5))
        + listed("Rules", rule("assignment", "V", "2 + time"))
        + listed("Reactions", reaction("r", "A", "", "V*k*A"))
    )
    model = read_sbml(text)
    assert dict(model.amounts) == {"A": "A_amount"}
    assert model.assigned["A"] == "A_amount/(2 + t)"
    assert model.initial["A_amount"] == "3*(2 + 0)"
    found = simulated(text, [0.0, 1.0])
    assert found["A_amount"] == pytest.approx([6.0, 6.0 * 2.718281828459045**-0.5], rel=1e-6)


def test_an_event_that_changes_a_compartment_keeps_the_amounts_in_it() -> None:
    text = sbml(
        listed("Compartments", compartment("V", 2.0, constant=False))
        + listed("Species", species("A", 3.0, "V"), species("N", 3.0, "V", amount=True),
                 species("B", 1.0, "V", boundary=True))
        + listed("Parameters", parameter("k", 0.0))
        + listed("Reactions", reaction("r", "A", "N", "V*k*A"))
        + listed("Events", event("dilution", "time >= 1", {"V": "2*V"}))
    )  # fmt: skip
    [dilution] = read_sbml(text).events
    assert dilution.trigger == "t >= 1"
    assert set(dilution.assign) == {"V", "A", "B"}
    assert evaluated(dilution.assign["A"], {"A": 3.0, "V": 2.0}) == 1.5
    assert evaluated(dilution.assign["B"], {"B": 1.0, "V": 2.0}) == 0.5


def test_algebraic_rules_that_are_linear_in_their_variables_are_solved() -> None:
    text = sbml(
        listed("Compartments", compartment("c"))
        + listed("Species", species("S", 2.0), species("E", 0.5, boundary=True))
        + listed("Parameters", parameter("k"), parameter("total", 1.0), parameter("y", 1.0, False))
        + listed("Rules", rule("algebraic", "", "E*(1 + y) - total"),
                 rule("algebraic", "", "y - S"))
        + listed("Reactions", reaction("r", "S", "", "c*k*S*E"))
    )  # fmt: skip
    model = read_sbml(text)
    assert not model.algebraic
    assert model.assigned["y"] == "S"
    assert dict(model.states) == {"S": f"-k*S*({model.assigned['E']})"}
    found = simulated(text, [0.0, 0.5])
    # S' = -S/(1 + S), so that S + log(S) falls by 1 in a unit of time.
    last = found["S"][1]
    assert last + np.log(last) == pytest.approx(2.0 + np.log(2.0) - 0.5, rel=1e-6)


def test_other_algebraic_rules_of_index_1_become_algebraic_equations() -> None:
    text = sbml(
        listed("Parameters", parameter("x", 2.0, False), parameter("y", None, False))
        + listed("Rules", rule("rate", "x", "-(3*y^2 + 1)*y"), rule("algebraic", "", "y^3 + y - x"))
    )
    model = read_sbml(text)
    assert dict(model.algebraic) == {"y": "y^3 + y - x"}
    assert not model.without_value
    # y' = -y, from y = 1.
    assert simulated(text, [0.0, 1.0])["x"][1] == pytest.approx(np.exp(-3) + np.exp(-1), rel=1e-6)


@pytest.mark.parametrize(("value", "root"), [(None, 2.0), (1.5, 2.0), (-1.0, -2.0)])
def test_an_equation_is_solved_from_the_value_of_the_file(value: float | None, root: float) -> None:
    text = sbml(
        listed("Parameters", parameter("x", 4.0, False), parameter("y", value, False))
        + listed("Rules", rule("rate", "x", "y"), rule("algebraic", "", "y^2 - x"))
    )
    # x' = y and y^2 = x give y' = 1/2.
    after = (root + 0.5) ** 2
    assert simulated(text, [0.0, 1.0])["x"][1] == pytest.approx(after, rel=1e-6)


def test_a_parameter_that_an_algebraic_rule_determines_is_not_an_unknown() -> None:
    text = sbml(
        listed("Parameters", parameter("k", 0.5), parameter("x", 1.0, False),
               parameter("q", None, False))
        + listed("Rules", rule("rate", "x", "-q*x"), rule("algebraic", "", "q - k"))
    )  # fmt: skip
    sections = read_sbml(text).mapping(parameters=["k"])
    assert list(sections["parameters"]) == ["k"]
    times = [0.5, 1.0, 2.0, 4.0]
    sections["experiment"][0]["data"] = {"t": times, "x": np.exp(-0.7 * np.array(times))}
    problem = odefit.problem.problem_from_mapping(sections)
    assert odefit.fit(problem, seed=1).parameters.loc["k", "estimate"] == pytest.approx(0.7)


def test_algebraic_rules_of_a_higher_index_are_refused() -> None:
    text = sbml(
        listed("Parameters", parameter("x", 1.0, False), parameter("y", 1.0, False))
        + listed("Rules", rule("rate", "x", "y"), rule("rate", "y", "-x"),
                 rule("algebraic", "", "x^2 + y^2 - 1"))
    )  # fmt: skip
    with pytest.raises(odefit.InputError, match=r"algebraic rule '1' .*index 1"):
        read_sbml(text)


def test_rate_of_is_the_rate_of_change() -> None:
    formula = math("k").replace(
        "<ci> k </ci>",
        '<apply><csymbol encoding="text" '
        'definitionURL="http://www.sbml.org/sbml/symbols/rateOf"> rateOf </csymbol>'
        "<ci> A </ci></apply>",
    )
    text = sbml(
        listed("Compartments", compartment("c", 2.0))
        + listed("Species", species("A", 3.0))
        + listed("Parameters", parameter("k"), parameter("v", None, constant=False))
        + listed("Rules", f'<assignmentRule variable="v">{formula}</assignmentRule>')
        + listed("Reactions", reaction("r", "A", "", "c*k*A"))
    )
    model = read_sbml(text)
    assert model.assigned["v"] == "-(c*k*A)/c"
    assert set(model.assigned) == {"v", "r"}


def test_names_that_expressions_use_themselves_are_changed() -> None:
    text = sbml(
        listed("Compartments", compartment("c"))
        + listed("Species", species("t"), species("exp", 2.0), species("t_"), species("__x"))
        + listed("Reactions", reaction("r", "t exp t_ __x", "", "c*__x*t_*exp*t"))
    )
    text = text.replace("<exp/>", "<ci> exp </ci>")
    model = read_sbml(text)
    assert dict(model.names) == {"t": "t__2", "exp": "exp_", "__x": "x__x"}
    assert model.states["exp_"] == "-x__x*t_*exp_*t__2"
    assert "'exp' is named 'exp_'" in model.translated


def test_a_model_without_dynamics_gets_a_state_that_does_not_change() -> None:
    text = sbml(listed("Parameters", parameter("k"), parameter("y", None, constant=False))
                + listed("Rules", rule("assignment", "y", "k*time")))  # fmt: skip
    model = read_sbml(text)
    assert dict(model.states) == {"unchanging": "0"}
    assert dict(model.initial) == {"unchanging": "0"}
    assert model.assigned["y"] == "k*t"
    assert any("'unchanging'" in sentence for sentence in model.translated)


def test_a_name_without_value_is_a_parameter() -> None:
    text = sbml(
        listed("Parameters", parameter("k", None), parameter("x", None, constant=False),
               parameter("p", None))
        + listed("InitialAssignments", starting("p", "2*k"))
        + listed("Rules", rule("rate", "x", "-k*x*p"))
    )  # fmt: skip
    model = read_sbml(text)
    assert model.without_value == ("k", "x")
    assert odefit.Model.from_sbml(text).parameters == {"k"}
    sections = model.mapping()
    assert sections["ode"] == {"x": "-k*x*(2*k)"}
    assert sections["parameters"] == {"k": {}}
    assert sections["initial"] == {"x": {}}


def test_constants_that_events_change_stay_constants() -> None:
    text = sbml(
        listed("Compartments", compartment("c"))
        + listed("Species", species("A", 1.0), species("dose", 0.0, boundary=True))
        + listed("Parameters", parameter("k", 0.5, constant=False), parameter("p", None, False))
        + listed("InitialAssignments", starting("p", "2*k"))
        + listed("Reactions", reaction("r", "A dose", "", "c*k*A"))
        + listed("Events", event("on", "time >= 2", {"k": "p*A", "dose": "7", "p": "0"}))
    )  # fmt: skip
    model = read_sbml(text)
    assert dict(model.states) == {"A": "-k*A", "dose": "0"}
    assert model.constants["k"] == 0.5
    sections = model.mapping()
    assert sections["experiment"] == [
        {
            "t0": 0.0,
            "constants": {"p": "2*k"},
            "event": [
                {
                    "when": "t >= 2",
                    "assign": {"k": "p*A", "dose": "7", "p": "0"},
                    "measured": "after",
                }
            ],
        }
    ]


def test_long_sums_and_deep_sums_come_out_flat() -> None:
    names = [f"p{i}" for i in range(600)]
    deep = "<ci>p0</ci>"
    for name in names[1:]:
        deep = f"<apply><plus/>{deep}<ci>{name}</ci></apply>"
    text = sbml(
        listed("Parameters", *(parameter(n) for n in names), parameter("x", 0.0, False),
               parameter("y", 0.0, False))
        + listed("Rules", rule("rate", "y", " + ".join(names)),
                 f'<rateRule variable="x">{math("k").replace("<ci> k </ci>", deep)}</rateRule>')
    )  # fmt: skip
    model = read_sbml(text)
    assert model.states["x"] == model.states["y"] == " + ".join(names)
    assert odefit.Model.from_sbml(text).states == ("y", "x")


def test_a_parameter_that_an_algebraic_rule_determines_is_no_unknown() -> None:
    """The case sbml-algebraic-parameter: q - k = 0 without a value of q, and x' = -q*x."""
    text = """<sbml xmlns="http://www.sbml.org/sbml/level3/version2/core" level="3" version="2">
    <model id="a"><listOfParameters><parameter id="k" constant="true" value="0.5"/>
    <parameter id="x" constant="false" value="1"/><parameter id="q" constant="false"/>
    </listOfParameters><listOfRules><rateRule variable="x">
    <math xmlns="http://www.w3.org/1998/Math/MathML"><apply><times/><cn>-1</cn><ci>q</ci><ci>x</ci>
    </apply></math></rateRule><algebraicRule><math xmlns="http://www.w3.org/1998/Math/MathML">
    <apply><minus/><ci>q</ci><ci>k</ci></apply></math></algebraicRule></listOfRules></model></sbml>"""
    sections = odefit.read_sbml(text).mapping(parameters=["k"])
    sections["experiment"][0]["data"] = {"t": [0.5, 1.0, 4.0], "x": [0.78, 0.6, 0.14]}
    problem = odefit.problem.problem_from_mapping(sections)
    assert problem.keys == ("k",)
    found = odefit.simulate(problem, {"k": 0.7}, np.array([1.0, 4.0])).states["x"]
    assert found == pytest.approx(np.exp([-0.7, -2.8]), rel=1e-6)
