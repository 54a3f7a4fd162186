"""Tables 1 to 4 and times as Dattner et al. published them.

Mean squared errors of nonlinear over those of separable least squares; above 1, the separable
method is better.
"""

from __future__ import annotations

from collections.abc import Mapping

MODELS = ("sir", "ltk", "gma", "ftz")  # the names of the models in the paper, in its order

# Qualities of the prior information on linear parameters, in the order of the tables
PRIORS = ("low", "medium", "high")
NOISE = {"low": 0.1, "high": 0.2}  # standard deviations of the noise over those of the states

_LINEAR_SMALL = {
    "low": (8.3, 5.8, 4.0, 2.3, 2.8, 2.2, 2.2, 1.3),
    "medium": (3.9, 1.8, 3.1, 1.7, 1.4, 1.2, 1.8, 1.2),
    "high": (0.9, 1.3, 0.9, 2.0, 0.4, 1.0, 0.6, 1.1),
}
_LINEAR_LARGE = {
    "low": (12.0, 9.6, 3.9, 3.9, 3.8, 3.2, 2.2, 2.2),
    "medium": (4.1, 4.3, 2.8, 1.9, 1.6, 1.6, 1.6, 1.3),
    "high": (1.0, 2.2, 0.7, 2.3, 0.7, 1.2, 0.5, 1.5),
}
_NONLINEAR_SMALL = {
    "low": (23.0, 1.7, 1.1, 1.1, 6.6, 1.1, 1.0, 1.0),
    "medium": (8.7, 1.2, 1.0, 1.0, 2.6, 0.9, 1.0, 1.0),
    "high": (1.0, 1.0, 0.9, 1.0, 0.4, 0.9, 0.9, 1.0),
}
_NONLINEAR_LARGE = {
    "low": (29.0, 4.1, 1.1, 1.6, 6.5, 1.3, 1.0, 1.3),
    "medium": (8.2, 2.1, 0.9, 1.0, 2.2, 1.1, 0.9, 1.0),
    "high": (0.9, 1.2, 0.8, 1.0, 0.7, 0.9, 0.8, 1.0),
}

# The ratios by kind of parameters and sample size, in the order of the paper's tables: a row for
# each quality of the prior, the models with low noise before those with high noise
TABLES: Mapping[tuple[str, str], Mapping[str, tuple[float, ...]]] = {
    ("linear", "small"): _LINEAR_SMALL,
    ("linear", "large"): _LINEAR_LARGE,
    ("nonlinear", "small"): _NONLINEAR_SMALL,
    ("nonlinear", "large"): _NONLINEAR_LARGE,
}


def ratio(kind: str, size: str, prior: str, noise: str, model: str) -> float:
    place = MODELS.index(model) + len(MODELS) * list(NOISE).index(noise)
    return TABLES[kind, size][prior][place]


# Times of the authors' R package on one core, measured by us, integral criterion alone, small
# samples: separable, and the range of not separable. Its FitzHugh-Nagumo was another variant
SECONDS: Mapping[str, tuple[float, float, float]] = {
    "sir": (0.19, 1.15, 1.15),
    "ltk": (0.72, 0.84, 1.71),
    "gma": (1.45, 9.46, 9.46),
}
