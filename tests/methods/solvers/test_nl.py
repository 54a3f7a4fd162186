"""Problems written as ``.nl`` files, and ``.sol`` files read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from odefit import library
from odefit.discretisation.assembly import assemble
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import SCHEMES
from odefit.methods.solvers.ampl import PyomoAlgebra, read_sol, write_nl
from tests.methods.transcription.instances import needs

pyomo = needs("pyomo")

SOL = """
Couenne: Optimal

Options
3
1
1
0
2
2
3
3
-1.5
0.25
1
2.5e-3
-7
"""


@pyomo
def test_a_likelihood_is_written_with_its_logarithms(tmp_path: Path) -> None:
    import casadi as ca

    problem = library.load("sir")
    d = Discretisation(problem, SCHEMES["trapezoid"], UniformMesh(6))
    random = np.random.default_rng(2)
    instance = Instance(
        d,
        Baseline(),
        np.clip(random.uniform(0.5, 1.5, d.lower.shape), d.lower, d.upper),
        np.clip(random.uniform(0.2, 0.9, len(problem.unknowns)), problem.lower, problem.upper),
    )
    a = assemble(d, Baseline())
    start = a.start(instance)
    columns = write_nl(a, start, tmp_path / "p.nl", PyomoAlgebra("any", smooth=False))
    builder = ca.NlpBuilder()
    builder.import_nl(str(tmp_path / "p.nl"))
    f = ca.Function("f", [ca.vertcat(*builder.x)], [builder.f])
    assert float(f(start[columns])) == pytest.approx(d.objective(*a.unpack(start)), rel=1e-9)


def test_a_sol_file_is_read() -> None:
    message, x, code = read_sol(SOL)
    assert (message, x.tolist(), code) == ("Couenne: Optimal", [1.0, 2.5e-3, -7.0], None)
    assert read_sol(SOL + "objno 0 401\n")[2] == 401
    # five options: the last is a tolerance's mark, and the tolerance follows the counts
    longer = SOL.replace("3\n1\n1\n0\n2\n", "5\n1\n3\n0\n2\n").replace("3\n-1.5", "3\n0.5\n-1.5")
    assert read_sol(longer)[1].tolist() == [1.0, 2.5e-3, -7.0]


@pytest.mark.parametrize("size", [4, 10, 11, 12, 13, 30])
def test_the_code_of_a_result_is_found_before_what_follows_it(size: int) -> None:
    values = "".join(f"{k}.5\n" for k in range(size))
    counts = f"Options\n3\n1\n1\n0\n{size}\n0\n{size}\n{size}\n"
    text = f"Couenne\n\n{counts}{values}objno 0 200\nsuffix 0 1 4 0 0\nsstatus\n0 1\n"
    assert read_sol(text)[2] == 200


@pytest.mark.parametrize("text", ["", "Options\n3\n1", SOL[:-4]])
def test_a_truncated_sol_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a \.sol file"):
        read_sol(text)
