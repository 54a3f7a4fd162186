"""The rows of the first table of the evidence: cells derived from the tables of a page.

Each function takes the rows of one or two tables, and returns the cells on odefit, on others and on
shortcomings. Some tables were taken over from pages by hand, before campaigns made them, and have
other columns than a campaign gives them: until they are made again, both are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean, median

from evidence.cells import NONE, first, listed, numbers, span

Table = Sequence[Mapping[str, str]]


def whole_fits(table: Table) -> tuple[str, str, str]:
    own = [row["odefit, s"] for row in table]
    copasi = [(row["COPASI SS, s"], row["COPASI LM, s"]) for row in table]
    right = [[c for c in pair if c.endswith("right")] for pair in copasi]
    both = [(row["problem"], row["odefit / fastest right COPASI"]) for row in table]
    slower = [name for name, ratio in both if (first(ratio) or 0) > 1]
    return (
        (
            f"{sum(c.endswith('right') for c in own)} of {len(own)} right, "
            f"{span(x for c in own for x in numbers(c)[:1])} s from the command to the result"
        ),
        (
            f"COPASI, the better of two methods: {sum(map(bool, right))} right, "
            f"{span(min(numbers(c)[0] for c in pair) for pair in right if pair)} s"
        ),
        listed(slower, "COPASI is faster on"),
    )


def trajectories(table: Table) -> tuple[str, str, str]:
    scipy = [numbers(row["SciPy / odefit"])[0] for row in table]
    casadi = [(row["problem"].split(" ")[0], numbers(row["CasADi / odefit"])[0]) for row in table]
    return (
        f"{span(numbers(row['odefit, µs'])[0] for row in table)} µs with sensitivities",
        f"SciPy takes {span(scipy)} times as long, CasADi {span(r for _, r in casadi)} times",
        listed([name for name, ratio in casadi if ratio < 1], "CasADi is faster on"),
    )


def local_searches(table: Table) -> tuple[str, str, str]:
    starts = sum(int(row["starts"]) for row in table)
    ours, theirs = (
        sum(int(row[f"{name}: lowest"]) for row in table) for name in ("odefit", "fides")
    )
    fewest = [numbers(row["no more than the best other"]) for row in table]
    ratios = span(first(row["ratio to fides"]) or 0.0 for row in table)
    return (
        f"{ours} of {starts} local searches end at the lowest cost of four methods",
        f"fides: {theirs}; odefit takes {ratios} times its evaluations",
        (
            "another method takes fewer evaluations from "
            f"{int(sum(n - few for few, n in fewest))} starts"
        ),
    )


def stiff(table: Table) -> tuple[str, str, str]:
    ratios = [(row["model"], first(row["faster"])) for row in table]
    known = [ratio for _, ratio in ratios if ratio is not None]
    unknown = [name for name, ratio in ratios if ratio is None]
    return (
        (
            f"gradients of {len(table)} published models in "
            f"{span(numbers(row['gradient, ms'])[0] for row in table)} ms"
        ),
        (
            f"CVODES takes {span(known)} times as long for sensitivities; it fails or takes "
            f"more than 100 s on {', '.join(unknown)}"
        ),
        listed([name for name, ratio in ratios if (ratio or 9) < 1], "CVODES is faster on"),
    )


def dense(table: Table) -> tuple[str, str, str]:
    def right(method: str) -> tuple[int, int]:
        rows = [row for row in table if row["part"] == "dense" and row["method"] == method]
        return sum(int(r["right"]) for r in rows), sum(int(r["fits"]) for r in rows)

    own, copasi, scipy = right("automatic"), right("copasi"), right("scipy")
    lost = own[1] - own[0]
    return (
        f"{own[0]} of {own[1]} textbook systems right, with and without noise",
        f"COPASI {copasi[0]} of {copasi[1]}, SciPy from random starts {scipy[0]} of {scipy[1]}",
        f"{lost} fits are wrong" if lost else NONE,
    )


def petab_fits(table: Table) -> tuple[str, str, str]:
    reached = 0.1
    own = {row["problem"]: first(row["gap"]) for row in table}
    peer = [first(row["pyPESTO: gap"]) for row in table if row["pyPESTO: gap"]]
    missed = [name for name, gap in own.items() if gap is None or gap > reached]
    return (
        (
            f"{len(own) - len(missed)} of {len(own)} published models reach the published answer "
            "or a better one from random starts in 120 s"
        ),
        (
            f"pyPESTO with AMICI and fides: {sum(g is not None and g <= reached for g in peer)} "
            f"of {len(peer)}"
        ),
        listed(missed, "not reached"),
    )


def likelihoods(table: Table) -> tuple[str, str, str]:
    same = 0.01  # of log-likelihoods
    by_hand = "published" in table[0]
    right = "published" if by_hand else "AMICI's"
    known = [r for r in table if numbers(r[right])]
    apart = [
        r["problem"].split(" ")[0]
        for r in known
        if abs(numbers(r[right])[0] - numbers(r["log-likelihood"])[0]) > same
    ]
    other = "gradient, ms 2" if by_hand else "AMICI: gradient, ms"
    pairs = [(first(row["gradient, ms"]), first(row[other])) for row in table]
    ratios = [b / a for a, b in pairs if a and b]
    bare = [
        row["problem"].split(" ")[0]
        for row in table
        if len(numbers(row["AMICI: cost, ms"])) > 1
        and numbers(row["AMICI: cost, ms"])[1] < numbers(row["cost, ms"])[0]
    ]
    return (
        f"likelihoods of {len(known) - len(apart)} of {len(known)} published models as "
        + ("published" if by_hand else "by AMICI"),
        (
            f"AMICI through its PEtab interface takes {span(ratios)} times as long for a gradient "
            f"(median {median(ratios):.0f})"
        ),
        f"another likelihood: {', '.join(apart)}; "
        + listed(bare, "AMICI's integrator alone is faster on the cost of"),
    )


def published(table: Table, failures: Table) -> tuple[str, str, str]:
    runs, right = (sum(int(row[key]) for row in table) for key in ("runs", "right"))
    lost = Counter(f"{row['problem']} ({row['differs']})" for row in failures)
    missed = [f"{n} times {name}" if n > 1 else name for name, n in lost.items()]
    return (
        f"{right} of {runs} published estimates to their digits",
        "certified values of NIST StRD, COPS, Bates and Watts, R",
        listed(missed, "missed"),
    )


def zoo(table: Table) -> tuple[str, str, str]:
    row = table[0]
    better = row["better than SciPy's"]
    return (
        (
            f"{row['right']} of {row['problems']} random problems of the field right, "
            f"median {row['median s']} s"
        ),
        f"long searches by SciPy; odefit's answer is better on {better}",
        (
            f"{row['converged on a wrong one']} converged on a wrong optimum, "
            f"{row['not converged']} did not converge; the slowest took {row['most s']} s"
        ),
    )


def hills(table: Table) -> tuple[str, str, str]:
    row = next(r for r in table if r["problem"] == "all")
    rest = [r["problem"] for r in table if r["limit s"] == row["limit s"] and r != row]
    short = [n for n in rest if _of(table, n, "at the lowest") < _of(table, n, "fits")]
    return (
        (
            f"{row['at the lowest']} of {row['fits']} fits of twelve problems with several optima "
            f"end at the lowest, {row['false converged']} call a wrong one converged"
        ),
        "random starts by SciPy",
        f"{int(row['fits']) - int(row['right'])} did not converge, at a limit; lowest missed on "
        + ", ".join(short),
    )


def _of(table: Table, problem: str, key: str) -> int:
    return int(next(row for row in table if row["problem"] == problem)[key])


def guises(table: Table) -> tuple[str, str, str]:
    row = next(r for r in table if r["source"] == "all")
    return (
        f"{row['same']} of {row['fits']} answers the same in another guise",
        "the same problem in other units, names, files, orders",
        f"{int(row['fits']) - int(row['same'])} differ",
    )


def coverage(table: Table) -> tuple[str, str, str]:
    sets = 1000.0
    if "profiles hold" in table[0]:
        held = [x for row in table for x in numbers(row["profiles hold"])]
        worst = [x for row in table for x in numbers(row["goodness called bad"])]
    else:
        single = [row for row in table if row["unknown"] != "all"]
        held = [100 * numbers(row["profile covers"])[0] for row in single]
        worst = [100 * numbers(row["goodness called bad"])[0] for row in single]
        sets = min(numbers(row["intervals"])[0] for row in single)
    return (
        f"95 % intervals by profile hold the truth in {span(held, 3)} % of {sets:,.0f} data sets",
        "the nominal level, 95 %",
        f"right models are called bad in {span(worst)} % (5 % asked)",
    )


def profiles(table: Table) -> tuple[str, str, str]:
    ratios = [numbers(row["seconds over those of odefit"])[0] for row in table]
    return (
        (
            f"profiles of {len(table)} problems in "
            f"{span(numbers(row['odefit: seconds'])[0] for row in table)} s"
        ),
        f"pyPESTO takes {span(ratios)} times as long",
        f"{len(table)} problems only",
    )


def designs(table: Table) -> tuple[str, str, str]:
    gains = [float(row["efficiency relative to the published one"]) for row in table]
    less = sum(gain < 1 for gain in gains)
    return (
        f"{len(table)} designs with {span(gains, 4)} of the published efficiency",
        "designs of papers, Pyomo.DoE and PopED",
        f"{less} are worse" if less else NONE,
    )


def proofs(textbook: Table, alpha: Table) -> tuple[str, str, str]:
    closed = [row for row in textbook if row["closed"] == "yes"]
    open_ones = [row["system"] for row in textbook if row["closed"] != "yes"]
    named, mine = ("", "branch and bound, p in [1e-6, 1e-3]")
    if named not in alpha[0]:
        named, mine = "method", "branch and bound"
    baron = next(row for row in alpha if row[named].startswith("BARON"))
    tried = [row for row in alpha if row[named].lower().startswith(mine) and row["gap, %"]]
    own = min(tried, key=lambda row: numbers(row["gap, %"])[0])
    return (
        (
            f"{len(closed)} of {len(textbook)} textbook systems with noise proved to 1 %; "
            f"alpha-pinene to {own['gap, %']} % in {own['seconds']} s"
        ),
        f"BARON (paper): {baron['gap, %']} % in {baron['seconds']} s",
        listed(open_ones, "not closed"),
    )


def transcription(table: Table) -> tuple[str, str, str]:
    keys = ("SOLVED", "FOUND", "SUCCESS")
    if "IPOPT" in table[0]:
        who, (own, paper) = "IPOPT", table[:2]
        runs, theirs = own["runs"], f" of {paper['runs'].strip('*')}"
        value = {k: (first(own[k]) or 0.0, first(paper[k]) or 0.0) for k in keys}
    else:
        who, theirs = "all solvers", ""
        count = [int(row["runs"]) for row in table]
        runs = f"{sum(count):,}"
        value = {
            k: (
                sum(n * (first(row[k]) or 0.0) for n, row in zip(count, table, strict=True))
                / max(sum(count), 1),
                mean(first(row[f"paper {k}"]) or 0.0 for row in table),
            )
            for k in keys
        }
    worse = [f"{k} {a:.3g} against {b:.3g}" for k, (a, b) in value.items() if a < b]
    return (
        f"{who} finds the reference in {100 * value['FOUND'][0]:.0f} % of {runs} runs",
        f"the paper's {who}: {100 * value['FOUND'][1]:.0f} %{theirs}",
        listed(worse, "lower"),
    )


def pyomo(table: Table) -> tuple[str, str, str]:
    pairs = list(zip(table[::2], table[1::2], strict=True))

    def ratios(key: str) -> list[float]:
        return [numbers(b[key])[0] / numbers(a[key])[0] for a, b in pairs]

    return (
        f"builds discretised problems in {span(numbers(a['build, s'])[0] for a, _ in pairs)} s",
        f"pyomo.dae takes {span(ratios('build, s'))} times as long",
        f"pyomo.dae writes .nl files in {span(ratios('write .nl, s'))} of the time"
        if max(ratios("write .nl, s")) < 1
        else NONE,
    )


def algebraic(table: Table) -> tuple[str, str, str]:
    worst = max(table, key=lambda row: numbers(row["odefit: mean"])[0])
    others = sum(max(numbers(row["AMIGO2 [0, 1]"])) > 1 for row in table)
    return (
        (
            f"ten rational models: median errors below "
            f"{max(numbers(row['odefit: median'])[0] for row in table):.0e} %"
        ),
        f"ParameterEstimation.jl (paper) as small; AMIGO2's are above 1 % on {others} models",
        f"largest mean error {worst['odefit: mean']} %, on {worst['model']}",
    )


def shooting(table: Table) -> tuple[str, str, str]:
    key = program = "IPOPT, Gauss-Newton"
    if "program" in table[0]:
        table, key = [row for row in table if row["program"] == program], "over odefit"
    slow = [row["problem"] for row in table if numbers(row[key])[0] < 1]
    return (
        f"reaches the optimum on all {len(table)} chaotic and spiking problems",
        f"CasADi with IPOPT takes {span(numbers(row[key])[0] for row in table)} times as long",
        listed(slow, "IPOPT is faster on"),
    )


def separable(table: Table, linear: Table) -> tuple[str, str, str]:
    errors = [numbers(row[model])[1:] for row in linear for model in ("sir", "ltk", "gma", "ftz")]
    worse = sum(min(e) < 1 for e in errors)
    faster, own = "times faster, SLS, NLS", "SLS, ms"
    sls = table
    if "method" in table[0]:
        faster, own = "times faster", "median ms"
        sls = [row for row in table if row["method"] == "sls"]
    ratios = [x for row in table for x in numbers(row[faster])]
    return (
        f"{span(x for row in sls for x in numbers(row[own]))} ms a data set",
        f"the authors' R package takes {span(ratios)} times as long",
        f"in {worse} of {len(errors)} settings a search over all parameters has smaller errors",
    )


def sbml(table: Table) -> tuple[str, str, str]:
    cases = {row["verdict"]: int(row["cases"]) for row in table}
    return (
        f"{cases['right']} of {sum(cases.values())} cases right, {cases['wrong']} wrong",
        "the reference results of SBML's semantic test suite",
        f"{cases['refused']} refused with a reason, {cases['failed']} failed",
    )


def attacks(table: Table) -> tuple[str, str, str]:
    runs = sum(int(row["runs"]) for row in table)
    faulty = [f"{row['attack']} ({row['faults']})" for row in table if int(row["faults"])]
    return (
        f"{runs:,} attacks, {sum(int(row['faults']) for row in table)} faults",
        "kills, signals, clocks, full disks, hostile files",
        listed(faulty, "faults by"),
    )


def lateness(table: Table) -> tuple[str, str, str]:
    limits = [key for key in table[0] if key.startswith("late at")]
    late = [x for row in table for key in limits for x in numbers(row[key])]
    wrong = [row["model"] for row in table if any("too late" in row[key] for key in limits)]
    return (
        f"time limits with up to 1,000 states: {span(late)} s late",
        "2 s",
        listed(wrong, "later than that"),
    )
