"""The YAML file of a PEtab problem: its version, and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from odefit.common.errors import InputError, one_of, shown
from odefit.common.packages import require
from odefit.formats.petab.tables import Table, read_tsv
from odefit.problem.inputs.file_access import NamedFiles, read_text
from odefit.problem.inputs.issues import Issues

MAX_YAML_LENGTH = 1_000_000
"""Largest number of characters of the YAML file: a list of files need not be longer."""

MAX_DEPTH = 50  # levels of lists and mappings of the YAML file
MAX_PARTS = 10_000  # events of the YAML reader: names, and beginnings and ends of lists

KINDS = ("parameter", "observable", "condition", "experiment", "measurement", "mapping")


@dataclass(frozen=True)
class PetabFiles:
    """The files of a PEtab problem, with their tables read."""

    version: Literal[1, 2]  # the version of PEtab
    name: str  # the name of the problem
    tables: Mapping[str, tuple[Table, ...]]  # tables by kind
    model: Path  # the path of the SBML file
    notes: tuple[str, ...]  # sentences on unread parts


def read_files(path: Path, issues: Issues, within: Path | None = None) -> PetabFiles:
    """Return the tables named in a YAML file, all of them in the folder `within` or its own.

    Mistakes in tables go to `issues`; those of the YAML file itself are raised.
    """
    raw = _parsed(path)
    notes: list[str] = []
    try:
        version = _version(raw.get("format_version"))
        if version == 1:
            by_kind, model = _files_of_version_1(raw, notes)
        else:
            by_kind, model = _files_of_version_2(raw, notes)
    except InputError as error:
        raise InputError([f"{path}: {message}" for message in error.messages]) from None
    files = NamedFiles(path.parent, within, above=True)
    tables: dict[str, tuple[Table, ...]] = {}
    # Measurements first: they say how many experiments there are, before the rest is read.
    for kind in sorted(KINDS, key=lambda kind: kind != "measurement"):
        paths = [(name, files.path(name, f"{kind} file", issues)) for name in by_kind.get(kind, ())]
        read = [read_tsv(at, name, issues, kind) for name, at in paths if at is not None]
        tables[kind] = tuple(table for table in read if table is not None)
    model_path = files.path(model, "model", issues)
    issues.raise_errors()
    assert model_path is not None  # otherwise there was an error
    name = raw.get("problem_id") or raw.get("id") or path.stem
    return PetabFiles(version, str(name), tables, model_path, tuple(notes))


def _parsed(path: Path) -> Mapping[str, Any]:
    require("yaml")
    import yaml

    issues = Issues()
    text = read_text(path, str(path), issues)
    issues.raise_errors()
    if text is None or len(text) > MAX_YAML_LENGTH:
        raise InputError(
            f"{path}: longer than {MAX_YAML_LENGTH} characters; is this the YAML file of a PEtab "
            "problem?"
        )
    try:
        depth = 0
        for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or number > MAX_PARTS:
                line = event.start_mark.line + 1
                limit = f"deeper than {MAX_DEPTH} levels" if depth > MAX_DEPTH else MAX_PARTS
                mistake = "lists are nested" if depth > MAX_DEPTH else "it has more parts than"
                raise InputError(
                    f"{path}, line {line}: {mistake} {limit}; is this a PEtab problem?"
                )
            if isinstance(event, yaml.AliasEvent):
                line = event.start_mark.line + 1
                raise InputError(
                    f"{path}, line {line}: aliases (*name) are not read; write the value out"
                )
        _refuse_doubled(yaml.compose(text, Loader=yaml.SafeLoader), path)
        raw = yaml.safe_load(text)
    except InputError:
        raise
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        reason = getattr(error, "problem", None) or "the text is not YAML"
        raise InputError(f"{path}{where}: {reason}; is this a PEtab problem?") from None
    except (RecursionError, ValueError):
        raise InputError(f"{path}: the text is not readable YAML") from None
    if not isinstance(raw, Mapping):
        raise InputError(
            f"{path}: expected the YAML file of a PEtab problem, which begins with "
            "'format_version: 1' or 'format_version: 2.0.0'"
        )
    return {str(key): value for key, value in raw.items()}


def _refuse_doubled(node: Any, path: Path) -> None:
    """Refuse a key that occurs twice in one mapping: the first value would be lost."""
    pending = [node]
    while pending:
        current = pending.pop()
        content = getattr(current, "value", None)
        if not isinstance(content, list):
            continue
        pairs = [item for item in content if isinstance(item, tuple)]
        keys: set[str] = set()
        for key, _ in pairs:
            name = str(key.value)
            if name in keys:
                line = key.start_mark.line + 1
                raise InputError(f"{path}, line {line}: the key {shown(name)} occurs twice")
            keys.add(name)
        pending += [value for _, value in pairs] if pairs else content


def _version(value: object) -> Literal[1, 2]:
    text = str(value)
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        if text in {"1", "1.0", "1.0.0"}:
            return 1
        if text == "2" or text.startswith("2."):
            return 2
    if value is None:
        raise InputError(
            "format_version: missing; is this the YAML file of a PEtab problem? It begins with "
            "'format_version: 1' or 'format_version: 2.0.0'"
        )
    raise InputError(
        f"format_version: odefit reads PEtab versions 1 and 2, but this is {shown(value)}"
    )


def _files_of_version_1(
    raw: Mapping[str, Any], notes: list[str]
) -> tuple[dict[str, list[str]], str]:
    known = ("format_version", "parameter_file", "problems", "problem_id", "extensions")
    _refuse_unknown(raw, known, "")
    _refuse_extensions(raw.get("extensions"))
    problems = raw.get("problems")
    if not isinstance(problems, list) or not all(isinstance(p, Mapping) for p in problems):
        raise InputError("problems: expected a list with the files of the problem")
    if len(problems) != 1:
        raise InputError(
            f"problems: there are {len(problems)}, but odefit reads one; put each into its own file"
        )
    files = problems[0]
    kinds = ("observable", "condition", "measurement", "mapping")
    tables = tuple(f"{kind}_files" for kind in kinds)
    further = ("sbml_files", "model_files", "visualization_files")
    _refuse_unknown(files, (*tables, *further), "problems, ")
    by_kind = {kind: _names(files.get(f"{kind}_files"), f"{kind}_files") for kind in kinds}
    by_kind["parameter"] = _names(raw.get("parameter_file"), "parameter_file")
    if files.get("visualization_files"):
        notes.append("The visualization table is not read.")
    if files.get("model_files") is not None:
        return by_kind, _model(files.get("model_files"))
    models = _names(files.get("sbml_files"), "sbml_files")
    if len(models) != 1:
        raise InputError(f"sbml_files: expected one file, got {len(models)}")
    _require_files(by_kind)
    return by_kind, models[0]


def _files_of_version_2(
    raw: Mapping[str, Any], notes: list[str]
) -> tuple[dict[str, list[str]], str]:
    known = (*(f"{kind}_files" for kind in KINDS), "format_version", "model_files", "problem_id")
    _refuse_unknown(raw, (*known, "extensions", "id", "visualization_files"), "")
    _refuse_extensions(raw.get("extensions"))
    if raw.get("visualization_files"):
        notes.append("The visualization table is not read.")
    by_kind = {kind: _names(raw.get(f"{kind}_files"), f"{kind}_files") for kind in KINDS}
    _require_files(by_kind)
    return by_kind, _model(raw.get("model_files"))


def _require_files(by_kind: Mapping[str, list[str]]) -> None:
    for kind in ("parameter", "observable", "measurement"):
        if not by_kind[kind]:
            raise InputError(f"{kind}_files: a problem needs one; name it in the YAML file")


def _model(value: object) -> str:
    if not isinstance(value, Mapping) or not all(isinstance(m, Mapping) for m in value.values()):
        raise InputError(
            "model_files: expected a name with language and location, got " + shown(value)
        )
    if len(value) != 1:
        raise InputError(
            f"model_files: there are {len(value)} models, odefit reads problems of one"
        )
    ((name, model),) = value.items()
    if model.get("language") != "sbml":
        raise InputError(
            f"model_files, {name}: odefit reads models in SBML, this is in "
            f"{shown(model.get('language'))}; convert it"
        )
    place = f"model_files, {name}, location"
    locations = _names(model.get("location"), place)
    if len(locations) != 1:
        raise InputError(f"{place}: expected one file, got {len(locations)}")
    return locations[0]


def _names(value: object, place: str) -> list[str]:
    """Return the names of files, given as one name or as a list."""
    names = value if isinstance(value, list) else [] if value is None else [value]
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{place}: expected names of files, got {shown(name)}")
    return list(names)


def _refuse_unknown(raw: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for key in raw:
        if key not in known:
            raise InputError(f"{place}{key}: unknown key{one_of(str(key), known)}")


def _refuse_extensions(value: object) -> None:
    if not value:
        return
    names = list(value) if isinstance(value, (Mapping, list)) else [value]
    for name in names:
        entry = value[name] if isinstance(value, Mapping) else {}
        if not isinstance(entry, Mapping) or entry.get("required", True):
            raise InputError(
                f"extensions: the problem needs the extension {shown(name)}, which odefit does not "
                "have"
            )
