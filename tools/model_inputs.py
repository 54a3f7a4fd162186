"""Models in SBML and Antimony, mutated."""

from __future__ import annotations

import json
import random
from pathlib import Path

import odefit
from input_kinds import (
    CANARY,
    LARGE,
    SEEDS,
    TESTS,
    Case,
    Expectation,
    WrongSuccessError,
    surroundings,
    write,
)
from input_mutations import (
    NUMBERS,
    WORDS,
    mutated_bytes,
)


def sbml_case(models: list[str], rng: random.Random, folder: Path) -> Case:
    """Change a model in SBML."""
    from petab_mutations import Original, change_model

    text = rng.choice(models)
    expected: Expectation = "any"
    how = rng.choice(("grammar", "grammar", "bytes", "bytes", "bomb"))
    content: str | bytes = text
    detail = ""
    if how == "grammar":
        original = Original("model", {"model.xml": text}, "model.xml")
        mutation = change_model(original, rng)
        if mutation is not None:
            content, detail = mutation.files["model.xml"], f"{mutation.kind}, {mutation.detail}"
            expected = "refused" if mutation.expected == "refused" else "any"
    elif how == "bytes":
        content, detail = mutated_bytes(text.encode(), rng)
    else:
        content, detail, expected = _xml_bomb(text, rng)
    surroundings(folder)
    write(folder, {"model.xml": content})

    def run() -> str:
        mapping = odefit.read_sbml(folder / "model.xml").mapping()
        if str(CANARY) in str(mapping):
            raise WrongSuccessError("a file outside the folder was read")
        return json.dumps(mapping, sort_keys=True, default=str)

    return Case(detail, expected, run)


def _xml_bomb(text: str, rng: random.Random) -> tuple[str | bytes, str, Expectation]:
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    body = text[text.index("<sbml") :]
    laughs = "".join(
        f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12)
    )  # fmt: skip
    math = '<math xmlns="http://www.w3.org/1998/Math/MathML">'
    deep = f"{math}{'<apply><minus/>' * 4000}<cn>1</cn>{'</apply>' * 4000}</math>"
    wide = f"{math}<apply><plus/>{'<cn>1</cn>' * 60_000}</apply></math>"
    bombs: list[tuple[str | bytes, str, Expectation]] = [
        (f'{head}<!DOCTYPE sbml [<!ENTITY l0 "lol">{laughs}]>{body}', "entities", "refused"),
        (f'{head}<!DOCTYPE sbml SYSTEM "../outside.csv">{body}', "an external type", "refused"),
        (f'{head}<!DOCTYPE sbml [<!ENTITY e SYSTEM "file:///etc/passwd">]>{body}', "external",
         "refused"),
        (f"{head}{'<a>' * 100_000}", "depth", "refused"),
        (f'<?xml version="1.0" encoding="UTF-16"?>{body}'.encode("utf-16"), "UTF-16", "refused"),
        (f'<?xml version="1.0" encoding="UTF-7"?>{body}', "a false encoding", "any"),
        (f'{head}<?xml-stylesheet href="http://127.0.0.1:9/x.xsl"?>{body}', "a stylesheet", "any"),
        (body.replace("<math", f"{deep}<math", 1), "deep formula", "any"),
        (body.replace("<model ", f"<model x{'y' * 200_000}='1' ", 1), "a long attribute", "any"),
        (body.replace("<listOfSpecies>", "<listOfSpecies>" + "".join(
            f'<species id="q{i}" compartment="body" initialAmount="1"/>' for i in range(5000)), 1),
         "many species", "any"),
        (body.replace("</listOfRules>", f'<rateRule variable="Km">{wide}</rateRule></listOfRules>'),
         "a wide formula", "any"),
        (body.replace(
            "<model ", '<model xmlns:xi="http://www.w3.org/2001/XInclude" ', 1).replace(
            "<listOfSpecies>", '<xi:include href="../outside.csv"/><listOfSpecies>', 1),
         "an inclusion", "any"),
        (body.replace('value="0.5"', f'value="{rng.choice(NUMBERS[:10])}"'), "a number", "any"),
        (body.replace("ka", rng.choice([w for w in WORDS if len(w) < 400 and "<" not in w])),
         "a name", "any"),
    ]  # fmt: skip
    return rng.choice(bombs)


def prepare_models(_: Path) -> list[str]:
    """Return models in SBML."""
    suite = TESTS / "data" / "petab" / "suite"
    found = sorted(suite.glob("v*/*/_model.xml"))[::6]
    texts = [path.read_text(encoding="utf-8") for path in found]
    return [(SEEDS / "model.xml").read_text(encoding="utf-8")] * len(texts) + texts


def prepare_antimony(_: Path) -> str:
    """Return a model in Antimony."""
    return (SEEDS / "model.ant").read_text(encoding="utf-8")


def antimony_case(given: str, rng: random.Random, folder: Path) -> Case:
    """Change a model in Antimony."""
    text = given
    how = rng.choice(("bytes", "tokens", "tokens", "import"))
    how = "large" if rng.random() < LARGE else how
    expected: Expectation = "any"
    content: str | bytes
    if how == "bytes":
        content, detail = mutated_bytes(text.encode(), rng)
    elif how == "tokens":
        words = text.replace(";", " ; ").replace("(", " ( ").split(" ")
        for _ in range(rng.choice((1, 2, 4))):
            i, j = rng.randrange(len(words)), rng.randrange(len(words))
            words[i] = rng.choice(
                (
                    words[j],
                    "",
                    rng.choice(WORDS)[:300],
                    "at",
                    "model",
                    "end",
                    "function",
                    "->",
                    "=>",
                    ":=",
                    "in",
                    "is",
                    "delete",
                    "'",
                    "```",
                )
            )
        content, detail = " ".join(words), "words"
    elif how == "import":
        line = 'import "../outside.ant"'
        content = rng.choice(
            (f"{line}\n{text}", f"// a \r {line}\n{text}",
             f'{text}\noral notes ```a"b```; {line}\n',
             f'{text}\noral notes """a"b"""; {line}\n', f"{text}\n{line}", f"/* */{line}\n{text}",
             f"{text}\n# a \r{line}\n", f'{text}\noral is "a//"; {line}', f"{text};{line.upper()}",
             f"{text}\nimport\n\"../outside.ant\"", f"{text}\nimport/**/\"../outside.ant\"")
        )  # fmt: skip
        expected, detail = "any", "import"
    else:
        content, detail = rng.choice(
            (
                ("x' = " + "(" * 20_000 + "x" + ")" * 20_000, "depth"),
                ("x' = " + "+".join(["x"] * 30_000) + "; x = 1", "terms"),
                ("; ".join(f"s{i}' = -s{i}; s{i} = 1" for i in range(2000)), "states"),
                (
                    "model m0()\n x' = -x; x = 1\nend\n"
                    + "".join(
                        f"model m{i}()\n A: m{i - 1}(); B: m{i - 1}();\nend\n"
                        for i in range(1, rng.choice((6, 25)))
                    ),
                    "models in each other",
                ),
                ("model a\n A: a();\nend\n", "a model in itself"),
                ("x = x + 1; x' = y; y := x; x := y", "a circle"),
                ("a" * 2_000_000, "two million characters"),
                (f"x' = -x^{'9' * 400}; x = 1e999", "numbers"),
                ("-".join(f"s{i} -> s{i + 1}; k*s{i}\n" for i in range(200)), "reactions"),
            )
        )
    surroundings(folder)
    write(folder, {"model.ant": content})

    def run() -> str:
        mapping = odefit.read_antimony(folder / "model.ant").mapping()
        if str(CANARY) in str(mapping):
            raise WrongSuccessError("a file outside the folder was read")
        return json.dumps(mapping, sort_keys=True, default=str)

    return Case(detail, expected, run)
