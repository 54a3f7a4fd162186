"""Models in Antimony, which libAntimony translates into SBML."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from odefit.common.errors import InputError
from odefit.common.packages import require
from odefit.problem.inputs.file_access import text_or_file
from odefit.problem.sbml.sbml_model import SbmlModel
from odefit.problem.sbml.sbml_reading import read_sbml

MAX_SIZE = 1_000_000
"""Largest length of a text in characters."""

MAX_STATEMENT = 20_000
"""Longest statement in characters: libAntimony needs quadratic time for a formula."""

MAX_STATEMENTS = 3000
"""Largest number of statements: libAntimony needs quadratic time for reactions."""

MAX_SUBMODELS = 1000
"""Largest number of nested submodels: each level can double their number."""

_COMMENTS_AND_STRINGS = re.compile(r'"[^"\n]*"|//[^\n]*|#[^\n]*|/\*.*?\*/', re.DOTALL)
_IMPORT = re.compile(r"\bimport\b")
_LONG_QUOTES = re.compile(r'```|"{3}')
"""Text that may hide quotes and comments from the pattern above."""

_UNNAMED = "__main"
"""The name that libAntimony gives to an unnamed model."""

_MODEL_OR_PART = re.compile(r"\b(?:model|module)\s+\*?\s*(?P<model>\w+)|:\s*(?P<part>\w+)\s*\(")
"""The start of a model, or of an inclusion of one model in another."""

_STATEMENT = re.compile(r"[\n;=]")


def read_antimony(path_or_text: str | os.PathLike[str]) -> SbmlModel:
    """Read a model in Antimony (Smith et al., Bioinformatics 25, 2009), translated to SBML.

    Parameters
    ----------
    path_or_text
        The path of a file, or Antimony itself: a text with a line break, a semicolon or an equals
        sign. Of several models the last one is read, which is Antimony's main model. Files named by
        ``import`` are never read.

    Raises
    ------
    InputError
        The file cannot be read, the text is not Antimony, or the model has a feature that odefit
        lacks, see :func:`odefit.read_sbml`. Or the package antimony or python-libsbml is missing
        (``pip install 'odefit[antimony]'``).

    Examples
    --------
    >>> import odefit
    >>> model = odefit.read_antimony("x' = -k*x; k = 0.1; x = 10")
    >>> dict(model.states), dict(model.constants)
    ({'x': '-k*x'}, {'k': 0.1})
    """
    require("antimony")
    import antimony

    text, source = text_or_file(path_or_text, _STATEMENT.search, "Antimony text")
    if len(text) > MAX_SIZE:
        raise InputError(f"{source}: longer than {MAX_SIZE} characters")
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # both end a comment
    if _LONG_QUOTES.search(text) and _IMPORT.search(text):
        raise InputError(
            f"{source}: the word 'import' in a text with notes in three quotes is refused, as it "
            "could read another file; remove one of them"
        )
    bare = _COMMENTS_AND_STRINGS.sub(lambda match: "\n" * match[0].count("\n"), text)
    _refuse_bombs(bare, source)
    for number, line in enumerate(bare.splitlines(), 1):
        if _IMPORT.search(line):
            raise InputError(
                f"{source}, line {number}: 'import' would read another file, which odefit does "
                "not; copy the text of that file here"
            )
    antimony.clearPreviousLoads()
    try:
        if antimony.loadAntimonyString(f"{text}\n") < 0:
            message = antimony.getLastError().removeprefix("Error in model string, ")
            raise InputError(f"{source}: {' '.join(message.split())}")
        name = antimony.getMainModuleName()
        sbml = antimony.getSBMLString(name)
    except UnicodeDecodeError:  # libAntimony may quote half a character
        raise InputError(
            f"{source}: a character that Antimony does not know; write ASCII"
        ) from None
    finally:
        antimony.clearPreviousLoads()
    try:
        model = read_sbml(sbml)
    except InputError as error:
        messages = (re.sub(r"^SBML text: | \(line \d+\)", "", m) for m in error.messages)
        raise InputError(f"{source}: {message}" for message in messages) from None
    return replace(model, name="model") if name == _UNNAMED else model


def _refuse_bombs(text: str, source: str) -> None:
    """Refuse a short text that would keep libAntimony busy, which cannot be interrupted."""
    statements = [s for s in re.split(r"[;\n]", text) if s.strip()]
    if len(statements) > MAX_STATEMENTS:
        raise InputError(
            f"{source}: has {len(statements)} statements, and {MAX_STATEMENTS} are read at most; "
            "write the model in SBML"
        )
    for statement in statements:
        if len(statement) > MAX_STATEMENT:
            raise InputError(
                f"{source}: a statement is longer than {MAX_STATEMENT} characters; split it by "
                "names for its parts (part := ...)"
            )
    counts: dict[str, int] = {}
    current = _UNNAMED
    for match in _MODEL_OR_PART.finditer(text):
        name = match["model"]
        if name is not None:
            current = name
            counts.setdefault(name, 0)
        elif match["part"] in counts:
            counts[current] = counts.get(current, 0) + 1 + counts[match["part"]]
            if counts[current] > MAX_SUBMODELS:
                raise InputError(
                    f"{source}: {current} holds more than {MAX_SUBMODELS} models, those in its "
                    "models included; nest them less deeply"
                )
