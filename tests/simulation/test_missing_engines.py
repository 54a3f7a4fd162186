"""An engine whose package cannot be imported is missing with a sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

import odefit

ALPHA_PINENE = str(odefit.library.path("alpha-pinene"))

STIFF_OR_NOT = """
from odefit import InputError, Model, Problem
def decay(rhs, **more):
    data = {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.4, 0.1]}
    return Problem(Model(ode={"x": rhs}, **more), data, {"k": {"guess": 1.0}}, {"x": 1.0})
"""


def without(*packages: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process in which these packages cannot be imported."""
    hidden = "".join(f"sys.modules[{name!r}] = None\n" for name in packages)
    program = f"import sys\n{hidden}import odefit\n{code}"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def fitted_without_heyoka() -> subprocess.CompletedProcess[str]:
    code = f"from odefit.cli import main\nsys.exit(main(['fit', {ALPHA_PINENE!r}, '--jobs', '1']))"
    return without("heyoka", code=code)


def test_without_heyoka_the_command_line_fits_with_the_other_engine(
    fitted_without_heyoka: subprocess.CompletedProcess[str],
) -> None:
    """The published estimates of alpha-pinene."""
    assert fitted_without_heyoka.returncode == 0, fitted_without_heyoka.stderr
    assert "Objective: 19.872" in fitted_without_heyoka.stdout
    assert "5.926e-05" in fitted_without_heyoka.stdout


def test_nothing_is_said_about_heyoka_which_is_an_extra(
    fitted_without_heyoka: subprocess.CompletedProcess[str],
) -> None:
    assert "heyoka" not in fitted_without_heyoka.stdout + fitted_without_heyoka.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("rational-hiv", (1, 2, 3)),
        ("rational-crauste", (1,)),
        ("rikitake", (1, 2)),
        ("henon-heiles", (1,)),
    ],
)
def test_sensitive_trajectories_are_fitted_without_heyoka(
    name: str, seeds: tuple[int, ...]
) -> None:
    """The values that the data, which have no noise, were made with."""
    code = (
        f"for seed in {seeds}:\n"
        f"    result = odefit.fit(odefit.library.load({name!r}), seed=seed, jobs=1)\n"
        f"    reference = odefit.library.reference({name!r})\n"
        "    found, right = result.parameters['estimate'], reference.parameters\n"
        "    worst = max(abs(found[key] / value - 1) for key, value in right.items())\n"
        "    print(result.status.value, worst)"
    )
    run = without("heyoka", code=code)
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) == len(seeds)
    for line in run.stdout.splitlines():
        status, worst = line.rsplit(maxsplit=1)
        assert status == "converged"
        assert float(worst) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rational-hiv", "rational-crauste"])
def test_the_coarse_search_of_the_stiff_engine_ends_at_the_right_values(name: str) -> None:
    """Which leave residuals of 1e-4 of the data, as large as its errors."""
    code = (
        "from odefit.simulation.engines import engines\n"
        "engines.explicit_engine = lambda: None\n"
        f"result = odefit.fit(odefit.library.load({name!r}), seed=1, jobs=1)\n"
        f"right = odefit.library.reference({name!r}).parameters\n"
        "found = result.parameters['estimate']\n"
        "print(max(abs(found[key] / value - 1) for key, value in right.items()))"
    )
    run = without("heyoka", code=code)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 1e-5


@pytest.mark.slow
def test_the_result_without_heyoka_equals_one_with_it() -> None:
    code = (
        "p = odefit.library.load('alpha-pinene')\n"
        "one = odefit.fit(p, odefit.SingleShooting())\n"
        "print(one.objective)\n"
        "print(*one.warnings, sep='\\n')"
    )
    run = without("heyoka", code=code)
    assert run.returncode == 0, run.stderr
    objective, *warnings = run.stdout.splitlines()
    problem = odefit.library.load("alpha-pinene")
    expected = odefit.fit(problem, odefit.SingleShooting()).objective
    assert float(objective) == pytest.approx(expected, rel=1e-6)
    assert not any("heyoka" in warning for warning in warnings)


def test_with_both_packages_there_is_no_remark() -> None:
    problem = odefit.library.load("alpha-pinene")
    assert odefit.ForwardMap(problem).warnings == ()


@pytest.mark.parametrize(
    ("engine", "package"),
    [
        ("heyoka", "heyoka"),
        pytest.param("casadi", "casadi", marks=pytest.mark.slow),
        pytest.param("bdf", "llvmlite", marks=pytest.mark.slow),
    ],
)
def test_a_requested_engine_that_is_missing_is_refused(engine: str, package: str) -> None:
    code = (
        "problem = odefit.library.load('alpha-pinene')\n"
        f"method = odefit.SingleShooting(engine={engine!r})\n"
        "try:\n    odefit.fit(problem, method)\n"
        "except odefit.InputError as error:\n    print(error)"
    )
    run = without(package, code=code)
    assert run.returncode == 0, run.stderr
    assert f"engine='{engine}' cannot be used" in run.stdout
    assert f"pip install {package}" in run.stdout


@pytest.mark.slow
def test_without_casadi_smooth_models_are_fitted_and_kinks_refused() -> None:
    code = STIFF_OR_NOT + (
        "result = odefit.fit(decay('-k*x'))\n"
        "print(result.status.value, len(result.failed_stages))\n"
        "try:\n    odefit.fit(decay('-k*abs(x)'))\n"
        "except InputError as error:\n    print(error)"
    )
    run = without("casadi", code=code)
    assert run.returncode == 0, run.stderr
    fitted, refused = run.stdout.splitlines()
    assert fitted == "converged 0"
    assert refused.startswith("this model needs an implicit integrator")
    assert "pip install casadi" in refused


@pytest.mark.slow
def test_without_casadi_a_stiff_problem_says_what_is_missing() -> None:
    code = STIFF_OR_NOT + (
        "import numpy as np\n"
        "forward = odefit.ForwardMap(decay('-1e9*k*(x - cos(t))'))\n"
        "print(forward.evaluate(np.array([1.0])))"
    )
    run = without("casadi", code=code)
    assert run.returncode == 0, run.stderr
    assert "pip install casadi" in run.stdout


@pytest.mark.slow
def test_without_any_engine_a_fit_is_refused() -> None:
    code = STIFF_OR_NOT + (
        "try:\n    odefit.fit(decay('-k*x'))\nexcept InputError as error:\n    print(error)"
    )
    run = without("casadi", "heyoka", code=code)
    assert run.returncode == 0, run.stderr
    assert "cannot be imported" in run.stdout


@pytest.mark.slow
def test_without_llvmlite_stiff_equations_are_fitted_by_cvodes_and_the_result_says_so() -> None:
    code = (
        "problem = odefit.library.load('alpha-pinene')\n"
        "result = odefit.fit(problem, odefit.SingleShooting())\n"
        "print(result.objective)\n"
        "print(*result.warnings, sep='\\n')"
    )
    run = without("llvmlite", code=code)
    assert run.returncode == 0, run.stderr
    objective, *warnings = run.stdout.splitlines()
    expected = odefit.fit(odefit.library.load("alpha-pinene"), odefit.SingleShooting()).objective
    assert float(objective) == pytest.approx(expected, rel=1e-6)
    assert sum("pip install llvmlite" in warning for warning in warnings) == 1


@pytest.mark.slow
def test_a_package_whose_import_failed_counts_as_missing() -> None:
    code = (
        "import importlib.util\n"
        "from odefit.simulation.engines.registry import import_problem\n"
        "class Broken:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'llvmlite':\n"
        "            return importlib.util.spec_from_loader(name, self)\n"
        "    def create_module(self, spec):\n"
        "        raise ImportError('llvmlite is too old')\n"
        "    def exec_module(self, module):\n"
        "        pass\n"
        "sys.meta_path.insert(0, Broken())\n"
        "forward = odefit.ForwardMap(odefit.library.load('alpha-pinene'))\n"
        "print(len(forward.warnings), import_problem('llvmlite'), *forward.warnings, sep='; ')"
    )
    run = without(code=code)
    assert run.returncode == 0, run.stderr
    before, problem, after = run.stdout.split("; ", 2)
    assert (before, problem) == ("0", "llvmlite is too old")
    assert "(llvmlite is too old)" in after
