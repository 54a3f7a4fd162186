"""All commands: a row for each, with its functions, its help and its examples."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from odefit.cli import design, explore, fit, lists, plot, predict, profile, sensitivity, validate
from odefit.cli import problem_commands as problems
from odefit.cli import result_commands as results


@dataclass(frozen=True)
class Command:
    """A command: the functions that add its options and run it, and its part of the help."""

    name: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    help: str
    description: str
    examples: tuple[tuple[str, str], ...]  # commands and their purposes, the most common first


COMMANDS = (
    Command(
        "fit",
        fit.add_options,
        fit.run,
        "estimate the unknowns of a problem",
        "Fit a problem: estimate its unknowns, and say how far the estimates can be trusted.",
        (
            ("odefit fit problem.toml", "print the estimates"),
            (
                "odefit fit problem.toml --json result.json --report report.html",
                "write a result file and a report",
            ),
            ("odefit fit problem.toml --fix k2=0.1 --bounds k1=0:5", "hold k2, and bound k1"),
            ("odefit fit problem.toml --method multiple-shooting", "choose the method"),
            ("odefit fit problem.toml --time-limit 60 --jobs 2", "end after a minute"),
        ),
    ),
    Command(
        "profile",
        profile.add_options,
        profile.run,
        "profile likelihoods: intervals without linearisation",
        "Profile likelihoods of the unknowns of a result, or of a problem, which is fitted first.",
        (
            ("odefit profile result.json", "profile all unknowns of a result"),
            ("odefit profile result.json --only k1,k2", "profile some of them"),
            ('odefit profile result.json --expression "CL = k*V"', "profile a derived quantity"),
            ("odefit profile result.json --plot profiles.png", "draw the profiles"),
            ("odefit profile problem.toml --json result.json", "fit first, and keep both"),
        ),
    ),
    Command(
        "show",
        results.add_show,
        results.run_show,
        "print a result again",
        "Print the summary of a result, as 'odefit fit' did.",
        (
            ("odefit show result.json", "print the summary of a result again"),
            ("odefit show result.json > summary.txt", "keep the summary in a file"),
            ("odefit show first.json | less", "read a long summary page by page"),
            ("odefit show old.json | diff - summary.txt", "compare two summaries"),
            ("odefit show result.json | head", "print the first lines"),
        ),
    ),
    Command(
        "plot",
        plot.add_options,
        plot.run,
        "draw a result",
        plot.DESCRIPTION,
        (
            ("odefit plot result.json", "draw the data and the fitted curves"),
            ("odefit plot result.json -o fit.pdf --width single", "as wide as a column of a paper"),
            ("odefit plot result.json --what residuals", "draw the residuals"),
            ("odefit plot result.json --band profile", "draw bands by profile likelihood"),
            ("odefit plot result.json --scenario new.toml", "add the curves of other conditions"),
        ),
    ),
    Command(
        "residuals",
        results.add_residuals,
        results.run_residuals,
        "residuals as a table",
        "Print a row for each measurement as CSV: measured, predicted, residual, weighted "
        "residual and standard deviation; of a result, or of a problem at given values.",
        (
            ("odefit residuals result.json", "print the residuals of a result"),
            ("odefit residuals result.json --csv residuals.csv", "write them to a file"),
            ("odefit residuals problem.toml --set k1=0.3 k2=0.1", "residuals at given values"),
            ("odefit residuals problem.toml --fix k2=0.1", "hold an unknown, others at guesses"),
            ("odefit residuals petab.yaml --nominal", "residuals at nominal values of PEtab"),
        ),
    ),
    Command(
        "predict",
        predict.add_options,
        predict.run,
        "predictions with confidence and prediction bands",
        predict.DESCRIPTION,
        (
            ("odefit predict result.json --times 0:20:101", "101 times from 0 to 20"),
            ("odefit predict result.json --times 1,5,10 --level 0.9", "90 % bands at three times"),
            ("odefit predict result.json --scenario a.toml b.toml", "under other doses or inputs"),
            (
                'odefit predict result.json --scenario a.toml --quantity "Cmax = max(c)"',
                "a maximum",
            ),
            ("odefit predict result.json --times 0:20:101 --plot bands.svg", "draw the bands"),
        ),
    ),
    Command(
        "design",
        design.add_options,
        design.run,
        "which measurements to make next",
        design.DESCRIPTION,
        (
            (
                "odefit design result.json --times 0:20 --count 2",
                "the two best times to measure next",
            ),
            (
                "odefit design problem.toml --set k1=0.7 k2=0.2 --times 0:20 --count 4",
                "plan before there are data",
            ),
            (
                "odefit design result.json --times 0:20 --count 2 --criterion A",
                "choose the criterion",
            ),
            (
                "odefit design result.json --times 0:20 --count 2 --json design.json",
                "write it to a file",
            ),
            (
                "odefit design result.json --times 0:20 --count 2 --plot design.svg",
                "draw the design",
            ),
        ),
    ),
    Command(
        "validate",
        validate.add_options,
        validate.run,
        "compare a result with new measurements",
        validate.DESCRIPTION,
        (
            ("odefit validate result.json new.csv", "compare the model with new data"),
            ("odefit validate result.json new.csv --free-initial x", "fit the initial value of x"),
            ("odefit validate result.json new.csv --plot validation.svg", "draw model and data"),
            ("odefit validate result.json new.csv --json validation.json", "keep the numbers"),
            ("odefit validate result.json --cross block", "cross-validate over blocks of time"),
        ),
    ),
    Command(
        "verify",
        results.add_verify,
        results.run_verify,
        "verify a certificate",
        results.VERIFICATION,
        (
            ("odefit verify certificate.json", "prove all leaves of a certificate again"),
            ("odefit verify certificate.json problem.toml", "also compare it with its problem"),
            ("odefit verify certificate.json petab.yaml --jobs 4", "by four processes"),
            ("odefit verify certificate.json > verdict.txt", "keep the verdict in a file"),
            ("odefit verify region.json problem.toml", "verify a region of --certify-region"),
        ),
    ),
    Command(
        "sensitivity",
        sensitivity.add_options,
        sensitivity.run,
        "which unknowns outputs depend on",
        sensitivity.DESCRIPTION,
        (
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
    ),
    Command(
        "compare",
        results.add_compare,
        results.run_compare,
        "compare models of the same data",
        "Compare results of the same data: information criteria, Akaike weights, and "
        "tests of nested models.",
        (
            ("odefit compare first.json second.json", "information criteria and tests"),
            ("odefit compare first.json second.json third.json", "rank three models"),
            ("odefit compare *.json", "all results of a folder"),
            ("odefit compare models/*.json", "all results of another folder"),
            ("odefit compare *.json > comparison.txt", "keep the comparison in a file"),
        ),
    ),
    Command(
        "check",
        problems.add_check,
        problems.run_check,
        "report mistakes in a problem, and describe it",
        "Read a problem, report all mistakes, describe it, and say what its data can determine.",
        (
            ("odefit check problem.toml", "read a problem, and say what its data can determine"),
            ("odefit check problem.toml --fix k2=0.1", "the same with an unknown held"),
            ("odefit check problem.toml --free k3", "the same with a known value estimated"),
            ("odefit check problem.toml --bounds k1=0:5", "the same within other bounds"),
            ("odefit check petab.yaml --nominal", "check a PEtab problem"),
        ),
    ),
    Command(
        "simulate",
        problems.add_simulate,
        problems.run_simulate,
        "simulate a problem",
        "Simulate a problem, and print its states and observables as CSV.",
        (
            ("odefit simulate problem.toml --set k1=0.3 k2=0.1", "simulate at given values"),
            ("odefit simulate problem.toml --result result.json", "simulate at the estimates"),
            (
                "odefit simulate problem.toml --times 0:20:101 --set k1=0.3 k2=0.1",
                "choose the times",
            ),
            (
                "odefit simulate problem.toml --csv curves.csv",
                "write curves at the guesses to a file",
            ),
            ("odefit simulate petab.yaml --nominal", "simulate at nominal values of PEtab"),
        ),
    ),
    Command(
        "explore",
        explore.add_options,
        explore.run,
        "sliders in the browser",
        "Move the unknowns of a problem by sliders in the browser, and see the curves move. Only "
        "this user on this machine can open the page. Ctrl-C ends it.",
        (
            ("odefit explore problem.toml", "move the unknowns by sliders"),
            ("odefit explore result.json", "begin at the estimates of a result"),
            ("odefit explore problem.toml --result result.json", "compare with a result"),
            ("odefit explore problem.toml --no-browser", "print the address, and open no browser"),
            ("odefit explore problem.toml --port 8765", "choose the port"),
        ),
    ),
    Command(
        "new",
        problems.add_new,
        problems.run_new,
        "write a first problem file for a CSV table",
        "Write a commented problem file for the columns of a CSV table, with a placeholder for "
        "the model that runs at once.",
        (
            ("odefit new data.csv", "write data.toml for the columns of the table"),
            ("odefit new data.csv -o problem.toml", "choose the name of the problem file"),
            ("odefit new data.csv --force", "replace a problem file"),
            ("odefit new data.xlsx", "read a workbook"),
            ("odefit new data.xlsx --sheet 'run 2'", "read one of its sheets"),
        ),
    ),
    Command(
        "convert",
        problems.add_convert,
        problems.run_convert,
        "write a problem in another format, or a fitted model as a program",
        "Write a problem as a problem file with CSV tables, or as PEtab, version 2; or a model "
        "with its estimates as a stand-alone program in Python, C, Julia or MATLAB.",
        (
            ("odefit convert petab.yaml problem.toml", "from PEtab to a problem file"),
            ("odefit convert problem.toml folder", "from a problem file to PEtab"),
            ("odefit convert result.json model.py", "the fitted model as a Python program"),
            ("odefit convert result.json model.c", "the same in C"),
            ("odefit convert problem.toml model.m --set k1=0.3 k2=0.1", "a MATLAB program"),
        ),
    ),
    Command(
        "methods",
        lists.add_methods,
        lists.run_methods,
        "list the methods, or the options of one",
        "List the methods; with a name, all options of that method, which "
        "'odefit fit --method NAME --set OPTION=VALUE' sets.",
        (
            ("odefit methods", "list all methods"),
            ("odefit methods automatic", "options of the default"),
            ("odefit methods multiple-shooting", "options of one method"),
            ("odefit methods transcription | less", "read a long list page by page"),
            ("odefit methods branch-and-bound > options.txt", "keep the list in a file"),
        ),
    ),
    Command(
        "library",
        lists.add_library,
        lists.run_library,
        "list the example problems, or describe one",
        "List the problems of the library, which come with odefit; with a name, describe one: "
        "the source of its data, and its known values.",
        (
            ("odefit library", "list all problems"),
            ("odefit library sir", "its reference values and their source"),
            ("odefit library sir --copy here", "copy its files into the folder here"),
            ("odefit library alpha-pinene", "an example with measured data"),
            ("odefit library alpha-pinene --copy .", "copy it into this folder"),
        ),
    ),
)
"""All commands in the order of the help."""
