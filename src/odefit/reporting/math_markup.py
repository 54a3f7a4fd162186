"""Formulas in MathML as LaTeX and as Typst, for reports that are no HTML.

What a formula looks like is decided once, in :mod:`odefit.reporting.mathml`; here its elements are
named in the languages of other reports. The texts in them are names, numbers and signs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from odefit.reporting.mathml import GREEK

LATEX_SIGNS: Mapping[str, str] = {
    "\N{INVISIBLE TIMES}": r"\thinspace ",  # \, loses its backslash in some readers of Markdown
    "\N{FUNCTION APPLICATION}": "",
    "\N{DOT OPERATOR}": r" \cdot ",
    "\N{MINUS SIGN}": " - ",
    "+": " + ",
    "×": r" \times ",
    ",": ", ",
    "=": " = ",
    "≠": r" \ne ",
    "<": r" \lt ",
    "≤": r" \le ",
    ">": r" \gt ",
    "≥": r" \ge ",
    "∧": r" \land ",
    "∨": r" \lor ",
    "¬": r"\lnot ",
}
"""Operators in LaTeX."""

TYPST_SIGNS: Mapping[str, str] = {
    "\N{INVISIBLE TIMES}": " thin ",
    "\N{FUNCTION APPLICATION}": "",
    "\N{DOT OPERATOR}": " dot.op ",
    "\N{MINUS SIGN}": " - ",
    "+": " + ",
    "×": " times ",
    ",": r"\, ",  # a bare comma would end an argument
    "=": " = ",
    "≠": " != ",
    "<": " < ",
    "≤": " <= ",
    ">": " > ",
    "≥": " >= ",
    "∧": " and ",
    "∨": " or ",
    "¬": " not ",
}
"""Operators in Typst."""

LATEX_FUNCTIONS = frozenset(
    "exp ln log sin cos tan arcsin arccos arctan sinh cosh tanh min max".split()
)
"""Functions that have a command of their own in LaTeX."""

_VARIANTS = {"ε": "varepsilon", "φ": "varphi", "ο": "omicron"}
GREEK_COMMANDS: Mapping[str, str] = {
    letter: rf"\{_VARIANTS.get(letter, name)}"
    for name, letter in GREEK.items()
    if name.isalpha() and letter != "ο"
} | {"ε": r"\varepsilon", "ο": "o"}
"""Greek letters in LaTeX, which has none of its own for the omicron."""


class Language(ABC):
    """A language of mathematics; an element of MathML is written by the method of its name."""

    def write(self, markup: str) -> str:
        """Return a formula, which stands in MathML, in this language."""
        return " ".join(self.element(ElementTree.fromstring(f"<math>{markup}</math>")).split())

    def aligned(self, markup: str) -> tuple[str, str]:
        """Return what stands left and right of the sign of equality in an equation."""
        node = ElementTree.fromstring(f"<math>{markup}</math>")
        while len(node) == 1 and node[0].tag in ("math", "mrow"):
            node = node[0]
        children = list(node)
        middle = next(i for i, c in enumerate(children) if c.tag == "mo" and c.text == "=")
        left, right = children[:middle], children[middle + 1 :]
        return " ".join(self.row(left).split()), " ".join(self.row(right).split())

    def element(self, node: Element) -> str:
        """Return an element."""
        writers: Mapping[str, Callable[[Element], str]] = {
            "mi": self.identifier,
            "mn": lambda n: n.text or "",
            "mo": self.operator,
            "mtext": lambda n: self.words((n.text or "").strip()),
            "mfrac": lambda n: self.fraction(*map(self.element, n)),
            "msup": lambda n: self.raised(*map(self.element, n)),
            "msub": lambda n: self.lowered(*map(self.element, n)),
            "msqrt": lambda n: self.root(self.row(n)),
        }
        return writers.get(node.tag, self.row)(node)

    def row(self, nodes: Iterable[Element]) -> str:
        """Return elements beside each other, with fences that grow around them."""
        children = list(nodes)
        first = children[0] if children else None
        if first is None or first.tag != "mo" or first.get("stretchy") != "true":
            return "".join(map(self.element, children))
        if first.text == "{":
            return self.pieces([[self.row(cell) for cell in line] for line in children[1]])
        return self.fenced(first.text or "", self.row(children[1:-1]))

    def operator(self, node: Element) -> str:
        """Return an operator."""
        return self.signs.get(node.text or "", node.text or "")

    signs: Mapping[str, str]
    """Operators in this language."""

    @abstractmethod
    def identifier(self, node: Element) -> str:
        """Return the name of a quantity or of a function."""

    @abstractmethod
    def words(self, text: str) -> str:
        """Return words within a formula."""

    @abstractmethod
    def fraction(self, above: str, below: str) -> str:
        """Return a fraction."""

    @abstractmethod
    def raised(self, base: str, exponent: str) -> str:
        """Return a power."""

    @abstractmethod
    def lowered(self, base: str, index: str) -> str:
        """Return a symbol with a subscript."""

    @abstractmethod
    def root(self, inside: str) -> str:
        """Return a square root."""

    @abstractmethod
    def fenced(self, fence: str, inside: str) -> str:
        """Return a formula in parentheses or bars."""

    @abstractmethod
    def pieces(self, lines: Sequence[Sequence[str]]) -> str:
        """Return values beside a brace, each with its condition."""


class Latex(Language):
    """LaTeX, of which only commands are used that MathJax and KaTeX know too."""

    signs = LATEX_SIGNS

    def identifier(self, node: Element) -> str:
        name = node.text or ""
        if name in GREEK_COMMANDS:
            return f"{GREEK_COMMANDS[name]} "
        upright = node.get("mathvariant") == "normal"
        if upright and name in LATEX_FUNCTIONS:
            return rf"\{name} "
        if len(name) == 1 and name != "_" and not upright:
            return name
        escaped = name.replace("_", r"\_")
        return rf"\mathrm{{{escaped}}}"  # longer names are upright in MathML

    def words(self, text: str) -> str:
        return rf"\text{{{text} }}"

    def fraction(self, above: str, below: str) -> str:
        return rf"\frac{{{above}}}{{{below}}}"

    def raised(self, base: str, exponent: str) -> str:
        return f"{{{base}}}^{{{exponent}}}"

    def lowered(self, base: str, index: str) -> str:
        # log is an operator with a subscript, and would take its braces for an atom.
        return f"{base.strip()}_{{{index}}}"

    def root(self, inside: str) -> str:
        return rf"\sqrt{{{inside}}}"

    def fenced(self, fence: str, inside: str) -> str:
        opening, closing = ("|", "|") if fence == "|" else ("(", ")")
        return rf"\left{opening}{inside}\right{closing}"

    def pieces(self, lines: Sequence[Sequence[str]]) -> str:
        inner = r" \cr ".join(" & ".join(line) for line in lines)
        return rf"\begin{{cases}} {inner} \end{{cases}}"


class Typst(Language):
    """Typst; every longer name is a string, so that nothing in it is a command."""

    signs = TYPST_SIGNS

    def identifier(self, node: Element) -> str:
        name = (node.text or "").replace("\\", "\\\\").replace('"', '\\"')
        if len(name) == 1 and name.isalpha():  # a string of one letter would be spaced as a word
            return f" upright({name}) " if node.get("mathvariant") == "normal" else f" {name} "
        if node.get("mathvariant") == "normal":
            return f' op("{name}") '
        return f'upright("{name}")'  # a blank beside a word would be seen

    def words(self, text: str) -> str:
        return f' "{text} " '

    def fraction(self, above: str, below: str) -> str:
        return f" frac({above}, {below}) "

    def raised(self, base: str, exponent: str) -> str:
        return f" attach({base}, t: {exponent}) "

    def lowered(self, base: str, index: str) -> str:
        return f" attach({base}, b: {index}) "

    def root(self, inside: str) -> str:
        return f" sqrt({inside}) "

    def fenced(self, fence: str, inside: str) -> str:
        return f" abs({inside}) " if fence == "|" else rf" lr(\( {inside} \)) "

    def pieces(self, lines: Sequence[Sequence[str]]) -> str:
        return f" cases({', '.join(' quad '.join(line) for line in lines)}) "


LATEX = Latex()
TYPST = Typst()


def latex_equations(equations: Iterable[str]) -> str:
    """Return equations in MathML as one displayed formula in LaTeX, aligned at their signs."""
    lines = [" &= ".join(LATEX.aligned(equation)) for equation in equations]
    body = " \\cr\n".join(lines)
    return f"$$\n\\begin{{aligned}}\n{body}\n\\end{{aligned}}\n$$\n" if lines else ""


def typst_equations(equations: Iterable[str]) -> list[str]:
    """Return equations in MathML as mathematics of Typst, one text each."""
    return [" = ".join(TYPST.aligned(equation)) for equation in equations]
