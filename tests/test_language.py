"""The English of the package: phrases that a native engineer would not write may only become rarer.

Docstrings, comments and messages of ``src/odefit`` are read. ``MOST`` holds how often each phrase
still occurs; a phrase that is not listed there must not occur at all. Whoever rewrites sentences
lowers the numbers (``python tests/test_language.py`` prints the present ones). Nobody raises them.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from docs import reference_pages

SOURCE = Path(__file__).resolve().parents[1] / "src" / "odefit"

PHRASES = {
    "is none": r"\b(?:[Ii]s|are|was|were|be) none\b",
    "what of": r"\b[Ww]hat of\b",
    "hang on": r"\b(?:hangs?|hung|hanging) on\b",
    "dear": r"\b(?:dear|dearer|dearest|dearly)\b",
    "had of": r"\b(?:had|have|has) of\b",
    "is told": r"\b(?:is|are|was|were) told\b",
    "said of": r"\bsaid of\b",
    "in vain": r"\bin vain\b",
    "all the same": r"\ball the same\b",
    "next to no": r"\bnext to (?:no|nothing)\b",
    "anew": r"\b[Aa]new\b",
    "counts as none": r"\bcounts? as none\b",
    "stands in": r"\bstands? in\b",
    "so many seconds": r"\bso many (?:seconds|times|of)\b",
    "goes on": r"\bgoes on\b",
}
"""Regular expressions, matched in prose whose lines are joined."""

BETWEEN_WORDS = re.compile(r"(?:\b[bfrBFR]{1,2}(?=[\"'])|[\s\"'#\\])+")
"""What may stand between two words of a text: line ends, quotation marks, the signs of comments.

Most modules hold no phrase, which the whole source shows at once; its tokens take much longer.
"""

LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
"""Tokens that may stand between two lines of one comment."""

OPENING = "a question opens"
"""Docstrings whose first sentence begins with What, Whether, How, Which, Where, When or That."""

QUESTION = re.compile(r"(?:What|Whether|How|Which|Where|When|That|Of|By) ")

LONG = "a sentence of more than 30 words"

MOST: dict[str, int] = {LONG: 10}
"""How many occurrences of each phrase are left of the time before this rule.

212 sentences of docstrings were long; a few may be until the next reading.
"""

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`:\"(*])")

MARKUP = re.compile(r":\w+:`[^`]*`|`+[^`]*`+")
"""References and code, each of which counts as one word."""

SILENT = {
    *("found", "own", "said", "told", "dear", "wanted", "kept", "had", "given", "what", "there"),
    *("mine", "theirs", "thing", "those", "it"),
}
"""Names that say nothing about the value they stand for."""

PUBLIC = {
    "methods/estimate.py": {"found", "told"},  # Completeness, Estimate
    "problem/problem.py": {"given"},
    "problem/variants/reduction.py": {"given"},  # of a problem
    "problem/variants/scenario_problem.py": {"given"},  # of a problem
    "structure/same_outputs.py": {"found"},  # as in Completeness
    "structure/structural_identifiability.py": {"given"},
}
"""Silent names that users rely on, by module."""


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of a module, of its classes, functions and constants."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for child in body if isinstance(body, list) else []:
            if (
                isinstance(child, ast.Expr)
                and isinstance(child.value, ast.Constant)
                and isinstance(child.value.value, str)
            ):
                yield child.value.value


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring: lines of one indentation, and points of lists."""
    lines: list[str] = []
    indentation = 0
    for line in [*inspect.cleandoc(text).split("\n"), ""]:
        begins = len(line) - len(line.lstrip())
        point = re.match(r"\s*([-*]|\d+\.) ", line)
        if lines and (not line.strip() or point or begins != indentation):
            yield " ".join(lines)
            lines = []
        if line.strip(" -"):
            lines.append(line.strip())
        indentation = begins + 2 if point else begins


def long_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a docstring that have more than 30 words, without its examples."""
    for paragraph in paragraphs(text):
        for sentence in SENTENCE_END.split(paragraph) if ">>>" not in paragraph else ():
            tokens = MARKUP.sub("x", sentence).split()
            if sum(any(c.isalnum() for c in token) for token in tokens) > 30:
                yield sentence


def prose(source: str) -> Iterator[str]:
    """Yield all texts of a module that people read: strings and comments, joined to lines."""
    comment: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comment.append(token.string.lstrip("# "))
        elif comment and token.type not in LAYOUT:
            yield " ".join(comment)
            comment = []
    if comment:
        yield " ".join(comment)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(node.value.split())
        elif isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "X" for p in node.values)
            yield " ".join("".join(str(part) for part in parts).split())


@cache
def occurrences() -> dict[str, list[str]]:
    """Return where each phrase occurs."""
    places: dict[str, list[str]] = {name: [] for name in (*PHRASES, OPENING, LONG)}
    compiled = {name: re.compile(pattern) for name, pattern in PHRASES.items()}
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        place = path.relative_to(SOURCE).as_posix()
        plain = BETWEEN_WORDS.sub(" ", source)
        likely = {name: pattern for name, pattern in compiled.items() if pattern.search(plain)}
        for text in set(prose(source)) if likely else ():
            for name, pattern in likely.items():
                for match in pattern.finditer(text):
                    around = text[max(0, match.start() - 40) : match.end() + 40]
                    places[name].append(f"{place}: ...{around}...")
        for text in docstrings(ast.parse(source)):
            if QUESTION.match(text):
                places[OPENING].append(f"{place}: {text.splitlines()[0]}")
            places[LONG] += [f"{place}: {sentence}" for sentence in long_sentences(text)]
    return places


def bindings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the names of parameters, variables and attributes that a module binds, with lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def test_the_name_of_a_value_says_what_it_is() -> None:
    silent = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        silent += [
            f"{place}:{line}: {name}"
            for name, line in bindings(ast.parse(path.read_text(encoding="utf-8")))
            if name in SILENT and name not in PUBLIC.get(place, ())
        ]
    assert not silent, "\n".join(silent)


@pytest.mark.parametrize(
    "source", ["kept = 1", "def f(found): ...", "self.own = x", "a.told: int = 1"]
)
def test_silent_names_are_seen(source: str) -> None:
    assert any(name in SILENT for name, _ in bindings(ast.parse(source)))


@pytest.mark.parametrize("name", [*PHRASES, OPENING, LONG])
def test_phrases_of_another_language_become_rarer(name: str) -> None:
    places = occurrences()[name]
    assert len(places) <= MOST.get(name, 0), "\n".join(places)


def test_long_sentences_are_seen() -> None:
    short = "One " + 28 * "more " + "word."
    long = "A " + 28 * "very " + "long `piece of text` here."
    assert list(long_sentences(f"{short} {long}\n\n- {short}\n- {short}")) == [long]


def test_the_phrases_are_seen_in_docstrings_comments_and_messages() -> None:
    source = '"""The answer\nis none."""\n# It hangs\n# on x.\ng(f"{x}: dear")\n'
    texts = list(prose(source))
    for name in ("is none", "hang on", "dear"):
        assert any(re.search(PHRASES[name], text) for text in texts), name


FREE_PAGES = {"modules.md", "changelog.md", *reference_pages.PAGES}
"""Pages that are made from the source and from the changelog."""


@pytest.mark.parametrize("name", sorted(PHRASES.keys() - {"is none"}))
def test_no_page_of_the_documentation_has_a_phrase_of_another_language(name: str) -> None:
    pages = sorted((SOURCE.parents[1] / "docs").rglob("*.md"))
    found = [
        f"{page.name}: ...{text[max(0, m.start() - 40) : m.end() + 40]}..."
        for page in pages
        if page.name not in FREE_PAGES
        for text in [" ".join(page.read_text(encoding="utf-8").split())]
        for m in re.finditer(PHRASES[name], text)
    ]
    assert not found, "\n".join(found)


FRAGMENT = re.compile(
    r"^ *def (test_(?:what|how|which|that|of|nor|or|and|but|so|where|they|its?|whoever)_\w+)",
    re.MULTILINE,
)
"""Names of tests that begin like a question or in the middle of a sentence."""


def test_the_name_of_a_test_begins_with_its_subject() -> None:
    tests = Path(__file__).parent
    found = [n for f in tests.rglob("test_*.py") for n in FRAGMENT.findall(f.read_text("utf-8"))]
    assert not found


KINDS = ("tutorials", "guide", "reference", "methods")
"""The first page of each kind: tutorials, guides, reference, explanation."""


def words(page: Path) -> int:
    """Return the number of words of a page: tokens between spaces with a letter or a digit."""
    tokens = page.read_text(encoding="utf-8").split()
    return sum(any(character.isalnum() for character in token) for token in tokens)


def kind_of(page: Path) -> str:
    """Return the kind of a page: the first page whose table of contents has it."""
    if page.parent.name == "benchmarks":
        return "benchmarks"
    for kind in KINDS:
        contents = page.with_name(f"{kind}.md").read_text(encoding="utf-8").splitlines()
        if page.stem == kind or any(re.fullmatch(rf"(.*<)?{page.stem}>?", x) for x in contents):
            return kind
    return "index"


def test_the_documentation_has_at_most_60_000_words() -> None:
    docs = SOURCE.parents[1] / "docs"
    generated = {"modules.md", *reference_pages.PAGES}
    counts: Counter[str] = Counter()
    for page in (*docs.glob("*.md"), *docs.glob("benchmarks/*.md")):
        if page.name not in generated:
            counts[kind_of(page)] += words(page)
    assert set(counts) == {*KINDS, "benchmarks", "index"}
    assert counts.total() <= 60_000, counts


if __name__ == "__main__":
    present = {phrase: len(places) for phrase, places in occurrences().items()}
    sys.stdout.write("".join(f'    "{phrase}": {count},\n' for phrase, count in present.items()))
