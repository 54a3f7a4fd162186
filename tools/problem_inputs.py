"""Mutations of problem files and their tables, which users write by hand."""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path

import odefit
from input_kinds import (
    LARGE,
    PROBLEMS,
    SEEDS,
    Case,
    Expectation,
    command,
    loaded,
    meaning,
    seed_texts,
    surroundings,
    write,
)
from input_mutations import (
    ESCAPES,
    PLACES,
    WORDS,
    as_toml,
    edited,
    mutated_bytes,
    mutated_rows,
    mutated_tree,
)


def prepare_problems(_: Path) -> dict[str, str]:
    """Return the meaning of each problem."""
    return {name: meaning(odefit.load(SEEDS / f"{name}.toml")) for name in PROBLEMS}


def problem_case(references: dict[str, str], rng: random.Random, folder: Path) -> Case:
    """Change a problem file."""
    name = rng.choice([*PROBLEMS])
    files = seed_texts(name)
    file = f"{name}.toml"
    text = files[file]
    expected: Expectation = "any"
    how = rng.choice(("tree", "tree", "tree", "bytes", "bytes", "same", "noticed", "place"))
    how = "size" if rng.random() < LARGE else how
    if how == "tree":
        tree, detail = mutated_tree(tomllib.loads(text), rng)
        changed = as_toml(tree)
    elif how == "bytes":
        raw, detail = mutated_bytes(text.encode(), rng)
        write(folder, {**files, file: raw})
        return Case(detail, "any", lambda: loaded(folder / file), references[name])
    elif how == "same":
        detail, changed = rng.choice(
            (
                ("line ends", text.replace("\n", "\r\n")),
                ("a comment", f"# {rng.choice(WORDS[:6])}\n{text}"),
                ("empty lines", text.replace("\n", "\n\n")),
                ("blanks", text.replace(" = ", "   =  ")),
                ("a byte order mark", f"\ufeff{text}"),
                ("all inline", as_toml(tomllib.loads(text))),
            )
        )
        expected = "same"
    elif how == "noticed":
        lines = text.split("\n")
        keyed = [i for i, line in enumerate(lines) if " = " in line and "description" not in line]
        i = rng.choice([k for k in keyed if "time_unit" not in lines[k]])
        key, _, rest = lines[i].partition(" = ")
        what = rng.choice(("left out", "misspelt", "twice", "number"))
        number = next((c for c in rest if c.isdigit() and c != "0"), "")
        if what == "number" and number and "name" not in key:
            lines[i] = f"{key} = {rest.replace(number, '0' if number != '1' else '7', 1)}"
        elif what == "twice":
            lines.insert(i, lines[i])
        elif what == "misspelt":
            quote = '"' if key.endswith('"') else ""
            lines[i] = f"{key.removesuffix(quote)}x{quote} = {rest}"
        else:
            del lines[i]
        expected, detail, changed = "noticed", f"{key} {what}", "\n".join(lines)
        if key in ("name", "scale", "t0", "cell", "bind", "turn") or "TIME" in rest:
            expected = "any"  # another name, or the default
    elif how == "place":
        place = rng.choice(PLACES)
        old = PROBLEMS[name][0]
        changed, expected = text.replace(f'"{old}"', json.dumps(place), 1), "refused"
        detail = f"data = {place[:40]!r}"
    else:
        changed, detail = _large(text, rng)
    surroundings(folder)
    write(folder, {**files, file: changed})
    return Case(detail, expected, lambda: loaded(folder / file), references[name])


def _large(text: str, rng: random.Random) -> tuple[str, str]:
    """Return a problem file with a large request, and a description of it."""
    return rng.choice(
        (
            lambda: (text + "[x]\n" * 20_000, "tables"),
            lambda: (text + "\n[a" + ".a" * 5000 + "]\n", "dotted table"),
            lambda: ("a" + ".a" * 5000 + " = 1\n" + text, "dotted key"),
            lambda: (text + "\n[[experiment.event]]\ntime = 0\nevery = 1e-9\nuntil = 1\n"
                     "assign = { x = 1 }\n", "a billion repetitions"),
            lambda: (text + f"\n[[experiment.event]]\ntimes = {list(range(200_000))}\n"
                     "assign = { x = 1 }\n", "many times"),
            lambda: (text.replace("[ode]", '[ode]\n"w[1:1000000000]" = "-w[i]"'), "a long array"),
            lambda: (text.replace("[ode]", '[ode]\n"w[1:100,1:100,1:100]" = "-1"'), "an array"),
            lambda: (text.replace("[ode]", "[ode]\n" + "".join(
                f's{i} = "-s{i}"\n' for i in range(3000))), "many states"),
            lambda: (text.replace("[parameters]", "[parameters]\n" + "".join(
                f"q{i} = {{}}\n" for i in range(5000))), "many parameters"),
            lambda: (text.replace("[ode]", '[functions]\n"f0(x)" = "x*x"\n' + "".join(
                f'"f{i}(x)" = "f{i - 1}(f{i - 1}(x))"\n' for i in range(1, 40)) + "[ode]\n"
                'w = "f39(w)"'), "functions of functions"),
            lambda: (text.replace("[ode]", '[definitions]\nd0 = "t"\n' + "".join(
                f'd{i} = "d{i - 1} + d{i - 1}"\n' for i in range(1, 60)) + '[ode]\nw = "d59"'),
                "definitions that double"),
            lambda: (text + "".join(f'\n[[experiment]]\nname = "e{i}"\ndata = "decay.csv"\n'
                                    for i in range(300)), "many experiments"),
            lambda: (text + "#" * 11_000_000, "eleven megabytes"),
            lambda: (text.replace("[ode]", f'[ode]\nw = "{"+".join(["w"] * 45_000)}"'), "terms"),
            lambda: (text.replace("[ode]", f'[ode]\nw = "{"*".join(["w"] * 3000)}"'), "factors"),
            lambda: (text.replace("[ode]", f'[ode]\nw = "{"sin(" * 99}w{")" * 99}"'), "depth"),
        )
    )()  # fmt: skip


def table_case(references: dict[str, str], rng: random.Random, folder: Path) -> Case:
    """Change a table of measurements."""
    return _table_case(rng.choice(("decay", "full", "full", "reactions")), references, rng, folder)


def doses_case(references: dict[str, str], rng: random.Random, folder: Path) -> Case:
    """Change a long table with doses."""
    return _table_case("doses", references, rng, folder)


def _table_case(name: str, references: dict[str, str], rng: random.Random, folder: Path) -> Case:
    files: dict[str, str | bytes] = {**seed_texts(name)}
    file = rng.choice(PROBLEMS[name])
    text = str(files[file])
    expected: Expectation = "any"
    how = rng.choice(("rows", "rows", "rows", "bytes", "same", "noticed"))
    how = "large" if rng.random() < LARGE else how
    if how == "rows":
        files[file], detail = mutated_rows(text, rng)
    elif how == "bytes":
        files[file], detail = mutated_bytes(text.encode(), rng)
    elif how == "same":
        lines = text.rstrip("\n").split("\n")
        delimiter = ";" if ";" in text else ","
        first = next(i for i, line in enumerate(lines) if not line.startswith("#"))
        order = [*range(len(lines[first].split(delimiter)))]
        rng.shuffle(order)
        cells = [line.split(delimiter) for line in lines[first:]]
        shuffled = "\n".join(delimiter.join(row[i] for i in order) for row in cells)
        detail, files[file] = rng.choice(
            (
                ("line ends", text.replace("\n", "\r\n")),
                ("empty lines", f"{text}\n\n"),
                ("columns in another order", shuffled),
                ("a byte order mark", f"\ufeff{text}"),
                ("a comment", f"# {rng.choice(WORDS[:6])}\n{text}"),
            )
        )
        expected = "same"
    elif how == "noticed":
        rows = text.rstrip("\n").split("\n")
        i = rng.randrange(2 if rows[0].startswith("#") else 1, len(rows))
        what = rng.choice(("left out", "cell"))
        if what == "left out":
            del rows[i]
            expected = "noticed"
        else:
            delimiter = ";" if ";" in text else ","
            cells_of = rows[i].split(delimiter)
            j = rng.choice([j for j, c in enumerate(cells_of) if c not in ("", ".")])
            old = float(cells_of[j]) if name != "doses" or j else 0.0
            new = float(edited(old, rng)) if j else 77.25
            cells_of[j] = repr(new)
            rows[i] = delimiter.join(cells_of)
            what = f"cell {j}: {old} becomes {new}"
            expected = "any" if new == old else "noticed"
        detail, files[file] = f"row {i} {what}", "\n".join(rows) + "\n"
        if name == "doses":
            expected = "any"
    else:
        lines = text.rstrip("\n").split("\n")
        detail, files[file] = rng.choice(
            (
                ("a long line", text + "1," * 300_000),
                ("many rows", text + f"{lines[-1]}\n" * 20_000),
                ("many names", ",".join(f"c{i}" for i in range(20_000)) + "\n" + text),
                ("one cell", '"' + "\n" * 150_000),
                ("comments", "#\n" * 100_000 + text),
            )
        )
    surroundings(folder)
    write(folder, files)
    return Case(detail, expected, lambda: loaded(folder / f"{name}.toml"), references[name])


def check_case(references: dict[str, str], rng: random.Random, folder: Path) -> Case:
    """Change a small problem file or its table, and describe it."""
    name = rng.choice(("decay", "reactions", "doses"))
    files: dict[str, str | bytes] = {**seed_texts(name)}
    if rng.random() < 0.7:
        tree, detail = mutated_tree(tomllib.loads(str(files[f"{name}.toml"])), rng)
        if rng.random() < 0.4:
            place = rng.choice(("name", "description", "time_unit"))
            tree[place] = rng.choice((*WORDS, *ESCAPES))
        files[f"{name}.toml"] = as_toml(tree)
    else:
        file = PROBLEMS[name][0]
        files[file], detail = mutated_rows(str(files[file]), rng)
    surroundings(folder)
    write(folder, files)
    return Case(detail, "any", lambda: command("check", str(folder / f"{name}.toml")))


def new_case(_: None, rng: random.Random, folder: Path) -> Case:
    """Change a table from which a first problem file is made."""
    name = rng.choice(("decay.csv", "one.csv", "two.csv", "enzyme.csv", "doses.csv"))
    text = (SEEDS / name).read_text(encoding="utf-8")
    content, detail = (
        mutated_bytes(text.encode(), rng) if rng.random() < 0.3 else mutated_rows(text, rng)
    )
    write(folder, {"table.csv": content})

    def run() -> str:
        command("new", str(folder / "table.csv"))
        return loaded(folder / "table.toml")

    return Case(detail, "any", run)


def guesses_case(_: None, rng: random.Random, folder: Path) -> Case:
    """Change a problem file while its sliders are open, and then write guesses to it."""
    from odefit.explorer.guess_writing import carry_out, propose

    name = rng.choice(("decay", "full", "reactions"))
    files: dict[str, str | bytes] = {**seed_texts(name)}
    file = f"{name}.toml"
    problem = odefit.load(SEEDS / file)
    if rng.random() < 0.6:
        tree, detail = mutated_tree(tomllib.loads(str(files[file])), rng)
        files[file] = as_toml(tree)
    else:
        files[file], detail = mutated_bytes(str(files[file]).encode(), rng)
    surroundings(folder)
    write(folder, files)
    values = {u.key: min(max(1.5, u.parameter.lower), u.parameter.upper) for u in problem.unknowns}

    def run() -> str:
        carry_out(propose(folder / file, problem, values))
        return loaded(folder / file)

    return Case(detail, "any", run)
