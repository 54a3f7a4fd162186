"""A plausible wrong problem file gets one message, and what this says to write is right.

Each case is a line that users of other programs write, the message, and the lines that it leads
to. The test holds that there is one mistake alone, so that mending it does not lead to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from odefit.problem import InputError, load

PARTS: Mapping[str, str] = {
    "format": "format = 1",
    "ode": '[ode]\nx = "-k*x"',
    "observables": "",
    "constants": "",
    "inputs": "",
    "parameters": "[parameters]\nk = { lower = 0, upper = 5 }",
    "initial": "[initial]\nx = 10",
    "noise": "[noise]\nx = { sd = 0.1 }",
    "experiment": '[[experiment]]\ndata = "d.csv"',
}
FRACTION = "f = { lower = 0.001, upper = 1 }"
BOTH = "a = { lower = 0 }\nb = { lower = 0, upper = 1 }"

NOISE = [
    ('{ relative_sd = "estimate" }', '{ sd = "f*x" }', FRACTION),
    ('{ proportional = "estimated" }', '{ sd = "f*x" }', FRACTION),
    ("{ relative = true }", '{ sd = "f*x" }', FRACTION),
    ('{ sd = "relative" }', '{ sd = "f*x" }', FRACTION),
    ('{ sd = "proportional" }', '{ sd = "f*x" }', FRACTION),
    ('{ type = "proportional", value = "estimate" }', '{ sd = "f*x" }', FRACTION),
    ('{ error_model = "proportional" }', '{ sd = "f*x" }', FRACTION),
    ('{ distribution = "proportional" }', '{ sd = "f*x" }', FRACTION),
    ('{ type = "proportional", value = 0.1 }', "{ relative = 0.1 }", ""),
    ("{ cv = 0.1 }", "{ relative = 0.1 }", ""),
    ("{ percent = 5 }", "{ relative = 0.05 }", ""),
    ('{ sd = "5%" }', "{ relative = 0.05 }", ""),
    ('{ relative = "5 %" }', "{ relative = 0.05 }", ""),
    ("{ sd = true }", '{ sd = "estimate" }', ""),
    ('{ sd = "fit" }', '{ sd = "estimate" }', ""),
    ('{ sd = "sigma" }', '{ sd = "estimate" }', ""),
    ('{ noise = "estimate" }', '{ sd = "estimate" }', ""),
    ('{ sigma = "estimate" }', '{ sd = "estimate" }', ""),
    ("{ std = 0.2 }", "{ sd = 0.2 }", ""),
    ("{ variance = 0.04 }", "{ sd = 0.2 }", ""),
    ("{ sd = 0.1, lloq = 0.5 }", "{ sd = 0.1, lower_limit = 0.5 }", ""),
    ('{ sd = 0.1, distribution = "gaussian" }', "{ sd = 0.1 }", ""),
    (
        '{ sigma = 0.1, distribution = "lognormal" }',
        '{ sd = 0.1, distribution = "log-normal" }',
        "",
    ),
    (
        '{ distribution = "negative binomial", dispersion = "estimate" }',
        '{ distribution = "negative-binomial", dispersion = "estimate" }',
        "",
    ),
    (
        '{ distribution = "nbinom" }',
        '{ distribution = "negative-binomial", dispersion = "estimate" }',
        "",
    ),
    ("{ additive = 0.1, proportional = 0.05 }", '{ sd = "sqrt(0.1^2 + (0.05*x)^2)" }', ""),
    ("{ sd = 0.1, relative = 0.05 }", '{ sd = "sqrt(0.1^2 + (0.05*x)^2)" }', ""),
    ('{ sd = "estimate", relative = "estimate" }', '{ sd = "sqrt(a^2 + (b*x)^2)" }', BOTH),
    ('{ error_model = "combined" }', '{ sd = "sqrt(a^2 + (b*x)^2)" }', BOTH),
    ("{ sd = { lower = 0, upper = 1 } }", '{ sd = "s" }', "s = { lower = 0, upper = 1 }"),
]


def told(folder: Path, **parts: str) -> list[str]:
    """Return the messages about a problem file with some parts replaced, without its name."""
    rows = "".join(f"{t},{10 * 0.7**t},{60 + t}\n" for t in range(9))
    (folder / "d.csv").write_text(f"t,x,w\n{rows}", encoding="utf-8")
    file = folder / "p.toml"
    file.write_text("\n".join({**PARTS, **parts}.values()), encoding="utf-8")
    try:
        load(file)
    except InputError as error:
        return [m.split("p.toml: ", 1)[-1] for m in error.messages]
    return []


@pytest.mark.parametrize(("wrong", "right", "needed"), NOISE, ids=[case[0] for case in NOISE])
def test_noise_in_the_words_of_others_is_reported_whole(
    wrong: str, right: str, needed: str, tmp_path: Path
) -> None:
    (message,) = told(tmp_path, noise=f"[noise]\nx = {wrong}")
    assert f"write x = {right}" in message
    assert all(line in message for line in needed.splitlines())
    assert message.endswith("in [parameters]") == bool(needed)
    mended = f"{PARTS['parameters']}\n{needed}"
    counts = "[[experiment]]\ndata = { t = [0, 1, 2], x = [9, 7, 4] }"  # for laws of counts
    given = {"experiment": counts} if "negative" in right else {}
    assert told(tmp_path, noise=f"[noise]\nx = {right}", parameters=mended, **given) == []


@pytest.mark.parametrize(
    ("part", "wrong", "message", "right"),
    [
        # sections
        ("ode", '[equations]\nx = "-k*x"', "[equations]: unknown section; write [ode]", ""),
        ("ode", '[odes]\nx = "-k*x"', "[odes]: unknown section; write [ode]", ""),
        (
            "initial",
            "[initial_conditions]\nx = 10",
            "[initial_conditions]: unknown section; write [initial]",
            "",
        ),
        (
            "observables",
            '[outputs]\nx = "x"',
            "[outputs]: unknown section; write [observables]",
            '[observables]\nx = "x"',
        ),
        (
            "noise",
            '[noise]\nsd = "estimate"',
            (
                "[noise] sd: the fields of an observable belong in its table; "
                'write x = { sd = "estimate" }'
            ),
            '[noise]\nx = { sd = "estimate" }',
        ),
        (
            "parameters",
            '[parameters]\nname = "k"\nmin = 0\nupper = 5',
            (
                "[parameters] min, upper, name: the fields of a parameter belong in its table; "
                "write k = { lower = 0, upper = 5 }"
            ),
            "[parameters]\nk = { lower = 0, upper = 5 }",
        ),
        (
            "experiment",
            '[data]\nfile = "d.csv"',
            'data: write [[experiment]], and below it data = "d.csv"',
            "",
        ),
        # right-hand sides
        (
            "ode",
            '[ode]\n"dx/dt" = "-k*x"',
            '[ode] dx/dt: the name of the state stands alone on the left; write x = "-k*x"',
            "",
        ),
        (
            "ode",
            '[ode]\ndxdt = "-k*x"',
            '[ode] dxdt: the name of the state stands alone on the left; write x = "-k*x"',
            "",
        ),
        (
            "ode",
            '[ode]\nx_dot = "-k*x"',
            '[ode] x_dot: the name of the state stands alone on the left; write x = "-k*x"',
            "",
        ),
        (
            "ode",
            '[ode]\nx = "dx/dt = -k*x"',
            '[ode] x: the right-hand side stands alone between the quotes; write x = "-k*x"',
            "",
        ),
        (
            "ode",
            '[ode]\nequations = ["dx/dt = -k*x"]',
            (
                "[ode] equations: a list of equations; each state has a line of its own; "
                'write x = "-k*x"'
            ),
            "",
        ),
        (
            "ode",
            '[ode.x]\nrhs = "-k*x"\ninitial = 10',
            '[ode] x: got a table; the initial value belongs in [initial]; write x = "-k*x"',
            "",
        ),
        (
            "ode",
            '[ode]\nx = "-k*np.exp(x)"',
            (
                "[ode] x: unexpected '.' at position 6 of '-k*np.exp(x)'; write the "
                "function alone, without 'np'"
            ),
            '[ode]\nx = "-k*exp(x)"',
        ),
        (
            "ode",
            '[ode]\nx = "if t < 3 then -k*x else 0"',
            (
                "[ode] x: unexpected 't' at position 4 of 'if t < 3 then -k*x else 0'; "
                "write piecewise(a, condition, b)"
            ),
            '[ode]\nx = "piecewise(-k*x, t < 3, 0)"',
        ),
        # initial values and parameters
        (
            "initial",
            '[initial]\nx = "estimate"',
            "[initial] x: unknown name 'estimate' in 'estimate'; write x = {} to have it estimated",
            "[initial]\nx = {}",
        ),
        ("initial", '[initial]\n"x(0)" = 10', "[initial] x(0): write x = 10", ""),
        (
            "parameters",
            "[parameters]\nk = { value = 0.3, vary = false }",
            "[parameters] k.vary: expected a number, got false; write fixed = 0.3, without a guess",
            "[parameters]\nk = { fixed = 0.3 }",
        ),
        (
            "parameters",
            "[parameters]\nk = { fixed = true, guess = 0.3 }",
            "[parameters] k.fixed: expected a number, got true; write fixed = 0.3, without a guess",
            "[parameters]\nk = { fixed = 0.3 }",
        ),
        (
            "parameters",
            "[parameters]\nk = { estimate = true, guess = 0.3 }",
            (
                "[parameters] k.estimate: expected a number, got true; "
                "leave it out, since a parameter without a fixed value is estimated"
            ),
            "[parameters]\nk = { guess = 0.3 }",
        ),
        (
            "parameters",
            '[parameters]\nk = { lower = "0" }',
            "[parameters] k.lower: expected a number, got '0'; write 0 without quotes",
            "[parameters]\nk = { lower = 0 }",
        ),
        (
            "parameters",
            '[parameters]\nk = { upper = "inf" }',
            "[parameters] k.upper: expected a number, got 'inf'; write inf without quotes",
            "[parameters]\nk = { upper = inf }",
        ),
        (
            "parameters",
            '[parameters]\nk = { scale = "log" }',
            '[parameters] k.scale: expected "linear" or "log10", got \'log\'',
            '[parameters]\nk = { scale = "log10" }',
        ),
        (
            "parameters",
            "[parameters]\nk = { per_subject = true }",
            "[parameters] k.per_subject: unknown field; write per_experiment = true",
            "[parameters]\nk = { per_experiment = true }",
        ),
        (
            "constants",
            '[constants]\nV = "2 L"',
            (
                "[constants] V: expected a number, got '2 L'; write 2 alone, and the unit as "
                "a text in [units]"
            ),
            '[constants]\nV = 2\n[units]\nV = "L"',
        ),
        (
            "constants",
            '[constants]\nV = "1/8"',
            "[constants] V: expected a number, got '1/8'; write 0.125",
            "[constants]\nV = 0.125",
        ),
        (
            "constants",
            '[constants]\nstop = "2023-12-11"',
            (
                "[constants] stop: expected a number, got '2023-12-11'; in place of a date write "
                "the time since t = 0, in the unit of time"
            ),
            "[constants]\nstop = 35",
        ),
        (
            "inputs",
            '[inputs]\nw = { interpolation = "zoh" }',
            "[inputs] w: unknown interpolation 'zoh'; write \"constant\"",
            '[inputs]\nw = { interpolation = "constant" }',
        ),
        (
            "experiment",
            (
                '[[experiment]]\ndata = "nothing.csv"\nt0 = "2023-11-06"\n[[experiment.event]]\n'
                'time = "2023-12-11"\nassign = { x = 1 }'
            ),
            "nothing.csv: there is no such file in FOLDER",
            "",
        ),
        # experiments
        (
            "experiment",
            '[[experiment]]\nfile = "d.csv"',
            "[[experiment]] \"experiment 1\": unknown key 'file'; write data",
            "",
        ),
        (
            "experiment",
            '[[experiment]]\ndata = "d.csv"\ntime_column = "t"',
            "[[experiment]] \"experiment 1\": unknown key 'time_column'; write time",
            '[[experiment]]\ndata = "d.csv"\ntime = "t"',
        ),
        (
            "experiment",
            '[[experiment]]\ndata = "d.csv"\nnoise = { x = { sd = 0.1 } }',
            (
                "[[experiment]] \"experiment 1\": unknown key 'noise'; [noise] holds for all "
                "experiments: write it above [[experiment]]"
            ),
            "",
        ),
        (
            "experiment",
            '[[experiment]]\ndata = "d.csv"\ncolumns = ["t", "x"]',
            (
                '[[experiment]] "experiment 1" columns: expected a table, got a list; write '
                'such as { x = "NAME" } for an x whose column is called NAME, or leave it out'
            ),
            "",
        ),
        (
            "experiment",
            '[[experiment]]\ndata = "d.csv"\ncolumns = { x = "conc" }',
            "d.csv: no column 'conc', which columns.x names (columns are: t, x, w)",
            "",
        ),
        (
            "experiment",
            '[[experiment]]\ndata = "d.csv"\n[[experiment.event]]\ntime = 3\ndose = 100',
            (
                "[[experiment]] \"experiment 1\" event 1: unknown key 'dose'; "
                'write assign = { x = "x + 100" }, with the state that changes'
            ),
            (
                '[[experiment]]\ndata = "d.csv"\n[[experiment.event]]\ntime = 3\n'
                'assign = { x = "x + 100" }'
            ),
        ),
        (
            "experiment",
            '[[experiment]]\ndata = "d.csv"\n[[experiment.event]]\nat = 3\nx = "x + 10"',
            (
                "[[experiment]] \"experiment 1\" event 1: unknown key 'x'; "
                'write assign = { x = "x + 10" } if it is a state'
            ),
            (
                '[[experiment]]\ndata = "d.csv"\n[[experiment.event]]\ntime = 3\n'
                'assign = { x = "x + 10" }'
            ),
        ),
        (
            "experiment",
            '[[experiment]]\ndata = "d.csv"\n[[experiment.event]]\ntime = 3\nassign = "x = x + 1"',
            (
                '[[experiment]] "experiment 1" event 1 assign: expected a table, got '
                "'x = x + 1'; "
                'write assign = { x = "x + 1" }'
            ),
            "",
        ),
    ],
)
def test_habits_from_other_programs_give_one_message_with_a_valid_remedy(
    part: str, wrong: str, message: str, right: str, tmp_path: Path
) -> None:
    messages = told(tmp_path, **{part: wrong})
    if "\nat = 3" in wrong:
        assert "unknown key 'at'; write time" in messages.pop(0)
    assert messages == [message.replace("FOLDER", str(tmp_path))]
    assert told(tmp_path, **{part: right or PARTS[part]}) == []


def test_a_state_may_have_the_name_of_a_derivative(tmp_path: Path) -> None:
    equations = '[ode]\nx = "dx"\ndx = "-k*x"\nxdot = "k"'
    start = "[initial]\nx = 10\ndx = 0\nxdot = 0"
    assert told(tmp_path, ode=equations, initial=start) == []


def test_parameters_may_have_the_names_of_fields(tmp_path: Path) -> None:
    names = '[ode]\nx = "-k*x + scale*guess*sigma"'
    declared = "[parameters]\nk = {}\nscale = [0, 1]\nguess = {}\nsigma = { fixed = 1 }"
    spread = '[noise]\nx = { sd = "sigma" }'
    assert told(tmp_path, ode=names, parameters=declared, noise=spread) == []


def test_a_relative_noise_above_one_is_taken_for_a_percentage(tmp_path: Path) -> None:
    told(tmp_path, noise="[noise]\nx = { relative = 5 }")
    notes = load(tmp_path / "p.toml").warnings
    assert notes[0].endswith(
        "[noise] x.relative: 5 means a standard deviation of 500 % of the value; for 5 % write 0.05"
    )
