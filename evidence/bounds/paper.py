"""Tables 1 to 4 as Miró et al. published them, read from paper.toml.

Deterministic global optimization algorithm based on outer approximation for the parameter
estimation of nonlinear dynamic biological systems (2012).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

_TABLES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
SIZES, BOUNDS, SUMS, PARAMETERS = (
    _TABLES[name] for name in ("SIZES", "BOUNDS", "SUMS", "PARAMETERS")
)
