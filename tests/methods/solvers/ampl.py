#!/usr/bin/env python
"""An AMPL solver in a few lines: reads a ``.nl`` file, runs IPOPT, writes a ``.sol`` file.

Usage: ``ampl.py STUB.nl -AMPL [name=value ...]``; nothing of odefit is in it. The word ``sleep=1``
makes it hang, ``fail=1`` end without an answer.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import casadi as ca

CODES = {"Solve_Succeeded": 0, "Maximum_CpuTime_Exceeded": 401, "Infeasible_Problem_Detected": 200}


def main(stub: str, ampl: str, *words: str) -> None:
    assert ampl == "-AMPL"
    options = dict(word.split("=") for word in words)
    if "sleep" in options:
        time.sleep(60)
    if "fail" in options:
        sys.exit("no licence")
    builder = ca.NlpBuilder()
    builder.import_nl(stub)
    program = {"x": ca.vertcat(*builder.x), "f": builder.f, "g": ca.vertcat(*builder.g)}
    settings = {"ipopt.max_cpu_time": float(options.get("max_cpu_time", "60"))}
    solver = ca.nlpsol("solver", "ipopt", program, settings)
    found = solver(
        x0=builder.x_init, lbx=builder.x_lb, ubx=builder.x_ub, lbg=builder.g_lb, ubg=builder.g_ub
    )
    status = solver.stats()["return_status"]
    x = found["x"].full().ravel().tolist()
    lines = ["", f"Script: {status}", "", "Options", "3", "1", "1", "0"]
    lines += [str(len(builder.g)), "0", str(len(x)), str(len(x))]
    lines += [repr(value) for value in x] + [f"objno 0 {CODES.get(status, 500)}"]
    Path(stub).with_suffix(".sol").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
