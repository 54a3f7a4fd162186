"""Stand-alone programs simulate as odefit does, which they do not call."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import odefit
from odefit.common.errors import InputError
from odefit.reporting.programs.languages import TARGETS
from odefit.reporting.programs.writing import write_program

COMPILER = shutil.which("cc") or shutil.which("gcc")
TIMES = np.linspace(0.0, 8.0, 9)


def dosed() -> odefit.Problem:
    """Two experiments with inputs, doses with a lag that is estimated, a switch, and a balance."""
    model = odefit.Model(
        ode={
            "gut": "-ka*gut",
            "double": "ka*gut - elimination*double + feed*piecewise(1, t < 5, 0.5)",
            "end": "heat^2 - end*exp(-end) + bound/3",
        },
        algebraic={"bound": "2*bound + heat - double"},
        observables={
            "y": "s*double + 0*end",
            "z": "log10(1 + end) + max(bound, 0.1, end - 1) + feed + heat",
        },
        constants={"factor": 1.0, "floor": 0.2},
        inputs={"feed": "linear", "heat": "cubic"},
    )
    columns = {
        "t": TIMES,
        "y": 1.0 + 0.0 * TIMES,
        "z": 1.0 + 0.0 * TIMES,
        "feed": np.cos(TIMES) + 1.0,
        "heat": np.sin(TIMES),
    }
    dose = odefit.Event(times=("lag", 3.0), assign={"gut": "gut + 2*factor"})
    seen = odefit.Event(times=(0.0, 4.0), assign={"gut": "gut + 1", "factor": 2}, measured="after")
    return odefit.Problem(
        model,
        parameters={
            "ka": {"lower": 0.1, "upper": 3.0, "guess": 0.7},
            "elimination": {"lower": 0.1, "upper": 3.0, "guess": 0.3},
            "s": {"lower": 0.1, "upper": 3.0, "guess": 1.4, "per_experiment": True},
            "lag": {"lower": 0.1, "upper": 3.0, "guess": 0.8},
        },
        initial={"gut": 1.0, "double": {"lower": 0, "upper": 2, "guess": 0.25}, "end": "floor*ka"},
        experiments=[
            odefit.Experiment("first", columns, events=(dose,)),
            odefit.Experiment('it\'s "2"', columns, events=(seen,), constants={"floor": "3*ka"}),
        ],
        name='everything */ "at once"',
    )


def vector_of(problem: odefit.Problem) -> np.ndarray[Any, Any]:
    return np.array([u.parameter.guess for u in problem.unknowns], dtype=float)


def imported(path: Path) -> ModuleType:
    module = ModuleType(path.stem)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    return module


def differences(output: str) -> list[float]:
    """The differences from odefit that a program has printed, one for each experiment."""
    return [float(text) for text in re.findall(r"differs from odefit by at most (\S+)", output)]


def compared(path: Path, *command: str) -> list[float]:
    """What a program prints when it is run by `command` in its folder."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=path.parent, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return differences(done.stdout)


@pytest.mark.slow
def test_a_python_program_gives_odefits_values_and_follows_its_parameters(tmp_path: Path) -> None:
    problem = dosed()
    path = write_program(problem, vector_of(problem), tmp_path / "model.py")
    program = imported(path)
    assert program.STATES == ("gut", "double", "end")
    assert program.EXPERIMENTS == ("first", 'it\'s "2"')
    assert tuple(program.PARAMETERS) == problem.keys
    other = {key: 1.1 * value for key, value in program.PARAMETERS.items()}
    for values in (program.PARAMETERS, other):
        for experiment in program.EXPERIMENTS:
            times = np.unique(np.append(TIMES, [0.77, 0.801, 0.881, 5.001]))
            table = program.simulate(times, experiment, values)
            expected = odefit.simulate(problem, values, times, experiment)
            for name, course in {**expected.states, **expected.observables}.items():
                if name != "bound":
                    assert table[name] == pytest.approx(course, rel=1e-8, abs=1e-9), name


@pytest.mark.slow
def test_a_python_program_says_how_it_differs_and_needs_no_odefit(tmp_path: Path) -> None:
    problem = odefit.library.load("seasonal-lotka-volterra")
    vector = np.array([u.parameter.guess or 0.5 for u in problem.unknowns])
    path = write_program(problem, vector, tmp_path / "model.py")
    assert "odefit" not in re.findall(r"^(?:import|from) (\w+)", path.read_text(), re.MULTILINE)
    found = compared(path, sys.executable, path.name)
    assert len(found) == len(problem.conditions)
    assert max(found) < 1e-8


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_a_c_program_gives_odefits_values(tmp_path: Path) -> None:
    problem = dosed()
    path = write_program(problem, vector_of(problem), tmp_path / "model.c")
    strict = ("-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror")
    assert COMPILER is not None
    subprocess.run(
        [COMPILER, *strict, path.name, "-lm", "-o", "model"], cwd=tmp_path, check=True, timeout=120
    )
    found = compared(path, str(tmp_path / "model"))
    assert len(found) == 2
    assert max(found) < 1e-8
    table = subprocess.run(
        [str(tmp_path / "model"), "1", "0", "8", "5"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert table[0] == "t,gut,double,end,y,z"
    values = dict(zip(problem.keys, vector_of(problem), strict=True))
    expected = odefit.simulate(problem, values, [0, 2, 4, 6, 8], problem.conditions[1].name)
    last = [float(text) for text in table[-1].split(",")]
    assert last[1:4] == pytest.approx([c[-1] for c in list(expected.states.values())[:3]], rel=1e-8)


@pytest.mark.skipif(shutil.which("octave") is None, reason="Octave is not installed")
def test_a_matlab_program_gives_odefits_values_in_octave(tmp_path: Path) -> None:
    problem = dosed()
    path = write_program(problem, vector_of(problem), tmp_path / "model.m")
    found = compared(path, "octave", "--quiet", "--no-gui", "--eval", "model")
    assert len(found) == 2
    assert max(found) < 1e-8


@pytest.mark.skipif(shutil.which("julia") is None, reason="Julia is not installed")
def test_a_julia_program_gives_odefits_values(tmp_path: Path) -> None:
    problem = dosed()
    path = write_program(problem, vector_of(problem), tmp_path / "model.jl")
    found = compared(path, "julia", path.name)
    assert len(found) == 2
    assert max(found) < 1e-8


def test_a_steady_start_has_its_numbers(tmp_path: Path) -> None:
    problem = odefit.Problem(
        odefit.Model(ode={"x": "k - d*x"}, constants={"d": 0.5}),
        parameters={"k": {"lower": 0, "guess": 2.0}},
        initial={"x": 0.0},
        experiments=[
            odefit.Experiment(
                "off",
                {"t": [0.0, 1.0, 2.0], "x": [4.0, 3.0, 2.0]},
                steady_state=True,
                events=(odefit.Event((0.0,), {"d": 1.0}, measured="after"),),
            )
        ],
    )
    path = write_program(problem, np.array([2.0]), tmp_path / "model.py")
    assert "does not follow" in path.read_text()
    found = imported(path).simulate([0.0, 1.0, 2.0])["x"]
    assert found == pytest.approx(2.0 + 2.0 * np.exp([-0.0, -1.0, -2.0]), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.f90", "expected NAME.py, NAME.c, NAME.jl, NAME.m"),
        ("my-model.m", "write .*my_model.m"),
        ("2.c", "write .*model.c"),
    ],
)
def test_a_name_that_a_language_cannot_use_is_refused(
    tmp_path: Path, name: str, message: str
) -> None:
    problem = dosed()
    with pytest.raises(InputError, match=message):
        write_program(problem, vector_of(problem), tmp_path / name)


def test_events_that_need_location_are_refused(tmp_path: Path) -> None:
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}),
        parameters={"k": {"guess": 1.0}},
        initial={"x": 1.0},
        experiments=[
            odefit.Experiment(
                "e",
                {"t": [0.0, 1.0], "x": [1.0, 0.5]},
                events=(odefit.Event((), {"x": 1.0}, when="x < 0.5"),),
            )
        ],
    )
    with pytest.raises(InputError, match=r"experiment 'e': 1 event with a condition"):
        write_program(problem, np.array([1.0]), tmp_path / "model.py")


def test_equations_without_a_closed_solution_are_refused(tmp_path: Path) -> None:
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*z"}, algebraic={"z": "z^3 + z - x"}),
        data={"t": [0.0, 1.0], "x": [1.0, 0.5]},
        parameters={"k": {"guess": 1.0}},
        initial={"x": 1.0, "z": 0.7},
    )
    with pytest.raises(InputError, match="'z' have no closed solution"):
        write_program(problem, np.array([1.0]), tmp_path / "model.py")


@pytest.mark.parametrize("suffix", TARGETS)
def test_every_language_has_all_of_the_model(tmp_path: Path, suffix: str) -> None:
    problem = dosed()
    text = write_program(problem, vector_of(problem), tmp_path / f"model{suffix}").read_text()
    assert not re.search(r"@[A-Z_]+@", text)
    assert all(word in text for word in ("gut", "elimination", "2.0", "exp("))
    assert text.isascii()


def test_a_result_is_saved_as_a_program(tmp_path: Path) -> None:
    problem = odefit.library.load("harmonic")
    result = odefit.fit(
        problem, odefit.methods.SingleShooting(), start=dict.fromkeys(problem.keys, 1.0)
    )
    result.save(tmp_path / "model.py")
    found = imported(tmp_path / "model.py")
    assert {k: p.value for k, p in result.params.items()} == found.PARAMETERS
