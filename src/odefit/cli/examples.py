"""The examples at the start of the help of the program and of each command."""

from __future__ import annotations

OF_ALL = (
    ("odefit fit problem.toml --report report.html", "fit a model, and write a report"),
    ("odefit new data.csv", "begin a problem file from a table"),
    ("odefit check problem.toml", "read a problem, and say what its data can determine"),
    ("odefit profile result.json", "intervals from profile likelihoods"),
    ("odefit fit --help", "examples and options of a command"),
)
"""Examples of the whole program: commands, and what they are for."""

OF_COMMANDS = {
    "fit": (
        ("odefit fit problem.toml", "print the estimates"),
        (
            "odefit fit problem.toml --json result.json --report report.html",
            "write a result file and a report",
        ),
        ("odefit fit problem.toml --fix k2=0.1 --bounds k1=0:5", "hold k2, and bound k1"),
        ("odefit fit problem.toml --method multiple-shooting", "choose the method"),
        ("odefit fit problem.toml --time-limit 60 --jobs 2", "end after a minute"),
    ),
    "profile": (
        ("odefit profile result.json", "profile all unknowns of a result"),
        ("odefit profile result.json --only k1,k2", "profile some of them"),
        ('odefit profile result.json --expression "CL = k*V"', "profile a derived quantity"),
        ("odefit profile result.json --plot profiles.png", "draw the profiles"),
        ("odefit profile problem.toml --json result.json", "fit first, and keep both"),
    ),
    "show": (
        ("odefit show result.json", "print the summary of a result again"),
        ("odefit show result.json > summary.txt", "keep the summary in a file"),
        ("odefit show first.json | less", "read a long summary page by page"),
        ("odefit show old.json | diff - summary.txt", "compare two summaries"),
        ("odefit show result.json | head", "print the first lines"),
    ),
    "plot": (
        ("odefit plot result.json", "draw the data and the fitted curves"),
        ("odefit plot result.json -o fit.pdf --width single", "as wide as a column of a paper"),
        ("odefit plot result.json --what residuals", "draw the residuals"),
        ("odefit plot result.json --band profile", "draw bands by profile likelihood"),
        ("odefit plot result.json --scenario new.toml", "add the curves of other conditions"),
    ),
    "residuals": (
        ("odefit residuals result.json", "print the residuals of a result"),
        ("odefit residuals result.json --csv residuals.csv", "write them to a file"),
        ("odefit residuals problem.toml --set k1=0.3 k2=0.1", "residuals at given values"),
        ("odefit residuals problem.toml --fix k2=0.1", "hold an unknown, others at guesses"),
        ("odefit residuals petab.yaml --nominal", "residuals at nominal values of PEtab"),
    ),
    "predict": (
        ("odefit predict result.json --times 0:20:101", "101 times from 0 to 20"),
        ("odefit predict result.json --times 1,5,10 --level 0.9", "90 % bands at three times"),
        ("odefit predict result.json --scenario a.toml b.toml", "under other doses or inputs"),
        ('odefit predict result.json --scenario a.toml --quantity "Cmax = max(c)"', "a maximum"),
        ("odefit predict result.json --times 0:20:101 --plot bands.svg", "draw the bands"),
    ),
    "design": (
        ("odefit design result.json --times 0:20 --count 2", "the two best times to measure next"),
        (
            "odefit design problem.toml --set k1=0.7 k2=0.2 --times 0:20 --count 4",
            "plan before there are data",
        ),
        ("odefit design result.json --times 0:20 --count 2 --criterion A", "choose the criterion"),
        (
            "odefit design result.json --times 0:20 --count 2 --json design.json",
            "write it to a file",
        ),
        ("odefit design result.json --times 0:20 --count 2 --plot design.svg", "draw the design"),
    ),
    "verify": (
        ("odefit verify certificate.json", "prove all leaves of a certificate again"),
        ("odefit verify certificate.json problem.toml", "also compare it with its problem"),
        ("odefit verify certificate.json petab.yaml", "the same for a PEtab problem"),
        ("odefit verify certificate.json > verdict.txt", "keep the verdict in a file"),
        ("odefit verify region.json problem.toml", "verify a region of --certify-region"),
    ),
    "validate": (
        ("odefit validate result.json new.csv", "compare the model with new data"),
        ("odefit validate result.json new.csv --free-initial x", "fit the initial value of x"),
        ("odefit validate result.json new.csv --plot validation.svg", "draw model and data"),
        ("odefit validate result.json new.csv --json validation.json", "keep the numbers"),
        ("odefit validate result.json --cross block", "cross-validate over blocks of time"),
    ),
    "sensitivity": (
        ("odefit sensitivity result.json", "elasticities at the estimates"),
        ("odefit sensitivity problem.toml --kind morris", "screen the unknowns within bounds"),
        ("odefit sensitivity problem.toml --kind sobol", "shares of the variance"),
        (
            'odefit sensitivity result.json --of "AUC = integral(C, 0:24)"',
            "sensitivity of a quantity",
        ),
        (
            "odefit sensitivity result.json --kind sobol --of fit --csv shares.csv",
            "shares for the fit",
        ),
    ),
    "compare": (
        ("odefit compare first.json second.json", "information criteria and tests"),
        ("odefit compare first.json second.json third.json", "rank three models"),
        ("odefit compare *.json", "all results of a folder"),
        ("odefit compare models/*.json", "all results of another folder"),
        ("odefit compare *.json > comparison.txt", "keep the comparison in a file"),
    ),
    "check": (
        ("odefit check problem.toml", "read a problem, and say what its data can determine"),
        ("odefit check problem.toml --fix k2=0.1", "the same with an unknown held"),
        ("odefit check problem.toml --free k3", "the same with a known value estimated"),
        ("odefit check problem.toml --bounds k1=0:5", "the same within other bounds"),
        ("odefit check petab.yaml --nominal", "check a PEtab problem"),
    ),
    "simulate": (
        ("odefit simulate problem.toml --set k1=0.3 k2=0.1", "simulate at given values"),
        ("odefit simulate problem.toml --result result.json", "simulate at the estimates"),
        ("odefit simulate problem.toml --times 0:20:101 --set k1=0.3 k2=0.1", "choose the times"),
        ("odefit simulate problem.toml --csv curves.csv", "write curves at the guesses to a file"),
        ("odefit simulate petab.yaml --nominal", "simulate at nominal values of PEtab"),
    ),
    "explore": (
        ("odefit explore problem.toml", "move the unknowns by sliders"),
        ("odefit explore result.json", "begin at the estimates of a result"),
        ("odefit explore problem.toml --result result.json", "compare with a result"),
        ("odefit explore problem.toml --no-browser", "print the address, and open no browser"),
        ("odefit explore problem.toml --port 8765", "choose the port"),
    ),
    "new": (
        ("odefit new data.csv", "write data.toml for the columns of the table"),
        ("odefit new data.csv -o problem.toml", "choose the name of the problem file"),
        ("odefit new data.csv --force", "replace a problem file"),
        ("odefit new data.xlsx", "read a workbook"),
        ("odefit new data.xlsx --sheet 'run 2'", "read one of its sheets"),
    ),
    "convert": (
        ("odefit convert petab.yaml problem.toml", "from PEtab to a problem file"),
        ("odefit convert problem.toml folder", "from a problem file to PEtab"),
        ("odefit convert result.json model.py", "the fitted model as a Python program"),
        ("odefit convert result.json model.c", "the same in C"),
        ("odefit convert problem.toml model.m --set k1=0.3 k2=0.1", "a MATLAB program"),
    ),
    "methods": (
        ("odefit methods", "list all methods"),
        ("odefit methods automatic", "options of the default"),
        ("odefit methods multiple-shooting", "options of one method"),
        ("odefit methods transcription | less", "read a long list page by page"),
        ("odefit methods branch-and-bound > options.txt", "keep the list in a file"),
    ),
    "library": (
        ("odefit library", "list all problems"),
        ("odefit library sir", "its reference values and their source"),
        ("odefit library sir --copy here", "copy its files into the folder here"),
        ("odefit library alpha-pinene", "an example with measured data"),
        ("odefit library alpha-pinene --copy .", "copy it into this folder"),
    ),
}
"""Examples of each command, the most common first."""

INDENT, GAP, TOGETHER = 2, 2, 79
"""Columns before an example and before its purpose, and of a line with both."""


def shown(examples: tuple[tuple[str, str], ...]) -> str:
    """Return the examples as lines, with their purposes beside them or, if long, below."""
    widest = max(len(command) for command, _ in examples)
    beside = all(INDENT + widest + GAP + len(purpose) <= TOGETHER for _, purpose in examples)
    lines = ["examples:"]
    for command, purpose in examples:
        if beside:
            lines.append(f"{' ' * INDENT}{command:<{widest + GAP}}{purpose}")
        else:
            lines += [f"{' ' * INDENT}{command}", f"{' ' * 3 * INDENT}{purpose}"]
    return "\n".join(lines)
