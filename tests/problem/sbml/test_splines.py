"""Splines by annotations of AMICI, against SciPy's cubic Hermite splines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

import odefit
from odefit import InputError, Model
from odefit.common.arrays import Array

NODES, VALUES = [0.0, 1.0, 3.0, 4.0], [1.0, 2.5, 0.5, 1.5]
MATH = '<math xmlns="http://www.w3.org/1998/Math/MathML">'


def numbers(values: list[float]) -> str:
    return "".join(f"{MATH}<cn>{v}</cn></math>" for v in values)


def names(values: list[str]) -> str:
    return "".join(f"{MATH}<ci>{v}</ci></math>" for v in values)


def sbml(attributes: str = "", derivatives: str = "", grid: str = "", formula: str = "0") -> str:
    grid = grid or f"<amici:spline_grid>{numbers(NODES)}</amici:spline_grid>"
    math = f"{MATH}<cn>{formula}</cn></math>" if formula else ""
    parameters = "".join(
        f'<parameter id="p{k}" value="{v}" constant="true"/>' for k, v in enumerate(VALUES)
    )
    time = (
        f'{MATH}<csymbol encoding="text" '
        'definitionURL="http://www.sbml.org/sbml/symbols/time">t</csymbol></math>'
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/level3/version2/core" level="3" version="2">
<model id="m"><listOfParameters>{parameters}
<parameter id="u" constant="false"/><parameter id="x" value="0" constant="false"/>
</listOfParameters><listOfRules>
<assignmentRule variable="u"><annotation>
<amici:spline xmlns:amici="https://github.com/AMICI-dev/AMICI"
 amici:spline_method="cubic_hermite" {attributes}>
<amici:spline_evaluation_point>{time}</amici:spline_evaluation_point>{grid}
<amici:spline_values>{names(["p0", "p1", "p2", "p3"])}</amici:spline_values>{derivatives}
</amici:spline></annotation>{math}</assignmentRule>
<rateRule variable="x">{MATH}<ci>u</ci></math></rateRule>
</listOfRules></model></sbml>"""


def slopes(bc: str = "no_bc") -> Array:
    x, y = np.array(NODES), np.array(VALUES)
    steps = np.diff(y) / np.diff(x)
    inner = (steps[1:] + steps[:-1]) / 2
    ends = {
        "no_bc": (steps[0], steps[-1]),
        "zeroderivative": (0.0, 0.0),
        # The second derivative at an end of a cubic is proportional to 3 step - 2 d0 - d1.
        "natural": ((3 * steps[0] - inner[0]) / 2, (3 * steps[-1] - inner[-1]) / 2),
    }[bc]
    return np.concatenate([[ends[0]], inner, [ends[1]]])


def integral(text: str, times: Array) -> Array:
    """Return the integral of the spline, which is the state x."""
    problem = odefit.Problem(
        Model.from_sbml(text, parameters=["p1"]),
        data={"t": times, "x": np.zeros(len(times))},
        parameters={"p1": {"guess": 2.5}},
        initial={"x": 0.0},
    )
    found = odefit.simulate(problem, [2.5], times)
    assert not isinstance(found, odefit.Failure)
    return np.asarray(found.states["x"])


@pytest.mark.parametrize("bc", ["no_bc", "zeroderivative", "natural"])
def test_a_spline_is_that_of_scipy(bc: str) -> None:
    """The formula of the rule is a placeholder, as the annotation is what counts."""
    times = np.linspace(0.0, 4.0, 33)
    attribute = f'amici:spline_bc="{bc}"' if bc != "no_bc" else ""
    expected = CubicHermiteSpline(NODES, VALUES, slopes(bc)).antiderivative()(times)
    np.testing.assert_allclose(integral(sbml(attribute), times), expected, rtol=1e-7, atol=1e-9)


def test_ends_and_derivatives_are_those_of_the_annotation() -> None:
    given = [1.0, -0.5, 0.25, 2.0]
    times = np.linspace(0.0, 6.0, 49)
    derivatives = f"<amici:spline_derivatives>{numbers(given)}</amici:spline_derivatives>"
    spline = CubicHermiteSpline(NODES, VALUES, given)
    inside = np.minimum(times, 4.0)
    for word, beyond in (
        ("constant", VALUES[-1] * (times - inside)),
        ("linear", VALUES[-1] * (times - inside) + given[-1] * (times - inside) ** 2 / 2),
        ("(no_extrapolation, constant)", VALUES[-1] * (times - inside)),
    ):
        text = sbml(f'amici:spline_extrapolate="{word}"', derivatives)
        expected = spline.antiderivative()(inside) + beyond
        np.testing.assert_allclose(integral(text, times), expected, rtol=1e-7, atol=1e-9)


def test_a_spline_of_logarithms_on_a_uniform_grid() -> None:
    grid = f"<amici:spline_uniform_grid>{numbers([0.0, 6.0, 2.0])}</amici:spline_uniform_grid>"
    text = sbml('amici:spline_logarithmic_parametrization="true"', grid=grid, formula="")
    x, y = np.array([0.0, 2.0, 4.0, 6.0]), np.array(VALUES)
    steps = np.diff(y) / 2
    slope = np.concatenate([[steps[0]], (steps[1:] + steps[:-1]) / 2, [steps[-1]]])
    spline = CubicHermiteSpline(x, np.log(y), slope / y)
    fine = np.linspace(0.0, 6.0, 60001)
    values = np.exp(spline(fine))
    expected = np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2 * 1e-4)])
    times = np.linspace(0.0, 6.0, 25)
    found = integral(text, times)
    np.testing.assert_allclose(found, np.interp(times, fine, expected), atol=1e-7)


def test_the_translation_is_reported_and_what_is_not_read_has_a_remedy() -> None:
    from odefit.problem.sbml.sbml_reading import read_sbml

    assert any("splines by annotations" in words for words in read_sbml(sbml()).translated)
    with pytest.raises(InputError, match="add_to_sbml_model"):
        read_sbml(sbml('amici:spline_bc="periodic"', formula=""))
    # With a formula beside it, a periodic spline is what the formula says.
    read = read_sbml(sbml('amici:spline_bc="periodic"', formula="2"))
    assert read.assigned["u"] == "2.0" or float(read.assigned["u"]) == 2.0
    with pytest.raises(InputError, match="4 values"):
        read_sbml(sbml(grid=f"<amici:spline_grid>{numbers([0.0, 1.0])}</amici:spline_grid>"))


def test_measurements_by_an_unknown_monotone_function_are_refused(tmp_path: Path) -> None:
    problem = odefit.Problem(
        Model(ode={"x": "-k*x"}),
        data={"t": [1.0, 2.0], "x": [0.6, 0.4]},
        parameters={"k": {"lower": 0.1, "upper": 2.0, "guess": 0.5}},
        initial={"x": 1.0},
        noise={"x": {"sd": 0.1}},
    )
    file = tmp_path / "p.yaml"
    odefit.save(problem, file)
    (table,) = (p for p in tmp_path.iterdir() if p.name.startswith("measurements"))
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    for kind, accepted in (("quantitative", True), ("nonlinear_monotone", False)):
        lines = [f"{head}\tmeasurementType", *(f"{row}\t{kind}" for row in rows)]
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if accepted:
            odefit.load(file)
        else:
            with pytest.raises(InputError, match=r'shape = "increasing"'):
                odefit.load(file)
