"""Mutations of PEtab problems: one change of their files each, with the expected outcome.

``petab_judge.py`` judges the outcomes, ``mutated_inputs.py`` runs the mutations. Expectations:

- ``same``: the change means nothing (the order of rows, line ends), and the problem is the same;
- ``refused``: an InputError, for an unknown identifier or a column that occurs twice;
- ``noticed``: an InputError, another problem, or a note or warning that says so;
- ``any``: one of these, or no effect (a name, a unit, an attribute without a meaning here).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np

Expectation = Literal["same", "refused", "noticed", "any"]
Files = dict[str, str]

NEUTRAL_COLUMNS = frozenset(
    "observableName conditionName parameterName datasetId replicateId modelId experimentName "
    "observableUnit".split()
)
"""Columns without an effect on the problem."""

DEFAULTS = {
    "observableTransformation": "lin", "noiseDistribution": "normal", "parameterScale": "lin",
    "objectivePriorType": "", "priorDistribution": "",
}  # fmt: skip
"""The values of optional columns that are missing."""

NEUTRAL_TAGS = frozenset(
    "annotation notes unit listOfUnits unitDefinition listOfUnitDefinitions listOfModifiers "
    "modifierSpeciesReference".split()
)
NEUTRAL_ATTRIBUTES = frozenset(
    "metaid name sboTerm units substanceUnits timeUnits volumeUnits areaUnits lengthUnits "
    "extentUnits constant reversible fast boundaryCondition charge type encoding definitionURL "
    "spatialDimensions persistent useValuesFromTriggerTime substance hasOnlySubstanceUnits "
    "initialValue xmlns".split()
)

JUNK_NUMBERS = ("nan", "inf", "-inf", "1e400", "1,5", "0x10", "1_000", "abc", "", "1-", "1e", "é")


@dataclass(frozen=True)
class Mutation:
    """A change of the files of a problem.

    Attributes
    ----------
    kind
        The kind of the change.
    detail
        Its place and its content.
    files
        The changed texts by name.
    expected
        The expected outcome.
    """

    kind: str
    detail: str
    files: Files
    expected: Expectation


@dataclass(frozen=True)
class Original:
    """A problem before its mutation: its files, and the name of its YAML file."""

    name: str
    files: Files
    main: str

    @property
    def tables(self) -> list[str]:
        """Names of the tables in tab-separated values."""
        return [name for name in self.files if name.endswith(".tsv")]

    @property
    def models(self) -> list[str]:
        """Names of the models."""
        return [name for name in self.files if name.endswith(".xml")]

    def mentioned(self, word: str, apart: str) -> bool:
        """Whether a word occurs in another file than `apart`."""
        pattern = re.compile(rf"\b{re.escape(word)}\b")
        return any(pattern.search(text) for name, text in self.files.items() if name != apart)


def originals(folder: Path) -> Iterator[Original]:
    """Return the PEtab problems in a folder and in its subfolders."""
    for main in sorted([*folder.glob("*.yaml"), *folder.glob("*/*.yaml")]):
        if main.stem.endswith("_solution"):
            continue
        text = main.read_text(encoding="utf-8")
        near = [p for p in main.parent.iterdir() if p.suffix in {".tsv", ".xml"} and p.name in text]
        files = {p.name: p.read_text(encoding="utf-8") for p in sorted(near)}
        # Tables of figures are not read.
        files = {name: given for name, given in files.items() if "plotId" not in given[:20]}
        yield Original(main.parent.name, {main.name: text, **files}, main.name)


def rows_of(text: str) -> list[list[str]]:
    """Return the cells of a table."""
    return [line.rstrip("\r").split("\t") for line in text.split("\n") if line.strip()]


def text_of(rows: list[list[str]]) -> str:
    """Return a table as a text."""
    return "".join("\t".join(row) + "\n" for row in rows)


def is_measurements(rows: list[list[str]]) -> bool:
    """Return whether a table has measurements."""
    return "measurement" in rows[0]


def drop_row(original: Original, rng: random.Random) -> Mutation:
    """Leave a row out."""
    name, rows = _table(original, rng)
    at = rng.randrange(1, len(rows))
    used = is_measurements(rows) or original.mentioned(rows[at][0], name)
    used = used and "petabEntityId" not in rows[0]
    dropped = [row for i, row in enumerate(rows) if i != at]
    return _tabled(
        original, name, dropped, "row left out", rows[at][0], "noticed" if used else "any"
    )


def double_row(original: Original, rng: random.Random) -> Mutation:
    """Repeat a row: a replicate in measurements, a mistake elsewhere."""
    name, rows = _table(original, rng)
    at = rng.randrange(1, len(rows))
    expected: Expectation = "refused"
    if is_measurements(rows):
        expected = "noticed"
    elif rows[0][0] in {"conditionId", "experimentId"} and "targetId" not in rows[0]:
        expected = "refused" if "time" not in rows[0] else "any"  # the same period once more
    doubled = [*rows[: at + 1], rows[at], *rows[at + 1 :]]
    return _tabled(original, name, doubled, "row repeated", rows[at][0], expected)


def change_identifier(original: Original, rng: random.Random) -> Mutation | None:
    """Misspell an identifier."""
    name, rows = _table(original, rng)
    columns = [i for i, c in enumerate(rows[0]) if c.endswith("Id") and c not in NEUTRAL_COLUMNS]
    at, column = rng.randrange(1, len(rows)), rng.choice(columns)
    if column >= len(rows[at]) or not rows[at][column]:
        return None
    old = rows[at][column]
    changed = [list(row) for row in rows]
    changed[at][column] = f"{old}x"
    used = is_measurements(rows) or original.mentioned(old, name)
    used = used and "petabEntityId" not in rows[0]
    expected: Expectation = "noticed" if used else "any"
    if is_measurements(rows) and not old.startswith("inf"):
        expected = "refused"
    detail = f"{rows[0][column]}: {old} becomes {old}x"
    return _tabled(original, name, changed, "identifier misspelt", detail, expected)


def change_number(original: Original, rng: random.Random) -> Mutation | None:
    """Give a cell another number, or a text that is not a number."""
    name, rows = _table(original, rng)
    cells = [
        (i, j)
        for i, row in enumerate(rows[1:], 1)
        for j, cell in enumerate(row)
        if np.isfinite(_number(cell) or 0.0)
        and _number(cell) is not None
        and rows[0][j] not in NEUTRAL_COLUMNS
    ]
    if not cells:
        return None
    i, j = rng.choice(cells)
    old = float(rows[i][j])
    junk = rng.random() < 0.6
    new = rng.choice(JUNK_NUMBERS) if junk else repr(old * 1.5 + 1.0)
    changed = [list(row) for row in rows]
    changed[i][j] = new
    detail = f"{rows[0][j]} of {rows[i][0]}: {rows[i][j]} becomes {new!r}"
    kind = "number replaced by junk" if junk else "number changed"
    target = rows[i][rows[0].index("targetId")] if "targetId" in rows[0] else rows[0][j]
    sizes = _is_compartment(original, target)
    return _tabled(original, name, changed, kind, detail, "any" if sizes else "noticed")


def change_column(original: Original, rng: random.Random) -> Mutation:
    """Leave a column out, misspell its name, or repeat it."""
    name, rows = _table(original, rng)
    column = rng.randrange(len(rows[0]))
    title = rows[0][column]
    idle = {"", DEFAULTS.get(title, "")}
    neutral = title in NEUTRAL_COLUMNS or all(_cell(row, column) in idle for row in rows[1:])
    neutral = neutral or "petabEntityId" in rows[0]  # annotations, and names for other files
    neutral = neutral or _is_compartment(original, title)  # its size can cancel
    what = rng.choice(("left out", "misspelt", "repeated"))
    expected: Expectation = "any" if neutral else "noticed"
    if what == "left out":
        changed = [[c for j, c in enumerate(row) if j != column] for row in rows]
    elif what == "misspelt":
        changed = [list(row) for row in rows]
        changed[0][column] = title[:-1]
    else:
        changed = [[*row, *[""] * (len(rows[0]) - len(row)), _cell(row, column)] for row in rows]
        expected = "refused"
    return _tabled(original, name, changed, f"column {what}", title, expected)


def reorder(original: Original, rng: random.Random) -> Mutation:
    """Change the order of rows or columns."""
    name, rows = _table(original, rng)
    if rng.random() < 0.5:
        order = list(range(len(rows[0])))
        rng.shuffle(order)
        changed = [[_cell(row, j) for j in order] for row in rows]
        return _tabled(original, name, changed, "columns in another order", "", "same")
    body = rows[1:]
    rng.shuffle(body)
    return _tabled(original, name, [rows[0], *body], "rows in another order", "", "same")


def reformat(original: Original, rng: random.Random) -> Mutation:
    """Change line ends, blanks around cells, empty lines."""
    name, rows = _table(original, rng)
    text = text_of(rows)
    how, changed = rng.choice(
        [
            ("line ends of Windows", text.replace("\n", "\r\n")),
            ("a byte order mark", f"\ufeff{text}"),
            ("no line end at the end", text.rstrip("\n")),
            ("empty lines", f"{text}\n\n"),
            ("blanks around cells", text.replace("\t", " \t ")),
        ]
    )
    return Mutation("table written otherwise", f"{name}: {how}", {**original.files, name: changed},
                    "same")  # fmt: skip


def change_yaml(original: Original, rng: random.Random) -> Mutation | None:
    """Leave out, misspell, repeat or replace a line of the YAML file."""
    lines = original.files[original.main].split("\n")
    keyed = [i for i, line in enumerate(lines) if re.match(r"[\s-]*\w+:", line)]
    listed = [i for i, line in enumerate(lines) if re.match(r"\s*- \S+\.(tsv|xml)\s*$", line)]
    what = rng.choice(("left out", "misspelt", "repeated", "value", "file", "file repeated"))
    at = rng.choice(listed if what.startswith("file") and listed else keyed)
    line = lines[at]
    idle = r"visualization|simulation_files|^extensions|description|name:|model_0:|: \[\]"
    neutral = bool(re.search(idle, line))
    expected: Expectation = "any" if neutral else "noticed"
    changed = list(lines)
    if what == "left out":
        del changed[at]
    elif what == "misspelt":
        changed[at] = re.sub(r"(\w+):", r"\1x:", line, count=1)
    elif what in {"repeated", "file repeated"}:
        changed.insert(at, line)
        expected = "refused" if what == "repeated" else "any"
    elif what == "file":
        changed[at] = re.sub(r"\.(tsv|xml)", r"x.\1", line)
        expected = "any" if neutral else "refused"
    else:
        junk = rng.choice(
            ("3", "[]", "{}", "null", "text", "[1, [2]]", "!!python/name:os.system ''")
        )
        changed[at] = re.sub(r":.*", f": {junk}", line)
        if changed[at] == line:
            return None
    detail = f"{line.strip()!r} {what}"
    files = {**original.files, original.main: "\n".join(changed)}
    neighbours = _visualization(lines, at)
    return Mutation(f"YAML: {what}", detail, files, "any" if neighbours else expected)


def _visualization(lines: list[str], at: int) -> bool:
    """Return whether a line is in a list of visualization files, which nothing reads."""
    before = [line for line in lines[: at + 1] if re.match(r"[\s-]*\w+:", line)]
    return bool(before) and "visualization" in before[-1]


def change_model(original: Original, rng: random.Random) -> Mutation | None:
    """Change an element, an attribute or a formula of the model."""
    name = rng.choice(original.models)
    text = original.files[name]
    root = ElementTree.fromstring(text)
    _register(text)
    inside = _in_notes(root)
    every = [(parent, child) for parent in root.iter() for child in parent if child not in inside]
    parent, element = rng.choice(every)
    tag = _local(element.tag)
    what = rng.choice(("element left out", "element repeated", "attribute left out",
                       "attribute misspelt", "number changed", "identifier misspelt",
                       "formula changed", "name unknown"))  # fmt: skip
    expected: Expectation = "any" if tag in NEUTRAL_TAGS else "noticed"
    detail = f"<{tag} {element.get('id') or element.get('species') or ''}>"
    if what == "element left out":
        if not _matters(element, tag, original, name):
            expected = "any"
        parent.remove(element)
    elif what == "element repeated":
        parent.append(element)
        if tag.startswith("listOf") or not _matters(element, tag, original, name):
            expected = "any"
    elif what in {"formula changed", "name unknown"}:
        return _change_formula(original, name, root, what, rng)
    else:
        changed = _change_attribute(element, what, original, rng)
        if changed is None:
            return None
        attribute, expected = changed
        detail += f" {attribute}"
        if tag in NEUTRAL_TAGS and expected != "refused":
            expected = "any"
    files = {**original.files, name: ElementTree.tostring(root, encoding="unicode")}
    return Mutation(f"SBML: {what}", detail, files, expected)


def _matters(element: Any, tag: str, original: Original, name: str) -> bool:
    """Whether leaving an element out must have an effect."""
    identifier = element.get("id", "")
    if tag in {"parameter", "compartment"}:
        body = original.files[name]
        used = len(re.findall(rf"\b{re.escape(identifier)}\b", body)) > 1
        return used and not original.mentioned(identifier, name)
    return tag in {"reaction", "species", "kineticLaw", "assignmentRule", "rateRule", "event",
                   "functionDefinition", "eventAssignment", "trigger", "math"} or (
        tag == "speciesReference")  # fmt: skip


def _change_attribute(
    element: Any, what: str, original: Original, rng: random.Random
) -> tuple[str, Expectation] | None:
    attributes = [a for a in element.attrib if not a.startswith("{")]
    if what == "number changed":
        attributes = [
            a
            for a in attributes
            if _number(element.get(a)) is not None and a not in {"level", "version"}
        ]
    elif what == "identifier misspelt":
        named = ("id", "species", "compartment", "variable", "symbol")
        attributes = [a for a in attributes if a in named]
    if not attributes:
        return None
    attribute = rng.choice(attributes)
    value = element.attrib.pop(attribute)
    given = element.get("id") or value
    tables = any(re.search(rf"\b{re.escape(given)}\b", original.files[t]) for t in original.tables)
    expected: Expectation = "noticed"
    target = re.compile(rf'(symbol|variable)="{re.escape(given)}"')
    replaced = any(target.search(original.files[m]) for m in original.models)
    if attribute in NEUTRAL_ATTRIBUTES or tables or attribute == "id" or replaced:
        expected = "any"
    if what == "attribute misspelt":
        element.set(f"{attribute}x", value)
        expected = "refused"
    elif what == "number changed":
        changed = float(value) * 1.5 + 1.0
        element.set(attribute, repr(changed))
        # Tables, initial assignments and rules may override a value, or nothing may need it.
        needed = any(
            len(re.findall(rf"\b{re.escape(given)}\b", original.files[m])) > 1
            for m in original.models
        )
        expected = "noticed" if needed and not (tables or replaced) else "any"
        if attribute == "stoichiometry":
            expected = "noticed"
        elif attribute in {"size", "spatialDimensions"}:
            expected = "any"  # it can cancel
    elif what == "identifier misspelt":
        element.set(attribute, f"{value}x")
        expected = "any" if attribute == "id" else "refused"
    return f"{attribute}={value!r}", expected


def _change_formula(
    original: Original, name: str, root: Any, what: str, rng: random.Random
) -> Mutation | None:
    operators = {"plus": "times", "times": "plus", "divide": "times", "minus": "times",
                 "power": "minus", "lt": "gt", "gt": "lt", "leq": "gt", "geq": "lt"}  # fmt: skip
    if what == "name unknown":
        names = [e for e in root.iter() if _local(e.tag) == "ci"]
        if not names:
            return None
        element = rng.choice(names)
        old = (element.text or "").strip()
        element.text = f"{old}x"
        detail, expected = f"{old} becomes {old}x", "refused"
    else:
        found = [e for e in root.iter() if _local(e.tag) in operators]
        if not found:
            return None
        element = rng.choice(found)
        old = _local(element.tag)
        element.tag = element.tag.replace(old, operators[old])
        detail, expected = f"<{old}/> becomes <{operators[old]}/>", "noticed"
    files = {**original.files, name: ElementTree.tostring(root, encoding="unicode")}
    return Mutation(f"SBML: {what}", detail, files, expected)  # type: ignore[arg-type]


def _in_notes(root: Any) -> set[Any]:
    return {
        inner
        for element in root.iter()
        if _local(element.tag) in {"annotation", "notes"}
        for inner in element.iter()
    }


def _register(text: str) -> None:
    found = re.search(r'xmlns="(http://www.sbml.org[^"]*)"', text)
    if found:
        ElementTree.register_namespace("", found[1])
    ElementTree.register_namespace("math", "http://www.w3.org/1998/Math/MathML")


# Bytes of any file


def cut(original: Original, rng: random.Random) -> Mutation:
    """End a file early."""
    name = rng.choice(list(original.files))
    text = original.files[name]
    at = rng.randrange(len(text.rstrip()))
    partial = {**original.files, name: text[:at]}
    return Mutation("file cut", f"{name} after {at} characters", partial, "any")


def garble(original: Original, rng: random.Random) -> Mutation:
    """Replace some characters of a file."""
    name = rng.choice(list(original.files))
    text = list(original.files[name])
    for _ in range(rng.randint(1, 4)):
        text[rng.randrange(len(text))] = rng.choice("\t\n 0;:-<>&\"'x\\é\x00{}[]()*")
    return Mutation("characters replaced", name, {**original.files, name: "".join(text)}, "any")


MUTATIONS: tuple[Callable[[Original, random.Random], Mutation | None], ...] = (
    drop_row, double_row, change_identifier, change_number, change_number, change_column, reorder,
    reformat, change_yaml, change_model, change_model, change_model, cut, garble,
)  # fmt: skip


def mutations(given: list[Original], count: int, seed: int) -> Iterator[tuple[Original, Mutation]]:
    """Return `count` mutations; another count begins with the same ones."""
    rng = random.Random(seed)
    made = 0
    while made < count:
        original = given[rng.randrange(len(given))]
        mutation = rng.choice(MUTATIONS)(original, rng)
        if mutation is not None and mutation.files != original.files:
            made += 1
            yield original, mutation


def _table(original: Original, rng: random.Random) -> tuple[str, list[list[str]]]:
    name = rng.choice(original.tables)
    rows = rows_of(original.files[name])
    while len(rows) < 2:
        name = rng.choice(original.tables)
        rows = rows_of(original.files[name])
    return name, rows


def _tabled(
    original: Original,
    name: str,
    rows: list[list[str]],
    kind: str,
    detail: str,
    expected: Expectation,
) -> Mutation:
    return Mutation(kind, f"{name}: {detail}", {**original.files, name: text_of(rows)}, expected)


def _is_compartment(original: Original, name: str) -> bool:
    return any(f'<compartment id="{name}"' in original.files[m] for m in original.models)


def _cell(row: list[str], column: int) -> str:
    return row[column] if column < len(row) else ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
