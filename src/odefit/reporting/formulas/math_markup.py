"""Formulas in MathML as LaTeX, for the report in Markdown.

:mod:`odefit.reporting.formulas.mathml` decides how a formula looks; this module names its elements
in LaTeX. Their texts are names, numbers and signs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from odefit.reporting.formulas.mathml import GREEK

LATEX_SIGNS: Mapping[str, str] = {
    "\N{INVISIBLE TIMES}": r"\thinspace ",  # some readers of Markdown drop the backslash of \,
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

LATEX_FUNCTIONS = frozenset(
    "exp ln log sin cos tan arcsin arccos arctan sinh cosh tanh min max".split()
)
"""Functions with a LaTeX command."""

_VARIANTS = {"ε": "varepsilon", "φ": "varphi", "ο": "omicron"}
GREEK_COMMANDS: Mapping[str, str] = {
    letter: rf"\{_VARIANTS.get(letter, name)}"
    for name, letter in GREEK.items()
    if name.isalpha() and letter != "ο"
} | {"ε": r"\varepsilon", "ο": "o"}
"""Greek letters in LaTeX, which has no command for the omicron."""


class Latex:
    """LaTeX with only those commands that MathJax and KaTeX also support.

    Each element of MathML is written by the method of the same name.
    """

    def write(self, markup: str) -> str:
        """Return a formula that is given in MathML."""
        return " ".join(self.element(ElementTree.fromstring(f"<math>{markup}</math>")).split())

    def aligned(self, markup: str) -> tuple[str, str]:
        """Return the left and the right side of an equation."""
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
            "mo": lambda n: LATEX_SIGNS.get(n.text or "", n.text or ""),
            "mtext": lambda n: rf"\text{{{(n.text or '').strip()} }}",
            "mfrac": lambda n: rf"\frac{{{self.element(n[0])}}}{{{self.element(n[1])}}}",
            "msup": lambda n: f"{{{self.element(n[0])}}}^{{{self.element(n[1])}}}",
            # log is an operator with a subscript; in braces it would become an atom.
            "msub": lambda n: f"{self.element(n[0]).strip()}_{{{self.element(n[1])}}}",
            "msqrt": lambda n: rf"\sqrt{{{self.row(n)}}}",
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
        opening, closing = ("|", "|") if first.text == "|" else ("(", ")")
        return rf"\left{opening}{self.row(children[1:-1])}\right{closing}"

    def identifier(self, node: Element) -> str:
        """Return the name of a quantity or of a function."""
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

    def pieces(self, lines: Sequence[Sequence[str]]) -> str:
        """Return cases beside a brace, each with its condition."""
        inner = r" \cr ".join(" & ".join(line) for line in lines)
        return rf"\begin{{cases}} {inner} \end{{cases}}"


LATEX = Latex()


def latex_equations(equations: Iterable[str]) -> str:
    """Return equations in MathML as one displayed formula in LaTeX, aligned at their signs."""
    lines = [" &= ".join(LATEX.aligned(equation)) for equation in equations]
    body = " \\cr\n".join(lines)
    return f"$$\n\\begin{{aligned}}\n{body}\n\\end{{aligned}}\n$$\n" if lines else ""
