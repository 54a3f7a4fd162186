"""Reactions are the differential equations that one writes by hand for them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odefit
from odefit.expressions.algebras import NUMPY
from odefit.problem import InputError, Model, Problem, problem_from_mapping, problem_to_mapping


def texts(table: Any) -> dict[str, str]:
    return {name: expression.text for name, expression in table.items()}


def conserved(model: Model) -> list[str]:
    return [e.text for e in model.notation.conserved]


def test_mass_action_is_written_as_by_hand() -> None:
    model = Model(
        reactions={
            "r1": "A + B -> C, k1",
            "r2": "2 A <-> D, kf, kr",
            "r3": "-> A, k0",
            "r4": "D -> 0, 2*k0",
            "r5": "C -> 3 B, k3",
        }
    )
    assert texts(model.ode) == {
        "A": "-k1*A*B - 2*kf*A^2 + 2*kr*D + k0",
        "B": "-k1*A*B + 3*k3*C",
        "C": "k1*A*B - k3*C",
        "D": "kf*A^2 - kr*D - 2*k0*D",
    }
    assert model.parameters == {"k1", "kf", "kr", "k0", "k3"}


def test_reactions_add_to_equations() -> None:
    model = Model(ode={"A": "feed - d*A", "x": "1"}, reactions={"r": "A -> B, k"})
    assert texts(model.ode) == {"A": "feed - d*A - k*A", "x": "1", "B": "k*A"}


def test_reactions_leave_constants_and_inputs_unchanged() -> None:
    model = Model(
        reactions={"r": "S + E + u -> P + E, k"},
        constants={"S": 2.0},
        inputs={"u": "linear"},
    )
    assert texts(model.ode) == {"E": "0.0", "P": "k*S*E*u"}


@pytest.mark.parametrize(
    ("law", "rate"),
    [
        ("michaelis_menten(v, km)", lambda S, v, km, **_: v * S / (km + S)),
        ("hill(v, km, n)", lambda S, v, km, n, **_: v * S**n / (km**n + S**n)),
        (
            "competitive_inhibition(v, km, Q, ki)",
            lambda S, v, km, Q, ki, **_: v * S / (km * (1 + Q / ki) + S),
        ),
        (
            "noncompetitive_inhibition(v, km, Q, ki)",
            lambda S, v, km, Q, ki, **_: v * S / ((km + S) * (1 + Q / ki)),
        ),
        (
            "uncompetitive_inhibition(v, km, Q, ki)",
            lambda S, v, km, Q, ki, **_: v * S / (km + S * (1 + Q / ki)),
        ),
        ("substrate_inhibition(v, km, ki)", lambda S, v, km, ki, **_: v * S / (km + S + S**2 / ki)),
        ("constant(v*n)", lambda v, n, **_: v * n),
        ("mass_action(v + km)", lambda S, v, km, **_: (v + km) * S),
    ],
)
def test_named_laws_have_the_rates_of_the_textbook(law: str, rate: Any) -> None:
    values = {"S": 1.3, "P": 0.4, "v": 2.0, "km": 0.7, "n": 3.0, "Q": 0.9, "ki": 1.7}
    model = Model(reactions={"r": f"S -> 2 P, {law}"})
    found = model.rhs({k: np.float64(v) for k, v in values.items()}, NUMPY)
    np.testing.assert_allclose(found, [-rate(**values), 2 * rate(**values)], rtol=1e-14)


def test_reversible_michaelis_menten_vanishes_at_equilibrium() -> None:
    model = Model(reactions={"r": "S <-> P, reversible_michaelis_menten(vf, ks, vr, kp)"})
    values = {"vf": 2.0, "ks": 0.5, "vr": 1.0, "kp": 0.8, "S": 0.3}
    values["P"] = 0.3 * (2.0 / 0.5) / (1.0 / 0.8)  # Haldane's relation
    found = model.rhs({k: np.float64(v) for k, v in values.items()}, NUMPY)
    np.testing.assert_allclose(found, 0.0, atol=1e-15)


NUMBERS = st.sampled_from(["", "2 ", "3 ", "1/2 ", "0.25 "])
SPECIES = ("A", "B", "C", "D", "E")


@st.composite
def networks(draw: st.DrawFn) -> list[tuple[dict[str, Fraction], dict[str, Fraction], bool]]:
    sides = st.dictionaries(
        st.sampled_from(SPECIES), st.integers(1, 3).map(Fraction), min_size=0, max_size=3
    )
    reactions: list[tuple[dict[str, Fraction], dict[str, Fraction], bool]] = draw(
        st.lists(st.tuples(sides, sides, st.booleans()), min_size=1, max_size=5).filter(
            lambda rs: all(left or right for left, right, _ in rs)
        )
    )
    return reactions


def side_text(side: dict[str, Fraction]) -> str:
    return " + ".join(f"{n} {s}" if n != 1 else s for s, n in side.items())


@pytest.mark.slow
@given(networks(), st.lists(st.floats(0.1, 2.0), min_size=15, max_size=15))
@settings(max_examples=100, deadline=None)
def test_random_networks_follow_the_law_of_mass_action(
    network: list[tuple[dict[str, Fraction], dict[str, Fraction], bool]], numbers: list[float]
) -> None:
    reactions: dict[str, str] = {}
    constants: dict[str, float] = {}
    for i, (left, right, both) in enumerate(network):
        arrow, law = ("<->", f"f{i}, b{i}") if both else ("->", f"f{i}")
        reactions[f"r{i}"] = f"{side_text(left)} {arrow} {side_text(right)}, {law}"
        constants |= {f"f{i}": numbers[5 + 2 * i], f"b{i}": numbers[6 + 2 * i]}
    model = Model(reactions=reactions)
    amounts = dict(zip(SPECIES, numbers[:5], strict=True))
    expected = dict.fromkeys(model.ode, 0.0)
    columns = []
    for i, (left, right, both) in enumerate(network):
        rate = constants[f"f{i}"] * np.prod([amounts[s] ** float(n) for s, n in left.items()])
        if both:
            rate -= constants[f"b{i}"] * np.prod([amounts[s] ** float(n) for s, n in right.items()])
        column = {s: float(right.get(s, 0) - left.get(s, 0)) for s in model.ode}
        columns.append(list(column.values()))
        for s in model.ode:
            expected[s] += rate * column[s]
    values = {k: np.float64(v) for k, v in {**amounts, **constants}.items()}
    found = model.rhs(values, NUMPY)
    np.testing.assert_allclose(found, list(expected.values()), rtol=1e-12, atol=1e-12)
    # As many conserved sums as the stoichiometric matrix has dimensions in its left null space.
    sums = model.notation.conserved
    assert len(sums) == len(model.ode) - np.linalg.matrix_rank(np.array(columns))
    weights = [
        [
            float(total.evaluate({s: np.float64(s == one) for s in model.ode}, NUMPY))
            for one in model.ode
        ]
        for total in sums
    ]
    if weights:
        assert np.linalg.matrix_rank(np.array(weights)) == len(weights)
        assert not (np.array(weights) @ np.array(columns).T).any()


def test_conserved_sums_are_the_moieties() -> None:
    model = Model(reactions={"bind": "E + S <-> ES, kon, koff", "cat": "ES -> E + P, kcat"})
    assert conserved(model) == ["E + ES", "S + ES + P"]
    model = Model(
        ode={"S": "feed"}, reactions={"bind": "E + S <-> ES, kon, koff", "cat": "ES -> E + P, kcat"}
    )
    assert conserved(model) == ["E + ES"]
    assert conserved(Model(reactions={"r": "2 A -> 3 B, k"})) == ["3*A + 2*B"]
    assert conserved(Model(reactions={"r": "A -> 2 A, k"})) == []
    # Where no weights without a negative one are conserved, the first of them is positive.
    assert conserved(Model(reactions={"r": "2 A + B -> 0, k"})) == ["A - 2*B"]


def test_amounts_are_conserved_between_compartments() -> None:
    model = Model(
        reactions={"in": "A -> B, k", "back": "B -> A, q", "use": "B -> C, v"},
        compartments={
            "blood": {"size": "V1", "species": ["A"]},
            "cell": {"size": 0.5, "species": ["B", "C"]},
        },
        observables={"amount": "blood*A"},
    )
    assert texts(model.ode) == {
        "A": "-k*A + q*B*(0.5/V1)",
        "B": "k*A*(V1/0.5) - q*B - v*B",
        "C": "v*B",
    }
    assert conserved(model) == ["V1*A + 0.5*B + 0.5*C"]
    assert model.observables["amount"].text == "V1*A"


def test_arrays_of_reactions() -> None:
    model = Model(
        reactions={"r[1:3]": "x[i] -> x[i+1], k[i]", "out": "x[4] ->, d"},
        observables={"total": "sum(x)"},
    )
    assert texts(model.ode) == {
        "x_1": "-k_1*x_1",
        "x_2": "k_1*x_1 - k_2*x_2",
        "x_3": "k_2*x_2 - k_3*x_3",
        "x_4": "k_3*x_3 - d*x_4",
    }
    assert model.observables["total"].text == "(x_1 + x_2 + x_3 + x_4)"


def residuals(problem: Problem, vector: Any) -> Any:
    found = odefit.ForwardMap(problem).evaluate(vector)
    assert not isinstance(found, odefit.Failure)
    return found.residuals


def test_alpha_pinene_as_reactions_is_alpha_pinene() -> None:
    pytest.importorskip("heyoka")
    published = odefit.library.load("alpha-pinene")
    mapping = problem_to_mapping(published)
    del mapping["ode"]
    mapping["reactions"] = {
        "to_dipentene": "x1 -> x2, p1",
        "to_allo_ocimene": "x1 -> x3, p2",
        "to_pyronenes": "x3 -> x4, p3",
        "dimer": "x3 <-> x5, p4, p5",
    }
    problem = problem_from_mapping(mapping)
    assert problem.keys == published.keys
    assert conserved(problem.given) == ["x1 + x2 + x3 + x4 + x5"]
    vector = published.vector({"p1": 6e-5, "p2": 3e-5, "p3": 2e-5, "p4": 3e-4, "p5": 4e-5})
    np.testing.assert_allclose(
        residuals(problem, vector), residuals(published, vector), rtol=1e-12, atol=1e-12
    )


SBML = """<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/level3/version2/core" level="3" version="2">
<model id="enzyme">
<listOfCompartments><compartment id="c" size="1" constant="true"/></listOfCompartments>
<listOfSpecies>{species}</listOfSpecies>
<listOfParameters>{parameters}</listOfParameters>
<listOfReactions>{reactions}</listOfReactions>
</model></sbml>"""


def sbml_reaction(name: str, sides: tuple[dict[str, int], dict[str, int]], law: str) -> str:
    def side(kind: str, species: dict[str, int]) -> str:
        inside = "".join(
            f'<speciesReference species="{s}" stoichiometry="{n}" constant="true"/>'
            for s, n in species.items()
        )
        return f"<listOf{kind}>{inside}</listOf{kind}>" if inside else ""

    return (
        f'<reaction id="{name}" reversible="false">{side("Reactants", sides[0])}'
        f"{side('Products', sides[1])}<kineticLaw>"
        f'<math xmlns="http://www.w3.org/1998/Math/MathML">{law}</math></kineticLaw></reaction>'
    )


def product(*factors: str) -> str:
    return f"<apply><times/>{''.join(f'<ci>{f}</ci>' for f in factors)}</apply>"


@pytest.mark.slow
def test_an_enzyme_as_reactions_agrees_with_sbml_and_equations() -> None:
    pytest.importorskip("libsbml", reason="SBML models need python-libsbml, an extra")
    start = {"E": 1.0, "S": 5.0, "ES": 0.0, "P": 0.0, "D": 0.0}
    values = {"kon": 1.2, "koff": 0.3, "kcat": 0.8, "kd": 0.05}
    species = "".join(
        f'<species id="{s}" compartment="c" initialConcentration="{v}" constant="false" '
        'hasOnlySubstanceUnits="false" boundaryCondition="false"/>'
        for s, v in start.items()
    )
    parameters = "".join(f'<parameter id="{k}" value="1" constant="true"/>' for k in values)
    text = SBML.format(
        species=species,
        parameters=parameters,
        reactions="".join(
            [
                sbml_reaction("r1", ({"E": 1, "S": 1}, {"ES": 1}), product("kon", "E", "S")),
                sbml_reaction("r2", ({"ES": 1}, {"E": 1, "S": 1}), product("koff", "ES")),
                sbml_reaction("r3", ({"ES": 1}, {"E": 1, "P": 1}), product("kcat", "ES")),
                sbml_reaction("r4", ({"P": 2}, {"D": 1}), product("kd", "P", "P")),
            ]
        ),
    )
    models = [
        Model(
            reactions={
                "binding": "E + S <-> ES, kon, koff",
                "catalysis": "ES -> E + P, kcat",
                "dimer": "2 P -> D, kd",
            }
        ),
        Model(
            ode={
                "E": "-kon*E*S + (koff + kcat)*ES",
                "S": "-kon*E*S + koff*ES",
                "ES": "kon*E*S - (koff + kcat)*ES",
                "P": "kcat*ES - 2*kd*P^2",
                "D": "kd*P^2",
            }
        ),
        Model.from_sbml(text, parameters=list(values)),
    ]
    times = np.linspace(0.0, 10.0, 11)
    data = {"t": times, **{s: np.cos(times + k) for k, s in enumerate(start)}}
    found = []
    for model in models:
        problem = Problem(model, data, {k: {"guess": v} for k, v in values.items()}, {**start})
        by_name = dict(zip(model.observables, range(5), strict=True))
        shaped = residuals(problem, problem.vector(values)).reshape(5, -1)
        found.append(np.array([shaped[by_name[s]] for s in start]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[0], found[2], rtol=1e-12, atol=1e-12)
    assert conserved(models[0]) == ["E + ES", "S + ES + P + 2*D"]


@pytest.mark.parametrize(
    ("reaction", "message"),
    [
        (
            "A + B, k",
            (
                'there is no arrow in \'A + B, k\'; write, for example, "A + B -> C, k1", or "A '
                "<-> B, "
                'kf, kr"'
            ),
        ),
        (
            "A <- B, k",
            (
                "the arrow is -> or <-> in 'A <- B, k'; write, for example, \"A + B -> C, k1\", or "
                '"A <-> B, kf, kr"'
            ),
        ),
        (
            "A -> B -> C, k",
            "'A -> B -> C, k' has more than one arrow; write a reaction for each step",
        ),
        (
            "A -> B",
            '\'A -> B\' has no rate; write, for example, "A + B -> C, k1", or "A <-> B, kf, kr"',
        ),
        (
            "A <-> B, k",
            (
                "mass action with <-> has two constants, got 1 (k); write, for example, "
                '"A + B -> C, k1", or "A <-> B, kf, kr"'
            ),
        ),
        (
            "A -> B, k*A",
            (
                "the constant 'k*A' of mass action contains the reactant 'A', by which it is "
                "multiplied; give the constant alone, or the whole rate as "
                '{ equation = "...", rate = "..." }'
            ),
        ),
        ("-> , k", "'-> , k' has no species"),
        (
            "A B -> C, k",
            "'A B' in 'A B -> C, k' is not a species with a number before it, as in 2 A",
        ),
        (
            "0 A -> C, k",
            "the stoichiometric number '0' in '0 A -> C, k' is not between 0 and 1000",
        ),
        (
            "1/2 A -> C, k",
            (
                "1/2 A has no rate by mass action; give the whole rate as "
                '{ equation = "...", rate = "..." }'
            ),
        ),
        ("t -> C, k", "'t' in 't -> C, k' cannot be a species; choose another"),
        (
            "A + B -> C, michaelis_menten(v, k)",
            (
                "michaelis_menten is a law of reactions that use up one species, this one uses up: "
                'A, B; give the whole rate as { equation = "...", rate = "..." }'
            ),
        ),
        (
            "A <-> C, michaelis_menten(v, k)",
            "michaelis_menten is a law of reactions with ->",
        ),
        (
            "A -> C, michaelis_menten(v)",
            "michaelis_menten(vmax, km) takes 2 values, got 1",
        ),
        (
            {"equation": "A -> B, k", "rate": "k*A"},
            "'A -> B, k' has a rate after the comma, and another one in rate",
        ),
        ({"equation": "A -> B"}, 'the rate is missing; write rate = "..."'),
        (
            3,
            (
                'expected a text in quotes, got 3; write, for example, "A + B -> C, k1", or '
                '"A <-> B, kf, kr"'
            ),
        ),
        (
            "A -> B, k*",
            "unexpected ')' at position 4 of '(k*)*A'; expected a number, a name or '('",
        ),
    ],
)
def test_a_mistake_in_a_reaction_is_named_with_its_remedy(reaction: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Model(reactions={"r": reaction})
    assert caught.value.messages == (f"[reactions] r: {message}",)


@pytest.mark.slow
@given(
    st.dictionaries(
        st.text("rxA[]1:3i", max_size=6),
        st.text("ABxk 123+-><=,/*[]i:()", max_size=24)
        | st.fixed_dictionaries(
            {"equation": st.text("AB ->+,", max_size=9), "rate": st.text("kA*()[]", max_size=6)}
        ),
        max_size=3,
    )
)
@settings(max_examples=300, deadline=None)
def test_any_texts_make_reactions_or_an_input_error(reactions: Any) -> None:
    try:
        model = Model(reactions=reactions)
    except InputError:
        return
    assert model.ode


def test_a_species_that_is_also_a_parameter_is_named() -> None:
    with pytest.raises(InputError) as caught:
        Problem(
            Model(reactions={"r": "S -> P, k"}),
            {"t": [0, 1], "P": [0, 1]},
            {"k": {}, "S": {}},
            {"S": 1.0, "P": 0.0},
        )
    assert caught.value.messages == (
        "[parameters] S: the name is already used in [reactions]; choose another",
    )


def test_sums_of_hundreds_of_species_are_found_soon() -> None:
    model = Model(reactions={"r[1:300]": "A[i] + B <-> A[i+1], k[i], q"})
    one = {s: np.float64(1.0) for s in model.ode}
    change = {"B": -1.0, "A_7": -1.0, "A_8": 1.0}
    moved = {s: v + change.get(s, 0.0) for s, v in one.items()}
    sums = model.notation.conserved
    assert len(sums) == 2
    for total in sums:
        assert total.evaluate(moved, NUMPY) == pytest.approx(total.evaluate(one, NUMPY))
