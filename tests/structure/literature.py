"""Models whose structural identifiability is published.

A name stands for a parameter or, for a state, its initial value; all of them are unknown. The
labels are those of the sources unless they say that they are computed. Every label, ``count``
and ``values`` was checked by Groebner bases modulo a prime, independently of any homotopy; for the
Goodwin oscillator, marked ``large``, only the rank, which tells non_identifiable from the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SIAN = "Hong, Ovchinnikov, Pogudin, Yap (2019), Bioinformatics 35, 2873, SIAN"
SIAN_TESTS = "SIAN-Julia, test/test_id_with_weights.jl"
SI_RESULTS = "StructuralIdentifiability.jl, benchmarking/IdentifiableFunctions/results"
SI_TESTS = "StructuralIdentifiability.jl, test/identifiable_functions.jl"


@dataclass(frozen=True)
class Published:
    """A model and what is known of its unknowns."""

    name: str
    ode: Mapping[str, str]
    observables: Mapping[str, str]
    source: str
    globally: tuple[str, ...] = ()
    locally: tuple[str, ...] = ()  # and not globally
    non_identifiable: tuple[str, ...] = ()
    count: int | None = None  # solutions of the whole; None where they are infinitely many
    values: Mapping[str, int] = field(default_factory=dict)  # of those identifiable locally
    inputs: tuple[str, ...] = ()  # known and generic
    large: bool = False  # hard for general-purpose algebra

    @property
    def unknowns(self) -> tuple[str, ...]:
        return (*self.globally, *self.locally, *self.non_identifiable)


GOODWIN = Published(
    name="goodwin",
    ode={
        "x1": "-b*x1 + 1/(c + x4)",
        "x2": "alpha*x1 - beta*x2",
        "x3": "gama*x2 - delta*x3",
        "x4": "sigma*x4*(gama*x2 - delta*x3)/x3",
    },
    observables={"y": "x1"},
    globally=("b", "c", "sigma", "x1", "x4"),
    locally=("beta", "delta"),
    non_identifiable=("alpha", "gama", "x2", "x3"),
    values={"beta": 2, "delta": 2},  # they can be exchanged
    source=(
        f"{SIAN}, examples/Goodwin (on the model: Gonze and Ruoff 2020); {SI_TESTS}: "
        "identifiable are exactly the functions of sigma, c, b, beta + delta, beta*delta, with "
        f"states of {SI_RESULTS}/Goodwin oscillator: also x1, x4, alpha*gama/x3 and "
        "(gama*x2 + beta*x3)/x3"
    ),
    large=True,
)

SIRS_FORCED = Published(
    name="sirs forced",
    ode={
        "s": "mu - mu*s - b0*(1 + b1*x1)*i*s + g*r",
        "i": "b0*(1 + b1*x1)*i*s - (nu + mu)*i",
        "r": "nu*i - (mu + g)*r",
        "x1": "-M*x2",
        "x2": "M*x1",
    },
    observables={"y1": "i", "y2": "r"},
    globally=("b0", "g", "mu", "nu", "s", "i", "r"),
    locally=("M",),
    non_identifiable=("b1", "x1", "x2"),
    values={"M": 2},  # the sign of M, with that of x2
    source=(
        "Capistran, Moreles, Lara (2009), doi 10.1007/s11538-009-9429-3, eqs (7)-(11); "
        f"{SIAN}, examples/SIRSForced; {SI_TESTS} and {SI_RESULTS}/SIRS forced: "
        "identifiable are exactly the functions of r, i, s, g, mu, b0, nu, M^2, b1*x1, M*x2/x1"
    ),
)

TREATMENT = Published(
    name="treatment",
    ode={
        "S": "-b*S*In/N - d*b*S*Tr/N",
        "In": "b*S*In/N + d*b*S*Tr/N - (a + g)*In",
        "Tr": "g*In - nu*Tr",
        "N": "0",
    },
    observables={"y1": "Tr", "y2": "N"},
    globally=("N", "Tr"),
    locally=("nu",),
    non_identifiable=("a", "b", "d", "g", "S", "In"),
    values={"nu": 2},  # nu and a + g can be exchanged
    source=(
        "Tuncer and Le (2018), doi 10.1016/j.mbs.2018.02.004, eq. (2.3) with treatment observed; "
        f"{SI_RESULTS}/Treatment_io: identifiable are exactly the functions of N, Tr, "
        "S*g, nu*(a + g), nu + a + g, b/g, In*g + Tr*(a + g), (In + d*Tr)*g/Tr"
    ),
)

SLOW_FAST = Published(
    name="slow-fast",
    ode={
        "xA": "-k1*xA",
        "xB": "k1*xA - k2*xB",
        "xC": "k2*xB",
        "eA": "0",
        "eC": "0",
    },
    observables={"y1": "xC", "y2": "eA*xA + eB*xB + eC*xC", "y3": "eA", "y4": "eC"},
    globally=("xC", "eA", "eC"),
    locally=("k1", "k2", "eB", "xA", "xB"),
    count=2,
    values={"k1": 2, "k2": 2, "eB": 2, "xA": 2, "xB": 2},  # k1 and k2 can be exchanged
    source=(
        "Vajda and Rabitz, 'Identifiability and Distinguishability of First-Order "
        f"Reaction Systems', p. 701, with xC observed too; labels: {SIAN_TESTS}; count computed"
    ),
)

AKT = Published(
    name="akt pathway",
    ode={
        "EGFR": (
            "EGFR_turnover*pro_EGFR + EGF_EGFR*reaction_1_k2 - EGFR*EGFR_turnover"
            " - EGF_EGFR*reaction_1_k1"
        ),
        "pEGFR": (
            "EGF_EGFR*reaction_9_k1 - pEGFR*reaction_4_k1 + pEGFR_Akt*reaction_2_k2"
            " + pEGFR_Akt*reaction_3_k1 - Akt*pEGFR*reaction_2_k1"
        ),
        "pEGFR_Akt": "Akt*pEGFR*reaction_2_k1 - pEGFR_Akt*(reaction_3_k1 + reaction_2_k2)",
        "Akt": "pAkt*reaction_7_k1 + pEGFR_Akt*reaction_2_k2 - Akt*pEGFR*reaction_2_k1",
        "pAkt": (
            "pAkt_S6*reaction_5_k2 - pAkt*reaction_7_k1 + pAkt_S6*reaction_6_k1"
            " + pEGFR_Akt*reaction_3_k1 - S6*pAkt*reaction_5_k1"
        ),
        "S6": "pAkt_S6*reaction_5_k2 + pS6*reaction_8_k1 - S6*pAkt*reaction_5_k1",
        "pAkt_S6": "S6*pAkt*reaction_5_k1 - pAkt_S6*(reaction_6_k1 + reaction_5_k2)",
        "pS6": "pAkt_S6*reaction_6_k1 - pS6*reaction_8_k1",
        "EGF_EGFR": "EGF_EGFR*(reaction_1_k1 - reaction_9_k1 - reaction_1_k2)",
    },
    observables={
        "y1": "a1*(pEGFR + pEGFR_Akt)",
        "y2": "a2*(pAkt + pAkt_S6)",
        "y3": "a3*pS6",
    },
    inputs=("pro_EGFR",),
    globally=(
        "reaction_2_k2",
        "reaction_3_k1",
        "reaction_4_k1",
        "reaction_5_k2",
        "reaction_6_k1",
        "reaction_7_k1",
        "reaction_8_k1",
    ),
    non_identifiable=(
        "reaction_1_k1",
        "reaction_1_k2",
        "reaction_2_k1",
        "reaction_5_k1",
        "reaction_9_k1",
        "EGFR_turnover",
        "a1",
        "a2",
        "a3",
        "EGFR",
        "pEGFR",
        "pEGFR_Akt",
        "Akt",
        "pAkt",
        "S6",
        "pAkt_S6",
        "pS6",
        "EGF_EGFR",
    ),
    source=(f"Fujita et al. (2010); {SI_TESTS} ('Fujita') and {SI_RESULTS}/Akt pathway"),
)

SEIR_PREVALENCE = Published(
    name="seir prevalence",
    ode={"S": "-b*S*In/N", "E": "b*S*In/N - nu*E", "In": "nu*E - a*In", "N": "0"},
    observables={"y1": "In", "y2": "N"},
    globally=("b", "In", "N"),
    locally=("nu", "a", "S", "E"),
    count=2,
    values={"nu": 2, "a": 2, "S": 2, "E": 2},  # nu and a can be exchanged
    source=(
        "Tuncer and Le (2018), doi 10.1016/j.mbs.2018.02.004, eq. (2.2) with prevalence; "
        f"labels: {SIAN_TESTS}; count computed"
    ),
)

SEIR_QUARANTINE = Published(
    name="seir quarantine",
    ode={
        "S": "-beta*S*I",
        "E": "beta*S*I - v*E",
        "I": "v*E - psi*I - (1 - psi)*gamma*I",
        "R": "gamma*Q + (1 - psi)*gamma*I",
        "Q": "-gamma*Q + psi*I",
    },
    observables={"y1": "Q"},
    globally=("gamma", "Q"),
    locally=("beta", "psi", "v", "S", "E", "I"),
    non_identifiable=("R",),
    values={"beta": 2, "psi": 2, "v": 2, "S": 2, "E": 2, "I": 2},
    source=(
        f"{SI_TESTS}, 'SEIR_1_io': identifiable are exactly the functions of gamma, beta/psi, "
        "gamma*psi - v - psi, (gamma - v)*psi; the labels of the states are computed"
    ),
)

HIV_IMMUNE = Published(
    name="hiv immune",
    ode={
        "x": "lm - d*x - beta*x*v",
        "y": "beta*x*v - a*y",
        "v": "k*y - u*v",
        "w": "c*x*y*w - c*q*y*w - b*w",
        "z": "c*q*y*w - h*z",
    },
    observables={"y1": "w", "y2": "z"},
    globally=("a", "b", "d", "h", "u", "w", "z"),
    non_identifiable=("beta", "c", "k", "lm", "q", "x", "y", "v"),
    source=(
        "Wodarz and Nowak (2002), doi 10.1002/bies.10196, eqs (6); "
        f"{SI_RESULTS}/HIV: identifiable are exactly the functions of z, w, a, u, d, h, b, "
        "v*beta, x/y, q/y, lm/y, k*y/v, k*beta/(c*y)"
    ),
)

HIV_LATENT = Published(
    name="hiv latent",
    ode={
        "x1": "-b*x1*x4 - d*x1 + s",
        "x2": "b*q1*x1*x4 - w1*x2 - k1*x2",
        "x3": "b*x1*q2*x4 - x3*w2 + k1*x2",
        "x4": "-c*x4 + k2*x3",
    },
    observables={"y1": "x1", "y2": "x4"},
    globally=("b", "d", "s", "x1", "x4"),
    locally=("c", "w2"),
    non_identifiable=("k1", "k2", "q1", "q2", "w1", "x2", "x3"),
    values={"c": 3, "w2": 3},  # c, w2 and w1 + k1 can be permuted
    source=(
        f"{SIAN}, examples/HIV (parameters renamed); "
        f"{SI_RESULTS}/HIV2_io: of b, d, s, k2*q2 and the symmetric functions of c, w2, w1 + k1"
    ),
)

REACTION_NETWORK = Published(
    name="reaction network",
    ode={
        "x1": "k4*x6 + k2*x4 - k1*x1*x2",
        "x2": "k3*x4 + k2*x4 - k1*x1*x2",
        "x3": "k5*x6 + k3*x4 - k6*x5*x3",
        "x4": "-k3*x4 - k2*x4 + k1*x1*x2",
        "x5": "k5*x6 + k4*x6 - k6*x5*x3",
        "x6": "-k5*x6 - k4*x6 + k6*x5*x3",
    },
    observables={"y1": "x3", "y2": "x2"},
    globally=("k1", "k2", "k3", "k4", "k5", "k6", "x1", "x2", "x3", "x4", "x5", "x6"),
    count=1,
    source=(
        f"{SI_RESULTS}/Chemical reaction network. SIAN-Julia, examples/ChemicalReactionNetwork, "
        "has the other sign of k1*x1*x2 in x2' (the labels computed for it are the same)"
    ),
)

LIPOLYSIS = Published(
    name="ruminal lipolysis",
    ode={
        "x1": "-x1*x5/(k2 + x1)",
        "x2": "2/3*x1*x5/(k2 + x1) - k4*x2",
        "x3": "k4*x2/2 - k4*x3",
        "x4": "x1*x5/(3*(k2 + x1)) + k4*x2/2 + k4*x3",
        "x5": "-k3*x5",
    },
    observables={"y1": "x1", "y2": "x2 + x3", "y3": "x4"},
    globally=("k2", "k3", "k4", "x1", "x2", "x3", "x4", "x5"),
    count=1,
    source=(
        "Moate et al. (2008), doi 10.3168/jds.2007-0398, after Munoz-Tamayo et al. (2018); "
        f"{SI_RESULTS}/Ruminal lipolysis"
    ),
)

BIOHYDROGENATION = Published(
    name="biohydrogenation",
    ode={
        "x4": "-k5*x4/(k6 + x4)",
        "x5": "k5*x4/(k6 + x4) - k7*x5/(k8 + x5 + x6)",
        "x6": "k7*x5/(k8 + x5 + x6) - k9*x6*(k10 - x6)/k10",
        "x7": "k9*x6*(k10 - x6)/k10",
    },
    observables={"y1": "x4", "y2": "x5"},
    globally=("k5", "k6", "k7", "x4", "x5"),
    locally=("k8", "k9", "k10", "x6"),
    non_identifiable=("x7",),
    values={"k8": 2, "k9": 2, "k10": 2, "x6": 2},  # the sign of k10
    source=(
        f"{SI_TESTS}, 'Biohydrogenation_io': identifiable are exactly the functions of k5, k6, "
        f"k7, k10^2, k9*k10, k8 + k10/2, with states ({SI_RESULTS}) also x4, x5, k10 - 2*x6"
    ),
)

LLW = Published(
    name="llw1987",
    ode={
        "x1": "-p1*x1 + p2*u",
        "x2": "-p3*x2 + p4*u",
        "x3": "-(p1 + p3)*x3 + (p4*x1 + p2*x2)*u",
    },
    observables={"y1": "x3"},
    inputs=("u",),
    globally=("x3",),
    locally=("p1", "p3"),
    non_identifiable=("p2", "p4", "x1", "x2"),
    values={"p1": 2, "p3": 2},
    source=(
        "docs of StructuralIdentifiability.jl, tutorial on identifiable functions; "
        f"{SI_TESTS}, 'llw1987': identifiable are exactly the functions of x3, x1*x2, p1*p3, "
        "p2*p4, p1 + p3, p2*x2 + p4*x1, (p3 - p1)/(p2*x2 - p4*x1)"
    ),
)

TWO_COMPARTMENTS = Published(
    name="two compartments",
    ode={"x0": "-(a01 + a21)*x0 + a12*x1", "x1": "a21*x0 - a12*x1"},
    observables={"y": "x0"},
    globally=("x0",),
    non_identifiable=("a01", "a12", "a21", "x1"),
    source=(
        "StructuralIdentifiability.jl, test/identifiability.jl and test/local_identifiability.jl:"
        " identifiable are a01*a12 and a01 + a12 + a21"
    ),
)

CASCADE = Published(
    name="driven cascade",
    ode={"x1": "-a1*x1 + a21*x2", "x2": "-a2*x2 - a21*x2 + u"},
    observables={"y1": "x1"},
    inputs=("u",),
    globally=("a21", "x1"),
    locally=("a1", "a2", "x2"),
    count=2,
    values={"a1": 2, "a2": 2, "x2": 2},
    source=(
        "StructuralIdentifiability.jl, test/identifiability.jl: also a1 + a2 and a2*(a1 - a21) "
        "globally; the labels of the states and the count are computed"
    ),
)

LOTKA_VOLTERRA = Published(
    name="predator and prey",
    ode={"x1": "a*x1 - b*x1*x2", "x2": "-c*x2 + d*x1*x2"},
    observables={"y1": "x1"},
    globally=("a", "c", "d", "x1"),
    non_identifiable=("b", "x2"),
    source=f"{SIAN_TESTS}; with states {SI_TESTS}: x1, a, c, d and b*x2",
)

COMPETITION = Published(
    name="two species",
    ode={"x1": "r1*x1*(1 - x1/k1 + x2/k2)", "x2": "r2*x2*(1 - x1/k1 + x2/k2)"},
    observables={"y": "x1"},
    globally=("k1", "r1", "r2", "x1"),
    non_identifiable=("k2", "x2"),
    source="SIAN-Julia, README, first example",
)

QUADRATIC = Published(
    name="quadratic",
    ode={"x1": "0"},
    observables={"y1": "x1", "y2": "a*x1 + a^2"},
    globally=("x1",),
    locally=("a",),
    count=2,
    values={"a": 2},
    source=f"labels: {SIAN_TESTS}; the count is plain",
)

PUBLISHED = (
    GOODWIN,
    SIRS_FORCED,
    TREATMENT,
    SLOW_FAST,
    AKT,
    SEIR_PREVALENCE,
    SEIR_QUARANTINE,
    HIV_IMMUNE,
    HIV_LATENT,
    REACTION_NETWORK,
    LIPOLYSIS,
    BIOHYDROGENATION,
    LLW,
    TWO_COMPARTMENTS,
    CASCADE,
    LOTKA_VOLTERRA,
    COMPETITION,
    QUADRATIC,
)
