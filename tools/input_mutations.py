"""Mutations of any file: of its bytes, its lines, its rows, and of its parsed tree.

Every function takes a random generator and depends on nothing else, so that a number reproduces its
case.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

ESCAPES = ("\x1b[31mred", "\x1b]0;title\x07", "\u202eabc", "a\rb", "\x9b2J", "\x00", "\u2028")
"""Names and values that a terminal would obey."""

PLACES = (
    "../outside.csv", "../outside.toml", "../outside.xml", "../outside.tsv", "/etc/passwd",
    "/dev/zero", "/dev/stdin", "/proc/self/environ", "link.csv", "http://127.0.0.1:9/x.csv",
    "file:///etc/passwd", "ftp://localhost/x", "s3://bucket/x", ".", "..", "", "\\\\server\\x.csv",
    "~/x.csv", "C:\\x.csv", "a\x00.csv", "x" * 5000, "pipe",
)  # fmt: skip
"""Names of files that no input may open."""

WORDS = (
    "", "x", "t", "k", "x +", "1/0", "x^1e9", "2^2^2^2^2^2", "(" * 3000, "x" + "+x" * 30_000,
    "min(" * 500 + "x", "exp(exp(exp(1000)))", "-" * 5000 + "x", "x[1:10000000]", "x[i]", "d[1:9]",
    "estimate", "log10", "cubic", "inf", "nan", "__import__('os').system('x')", "é", "ℵ", "x\u0301",
    "x" * 300, "1e400", "9" * 5000, "0x" + "F" * 99, "a b", "=cmd|' /C calc'!A0", "@SUM(1)", "<b>x",
    "<script>alert(1)</script>", "$x$", "\\input{x}", "#read(\"x\")", "{{ 1 }}", "%s%n", *ESCAPES,
)  # fmt: skip

NUMBERS = (
    0, 1, -1, 2, 3, 0.5, -0.0, 1e-320, 1e150, 1e151, 1e308, -1e308, 10**30, 10**400, 1 << 20_000,
    2**31, 2**63, 2**64, 1_000_000_000, float("nan"), float("inf"), float("-inf"), True, False,
)  # fmt: skip


class Raw(str):
    """A text that is written to a TOML file unchanged, without quotes."""

    __slots__ = ()


RAW = tuple(map(Raw, ("1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "9" * 5000, "0xFFFF_FFFF")))


def nested(rng: random.Random) -> Any:
    """Return lists or tables in each other."""
    value: Any = rng.choice((1, "x", []))
    for _ in range(rng.choice((3, 50, 150))):
        value = [value] if rng.random() < 0.5 else {rng.choice("abx"): value}
    return value


def long_list(rng: random.Random) -> list[Any]:
    """Return a list of many values."""
    count = rng.choice((10, 10, 1000))
    first: Any = rng.choice((0, 1.5, "x", {}))
    return [first] * count if rng.random() < 0.5 else list(range(count))


def value(rng: random.Random) -> Any:
    """Return any value that a file may hold."""
    return rng.choice(
        (
            lambda: rng.choice(NUMBERS),
            lambda: rng.choice(WORDS),
            lambda: rng.choice(WORDS),
            lambda: rng.choice(PLACES),
            lambda: rng.choice(RAW),
            lambda: nested(rng),
            lambda: long_list(rng),
            lambda: rng.choice(({}, [], [[]], [{}], {"": 1}, {"lower": 2, "upper": 1})),
            lambda: {rng.choice(WORDS): rng.choice(WORDS)},
        )
    )()


def paths(tree: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places of a tree, its parts after the tree itself."""
    found = [before]
    if isinstance(tree, (dict, list)):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            found += paths(part, (*before, key))
    return found


def at(tree: Any, path: Sequence[Any]) -> Any:
    """Return the part of a tree at a place."""
    for key in path:
        tree = tree[key]
    return tree


def mutated_tree(tree: Any, rng: random.Random, times: int | None = None) -> tuple[Any, str]:
    """Return a copy of a tree after one to three changes, and these changes."""
    tree = json.loads(json.dumps(tree))
    told = []
    for _ in range(times or rng.choice((1, 1, 1, 2, 3))):
        places = [p for p in paths(tree) if p]
        if not places:
            break
        path = rng.choice(places)
        parent, key = at(tree, path[:-1]), path[-1]
        what = rng.choice(("replace", "replace", "drop", "rename", "move", "copy", "edit", "swap"))
        told.append(f"{what} {'.'.join(map(str, path))[:60]}")
        if what == "drop":
            del parent[key]
        elif what == "rename" and isinstance(parent, dict):
            new = rng.choice((str(key) + "x", str(key)[:-1], rng.choice(WORDS), "format", "data"))
            parent[new] = parent.pop(key)
        elif what in ("move", "copy"):
            other = rng.choice(places)
            whole = at(tree, other[:-1])
            if isinstance(whole, (dict, list)):
                part = json.loads(json.dumps(parent[key], default=str))
                if isinstance(whole, list):
                    whole.append(part)
                else:
                    whole[rng.choice((other[-1], key))] = part
        elif what == "swap":
            other = rng.choice(places)
            if path[: len(other)] != other and other[: len(path)] != path:
                whole = at(tree, other[:-1])
                parent[key], whole[other[-1]] = whole[other[-1]], parent[key]
        elif what == "edit":
            parent[key] = edited(parent[key], rng)
        else:
            parent[key] = value(rng)
            if isinstance(parent[key], str):
                told.append(repr(parent[key][:40]))
            break  # the changed value may not be JSON
    return tree, ", ".join(told)


def edited(old: Any, rng: random.Random) -> Any:
    """Return a value that is close to another."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, (int, float)):
        return rng.choice((-old, old * 2, old + 1, str(old), old * 1e6, old * 1e-6))
    if isinstance(old, str) and old:
        i = rng.randrange(len(old))
        return rng.choice(
            (old[:i] + old[i + 1 :], old[:i] + rng.choice("+-*/^()[]{}=,.\"'x1 é\x1b") + old[i:],
             old + old, old[::-1], f"({old})", f"{old} + {old}", old[:i])
        )  # fmt: skip
    if isinstance(old, list):
        return rng.choice((old[:-1], old + old, old[::-1], [old]))
    return [old]


def as_toml(tree: Any) -> str:
    """Return a tree as TOML, with all tables inline except the outermost."""
    return "".join(f"{_toml(str(k))} = {_toml(v)}\n" for k, v in tree.items())


def _toml(found: Any) -> str:
    if isinstance(found, Raw):
        return found
    if isinstance(found, dict):
        return "{" + ", ".join(f"{_toml(str(k))} = {_toml(v)}" for k, v in found.items()) + "}"
    if isinstance(found, list):
        return "[" + ", ".join(map(_toml, found)) + "]"
    if isinstance(found, bool) or found is None:
        return "true" if found else "false"
    if isinstance(found, int):
        # Python refuses to write texts that it refuses to read.
        return hex(found) if abs(found) > 10**100 else repr(found)
    return json.dumps(found).lower() if isinstance(found, float) else json.dumps(found)


JUNK = (
    *(w for w in WORDS if len(w) < 400), *(p for p in PLACES if len(p) < 400),
    "[" * 3000, "{" * 3000, "9" * 5000, '"""', "'''", "\n", "\r", "\t", ",", ";", "=", "[[", "]]",
    "<" * 500, "&a;", "&#0;", "*a", "&a [*a]", "!!python/object/apply:os.system ['x']", "<<: *a",
    "import \"../outside.ant\"", "NaN", "Infinity", "-Infinity", "null",
)  # fmt: skip


def mutated_bytes(content: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Return a copy of a content after one to four accidents, and these accidents."""
    told = []
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        start = rng.randrange(len(content) + 1)
        end = min(len(content), start + rng.choice((1, 1, 2, 5, 20, 200)))
        what = rng.choice(
            ("flip", "cut", "insert", "remove", "splice", "repeat", "junk", "junk", "line")
        )
        told.append(f"{what} at {start}")
        if what == "flip" and content:
            i = min(start, len(content) - 1)
            changed = content[i] ^ (1 << rng.randrange(8))
            content = content[:i] + bytes([changed]) + content[i + 1 :]
        elif what == "cut":
            content = content[:start]
        elif what == "insert":
            content = content[:start] + rng.randbytes(rng.choice((1, 4, 30))) + content[start:]
        elif what == "remove":
            content = content[:start] + content[end:]
        elif what == "splice":
            i = rng.randrange(len(content) + 1)
            content = content[:start] + content[i : i + rng.choice((5, 50, 500))] + content[start:]
        elif what == "repeat":
            piece = content[start:end]
            times = min(rng.choice((2, 10, 1000)), 200_000 // max(1, len(piece)))
            content = content[:start] + piece * times + content[end:]
        elif what == "junk":
            junk = rng.choice(JUNK).encode("utf-8", "surrogatepass")
            content = content[:start] + junk + content[start:]
        else:
            lines = content.split(b"\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            if rng.random() < 0.3:
                del lines[i]
            elif rng.random() < 0.5:
                lines.insert(j, lines[i])
            else:
                lines[i], lines[j] = lines[j], lines[i]
            content = b"\n".join(lines)
    return content, ", ".join(told)


CELLS = (
    "", ".", "nan", "NA", "inf", "-inf", "1e400", "1e151", "-1e308", "1,5", "1.000,5", "0x10",
    "<0.1", ">3", "2020-01-01", "12:30", "5 mg", "abc", "é", "٣", '"', '""', "'1", "=1+1", "+1",
    "-1", "@x", "9" * 5000, "1" + "0" * 400, "\x1b[31m", "\u202e1", "\x00", "a" * 140_000, "-0",
    "1_0", "1e", "#", "1 2", "\t", "NaN", "None", "1e-400", "0", "1", "1e9",
    "1000000000000", "0.1e1", "TRUE",
)  # fmt: skip


def mutated_rows(text: str, rng: random.Random) -> tuple[str, str]:
    """Return a table after one to three changes of cells, rows or columns."""
    delimiter = max(",;\t", key=text.count)
    rows = [line.split(delimiter) for line in text.rstrip("\n").split("\n")]
    told = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        i = rng.randrange(len(rows))
        j = rng.randrange(max(1, len(rows[i])))
        what = rng.choice(
            ("cell", "cell", "cell", "row left out", "row repeated", "rows swapped",
             "columns swapped", "column left out", "column repeated", "name", "ragged",
             "delimiter", "many rows",
             "many columns", "quote", "cells swapped", "line ends")
        )  # fmt: skip
        told.append(f"{what} {i},{j}")
        if what == "cell" and j < len(rows[i]):
            rows[i][j] = rng.choice(CELLS)
            told.append(repr(rows[i][j][:20]))
        elif what == "row left out" and len(rows) > 1:
            del rows[i]
        elif what == "row repeated":
            rows.insert(i, list(rows[i]))
        elif what == "rows swapped":
            k = rng.randrange(len(rows))
            rows[i], rows[k] = rows[k], rows[i]
        elif what == "columns swapped":
            k = rng.randrange(max(1, len(rows[i])))
            for row in rows:
                if max(j, k) < len(row):
                    row[j], row[k] = row[k], row[j]
        elif what in ("column left out", "column repeated"):
            for row in rows:
                if j < len(row):
                    row[j : j + 1] = [] if what == "column left out" else [row[j]] * 2
        elif what == "name" and rows[0]:
            rows[0][min(j, len(rows[0]) - 1)] = rng.choice((*WORDS, "t", "TIME", "ID", "AMT", "y1"))
        elif what == "ragged":
            rows[i] = rows[i][:j] if rng.random() < 0.5 else [*rows[i], rng.choice(CELLS)]
        elif what == "delimiter":
            delimiter = rng.choice((",", ";", "\t", " ", "|", "\x1f"))
        elif what == "many rows":
            rows[i:i] = [list(rows[i])] * rng.choice((10, 100, 100, 2000))
        elif what == "many columns":
            count = rng.choice((10, 50, 500))
            rows = [[*row, *[f"c{k}" if r == 0 else "1" for k in range(count)]]
                    for r, row in enumerate(rows)]  # fmt: skip
        elif what == "quote" and j < len(rows[i]):
            rows[i][j] = f'"{rows[i][j]}' + ("" if rng.random() < 0.5 else '"')
        elif what == "cells swapped":
            k = rng.randrange(len(rows))
            if j < len(rows[i]) and j < len(rows[k]):
                rows[i][j], rows[k][j] = rows[k][j], rows[i][j]
    ends = rng.choice(("\n", "\n", "\n", "\r\n", "\r"))
    return ends.join(delimiter.join(row) for row in rows) + ends, ", ".join(told)
