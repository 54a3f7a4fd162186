"""The commands on problems: check, convert, new, simulate."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

from odefit.cli.exit_statuses import DONE
from odefit.cli.shared import (
    PROBLEM_FILE,
    add_reading,
    add_seed,
    add_times,
    add_values,
    check_writable,
    is_result,
    loaded,
    saved_result,
    write_csv,
)
from odefit.cli.unknowns import add_fix, add_unknowns, with_unknowns
from odefit.common.errors import InputError


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit check``."""
    parser.add_argument("problem", metavar=PROBLEM_FILE)
    add_reading(parser)
    add_seed(parser)
    add_unknowns(parser)


def run_check(options: argparse.Namespace) -> int:
    """Validate and describe a problem."""
    from odefit.reporting.description import print_description

    problem = with_unknowns(loaded(options.problem, options), options)
    print_description(problem, seed=options.seed)
    return DONE


def add_convert(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit convert``."""
    parser.add_argument("problem", metavar=f"{PROBLEM_FILE}|RESULT.json")
    parser.add_argument("target", metavar="NEW.toml|NEW.yaml|FOLDER|NEW.py|NEW.c|NEW.jl|NEW.m")
    add_values(
        parser,
        "--set",
        "NAME=VALUE",
        "values of unknowns in a program (default: the guesses or estimates)",
    )
    add_reading(parser)


def run_convert(options: argparse.Namespace) -> int:
    """Write a problem in another format, or a model with its estimates as a program."""
    from odefit.formats.files import YAML_SUFFIXES, save
    from odefit.reporting.programs.languages import TARGETS
    from odefit.reporting.programs.writing import write_program
    from odefit.simulation.simulations import chosen_values, values_from_text

    result = saved_result(options.problem) if is_result(options.problem) else None
    problem = loaded(options.problem, options) if result is None else result.problem
    values = values_from_text(options.set)
    program = TARGETS.get(Path(options.target).suffix.lower())
    if program is None:
        if values:
            endings = ", NAME".join(TARGETS)
            raise InputError(f"--set: only a program takes values: NAME{endings}")
        if Path(options.target).suffix.lower() not in ("", ".toml", *YAML_SUFFIXES):
            endings = ", NAME".join(TARGETS)
            raise InputError(
                f"{options.target}: expected NAME.toml (a problem file), NAME.yaml or a folder "
                f"(PEtab), or a program: NAME{endings}"
            )
        print(save(problem, options.target))
        return DONE
    target = Path(options.target)
    if result is not None and not values:
        result.save(target)
    else:
        if result is not None:
            values = {
                **dict(zip(problem.keys, map(float, result.best.vector), strict=True)),
                **values,
            }
        write_program(*chosen_values(problem, values), target)
    command = program.run.format(file=shlex.quote(target.name), stem=target.stem)
    print(target)
    print(f"compare it with odefit's own simulation: {command}", file=sys.stderr)
    return DONE


def add_new(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit new``."""
    parser.add_argument("data", metavar="DATA.csv", type=Path)
    parser.add_argument(
        "--sheet", metavar="NAME", help="the sheet to read from a workbook with several"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.toml",
        type=Path,
        help="the problem file (default: DATA.toml beside the table)",
    )
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")


def run_new(options: argparse.Namespace) -> int:
    """Write a first problem file."""
    from odefit.common.partial_files import write_atomically
    from odefit.formats.files import refuse_model
    from odefit.problem.toml.drafts import draft

    refuse_model(options.data)
    target = options.output or options.data.with_suffix(".toml")
    if target.suffix.lower() != ".toml":
        raise InputError(f"{target}: a problem file ends in .toml; write -o {target.stem}.toml")
    check_writable(target)
    _refuse_existing(target, options.force)
    made = draft(options.data, target.parent, target.stem, options.sheet)
    if made.table is not None:
        beside = target.with_name(made.table[0])
        _refuse_existing(beside, options.force)
        write_atomically(beside, made.table[1])
        made.notes.insert(0, f"{beside}: this table, with limits in place of texts, is fitted")
    write_atomically(target, made.text)
    for remark in made.remarks:
        print(f"not used: column {remark}", file=sys.stderr)
    for note in made.notes:
        print(f"note: {note}", file=sys.stderr)
    print(f"{target}: replace the placeholder in [ode], then run")
    typed = shlex.quote(str(target))
    folder = Path(os.path.realpath(target.parent))
    table = Path(os.path.realpath(options.data))
    if not table.is_relative_to(folder):
        common = os.path.commonpath([folder, table.parent])
        typed += f" --within {shlex.quote(common)}"
    print(f"  odefit check {typed}")
    print(f"  odefit fit {typed}")
    return DONE


def _refuse_existing(target: Path, force: bool) -> None:
    if target.exists() and not force:
        raise InputError(f"{target}: exists already; write --force to replace it, or -o OTHER.toml")


def add_simulate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit simulate``."""
    parser.add_argument("problem", metavar=PROBLEM_FILE)
    add_values(parser, "--set", "NAME=VALUE", "values of unknowns (default: the guesses)")
    parser.add_argument("--result", metavar="FILE", type=Path, help="take the values from a result")
    add_times(parser)
    parser.add_argument(
        "--csv", metavar="FILE", type=Path, help="write the trajectories to this file"
    )
    add_fix(parser)
    add_reading(parser)


def run_simulate(options: argparse.Namespace) -> int:
    """Print or write the trajectories."""
    from odefit.reporting.notices import opinion_sentence
    from odefit.simulation.simulations import (
        confirmed_simulation,
        times_of_all,
        values_from_text,
    )

    problem = with_unknowns(loaded(options.problem, options), options)
    check_writable(options.csv)
    times = None if options.times is None else times_of_all(options.times, problem)
    values = values_from_text(options.set)
    nodes = None
    if options.result is not None:
        result = saved_result(options.result)
        nodes = None if values else result.best.nodes  # those of the answer, unchanged
        values = {**result.best.initial, **result.best.parameters, **values}
    table, opinion = confirmed_simulation(
        problem, values, times, strict=options.result is None, nodes=nodes
    )
    if sentence := opinion_sentence(opinion):
        print(f"note: {sentence}", file=sys.stderr)
    write_csv(table, options.csv)
    return DONE
