"""Direct transcription: discretise all equations, and give a nonlinear program to a solver.

In the order of the paper (M. Fernandez de Dios et al., Parameter estimation in ODEs: assessing the
potential of local and global solvers). It has schemes and meshes (section 2.1), formulations (2.2),
solvers (3.2), and the method that puts them together.
"""

from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline, ExtraTol, SoftCons
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import DataMesh, GivenMesh, UniformMesh
from odefit.discretisation.refinement import AdaptiveMesh
from odefit.discretisation.schemes import (
    SCHEMES,
    AdamsMoulton,
    Collocation,
    Euler,
    RungeKutta,
    Simpson,
    Trapezoid,
)
from odefit.methods.solvers.nlpsol import Bonmin, Ipopt, Uno
from odefit.methods.solvers.solver import Answer, Limits, Outcome
from odefit.methods.transcription.transcription import Transcription

__all__ = [
    "SCHEMES",
    "AdamsMoulton",
    "AdaptiveMesh",
    "Answer",
    "Baseline",
    "Bonmin",
    "Collocation",
    "DataMesh",
    "Discretisation",
    "Euler",
    "ExtraTol",
    "GivenMesh",
    "Instance",
    "Ipopt",
    "Limits",
    "Outcome",
    "RungeKutta",
    "Simpson",
    "SoftCons",
    "Transcription",
    "Trapezoid",
    "UniformMesh",
    "Uno",
]
