"""Unknowns that are logarithms of quantities, by the text of a problem's equations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any


def logarithms(plain: Mapping[str, Any], names: Sequence[str]) -> set[str]:
    """Return the unknowns that occur only as summands of arguments of exp, as in exp(lKa - lCl)."""
    texts = [str(v) for s in ("ode", "algebraic", "initial") for v in plain.get(s, {}).values()]
    texts += [str(v) for v in (plain.get("observables") or {}).values()]
    texts += [str(v) for e in plain["experiment"] for k in ("initial", "constants")
              for v in e.get(k, {}).values()]  # fmt: skip
    texts += [str(e.get("event", "")) for e in plain["experiment"]]
    summands = re.compile(r"exp\(((?:[-+ ]*[A-Za-z_]\w*)+)\)")
    inside = {n for t in texts for m in summands.findall(t) for n in re.findall(r"[A-Za-z_]\w*", m)}
    rest = {n for t in texts for n in re.findall(r"[A-Za-z_]\w*", summands.sub(" ", t))}
    return {name for name in names if name in inside - rest}
