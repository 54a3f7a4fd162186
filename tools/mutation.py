"""Mutation testing: the share of random changes of operators that a package's tests detect.

    python tools/mutation.py map STATE          which tests reach which lines; once, some 20 minutes
    python tools/mutation.py run STATE          300 mutants, a few seconds each; continues if ended
    python tools/mutation.py again STATE        the survivors, by the tests as they are now
    python tools/mutation.py report STATE       the table by package, and every survivor

Mutants are drawn from all packages of ``src/odefit``, in proportion to their places to change.
STATE is a folder with a copy of the tree, which is changed; the working tree is not. A mutant is
run by the fast tests of its package that reach its line until one fails: first those of the
mirrored file, and quick ones before slow ones. Lines that no test reaches by name (module level,
kernels) are run by the tests that reach the module, or by those of the whole package. A mutant is
killed by a test that fails, by an error, or by needing more than
`CPU_SECONDS`. `equivalent_mutants.toml` says which survivors change nothing, and why.

The maintained tools do not suit: mutmut copies every function into a trampoline, which breaks
kernels and worker processes; cosmic-ray has one command of tests for all mutants, and mutates the
working tree. This tool needs only coverage and pytest.
"""

from __future__ import annotations

import argparse
import compileall
import gc
import importlib
import json
import os
import pkgutil
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, ClassVar
from xml.etree import ElementTree

from mutations import Mutation, mutations

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")

COUNT = 300
TEST_SECONDS = 15.0
"""Largest number of seconds of tests for a mutant, as measured for the map."""

CPU_SECONDS, WALL_SECONDS = 30, 900
"""Limits above which a mutant counts as detected; its tests take a third without a change."""

WHOLE_FOLDER_SECONDS = 600
"""The limit for all tests of a folder, which take longer even without a change."""

BROKEN = 70
"""Exit status of a process without a verdict."""

MEMORY = 12 * 2**30
"""Bytes of address space of a mutant."""

COPIED = ("src", "tests", "tools", "evidence", "docs", "examples", "pyproject.toml")
LEFT_OUT = ("test_architecture.py", "test_docstrings.py", "test_examples.py", "test_readme.py")
"""Tests that are left out: of all modules at once, or of the documentation."""

NEEDS_MEMORY = "test_browser.py"
"""Tests with a browser, which does not start within `MEMORY`, so that every mutant would be
killed."""

PRELOADED = (
    "numpy",
    "scipy.optimize",
    "pandas",
    "hypothesis.strategies",
    "casadi",
    "llvmlite.binding",
    "numba",
    "pytest",
)


@dataclass(frozen=True)
class Test:
    """A test: its place for pytest, its file, and its seconds."""

    node: str
    file: str
    seconds: float


def copied(state: Path) -> Path:
    """The copy of the tree that is mutated."""
    tree = state / "tree"
    if not tree.exists():
        tree.mkdir(parents=True)
        for name in COPIED:
            origin = ROOT / name
            if origin.is_dir():
                shutil.copytree(origin, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(origin, tree / name)
        # Mutants write no byte code, so that none of it remains.
        compileall.compile_dir(tree, quiet=1)
    return tree


def environment(tree: Path) -> dict[str, str]:
    """Return the environment of all processes, in which the copy is imported."""
    return {
        **os.environ,
        "PYTHONPATH": str(tree / "src"),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def parts_of_tests(tree: Path) -> list[str]:
    """Return the parts of the tests, which are mapped one by one so that a run can be resumed."""
    found = []
    for path in sorted((tree / "tests").iterdir()):
        if path.name in ("methods",):
            found += sorted(path.iterdir())
        else:
            found.append(path)
    wanted = [
        p
        for p in found
        if (p.is_dir() and any(p.rglob("test_*.py")))
        or (p.name.startswith("test_") and p.name not in LEFT_OUT)
    ]
    return [str(p.relative_to(tree)) for p in wanted]


def make_map(state: Path) -> None:
    """Run all fast tests once, and store the lines that each of them reaches."""
    tree = copied(state)
    folder = state / "map"
    folder.mkdir(exist_ok=True)
    settings = folder / "coveragerc"
    settings.write_text(f"[run]\nsource = {tree}/src/odefit\n", encoding="utf-8")
    for part in parts_of_tests(tree):
        name = part.replace("/", ".")
        if (folder / f"{name}.done").exists():
            continue
        kept = {"COVERAGE_FILE": str(folder / f"{name}.coverage")}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "pytest_cov",
            "-p",
            "no:cacheprovider",
            part,
        ]
        command += ["--cov=odefit", f"--cov-config={settings}", "--cov-context=test"]
        command += ["--cov-report=", f"--junitxml={folder / f'{name}.xml'}"]
        done = subprocess.run(
            command, cwd=tree, env={**environment(tree), **kept}, capture_output=True, text=True
        )
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        print(f"{part}: {last}", flush=True)
        (folder / f"{name}.done").write_text(last, encoding="utf-8")


class Reach:
    """Which tests reach a line."""

    def __init__(self, state: Path) -> None:
        from coverage import CoverageData

        self.tree = copied(state)
        self.seconds: dict[str, float] = {}
        failed = set()
        for path in sorted((state / "map").glob("*.xml")):
            for case in ElementTree.parse(path).iter("testcase"):
                node = f"{case.get('classname')}::{case.get('name')}"
                self.seconds[node] = float(case.get("time") or 0.0)
                if any(c.tag in ("failure", "error", "skipped") for c in case):
                    failed.add(node)
        self.left_out = failed
        self.lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for path in sorted((state / "map").glob("*.coverage")):
            data = CoverageData(str(path))
            data.read()
            for file in data.measured_files():
                own = self.lines[file.rpartition("/src/odefit/")[2]]
                for line, contexts in data.contexts_by_lineno(file).items():
                    own[line].update(c.rpartition("|")[0] for c in contexts if "|" in c)

    def test(self, node: str) -> Test:
        """A test by its place."""
        file, _, name = node.partition("::")
        key = f"{file.removesuffix('.py').replace('/', '.')}::{name}"
        return Test(node, file, self.seconds.get(key, 1.0))

    def tests(self, mutation: Mutation) -> tuple[list[Test], str]:
        """Return the tests for a mutant, and the rule by which they were chosen."""
        lines = self.lines.get(mutation.path, {})
        rows = range(mutation.line, mutation.line + mutation.before.count("\n") + 1)
        nodes = {n for row in rows for n in lines.get(row, ())}
        how = "line"
        found = self._of_package(mutation, nodes)
        if not found:
            how = "module"
            found = self._of_package(mutation, {n for v in lines.values() for n in v})
        if not found or "/bdf/" in mutation.path:
            how = "package" if not found else "module and package"
            everything = {n for f in self.lines.values() for v in f.values() for n in v}
            found = [*found, *(t for t in self._of_package(mutation, everything) if t not in found)]
        return self._within_time(mutation, found), how

    def _of_package(self, mutation: Mutation, nodes: Iterable[str]) -> list[Test]:
        place = "tests/" if mutation.package == "odefit" else f"tests/{mutation.package}/"
        tests = [self.test(n) for n in nodes if n.startswith(place)]
        return [
            t
            for t in tests
            if self._key(t) not in self.left_out and not t.file.endswith(NEEDS_MEMORY)
        ]

    @staticmethod
    def _key(test: Test) -> str:
        name = test.node.partition("::")[2]
        return f"{test.file.removesuffix('.py').replace('/', '.')}::{name}"

    @staticmethod
    def _within_time(mutation: Mutation, tests: list[Test]) -> list[Test]:
        folder, _, name = mutation.path.rpartition("/")
        mirrored = f"tests/{folder}/test_{name}" if folder else f"tests/test_{name}"
        beside = f"tests/{folder}/"
        ordered = sorted(
            tests,
            key=lambda t: (t.file != mirrored, not t.file.startswith(beside), t.seconds, t.node),
        )
        found: list[Test] = []
        spent = 0.0
        for test in ordered:
            if spent + test.seconds <= TEST_SECONDS or not found:
                found.append(test)
                spent += test.seconds
        return found


def met(
    tree: Path, mutation: Mutation, tests: list[str], seconds: int = CPU_SECONDS
) -> tuple[str, str]:
    """Return the outcome, ``"killed"``, ``"survived"`` or ``"broken"``, and its cause."""
    path = tree / "src" / "odefit" / mutation.path
    source, stat = path.read_bytes(), path.stat()
    changed = mutation.of(source)
    try:
        path.write_bytes(changed)  # for child processes of the tests
        functions = Loaded.patches(path, source, changed)
        if functions is None:
            return run_afresh(tree, tests, seconds)
        return run_tests(tree, tests, functions, seconds)
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


Patches = list[tuple[FunctionType, CodeType]]


class Loaded:
    """The modules of the copy, imported once before all mutants."""

    functions: ClassVar[dict[str, list[FunctionType]]] = {}

    @classmethod
    def load(cls, tree: Path) -> None:
        """Import all modules, and note their functions by file."""
        os.environ.update(environment(tree))
        sys.path.insert(0, str(tree / "src"))
        for name in PRELOADED:
            importlib.import_module(name)
        for found in pkgutil.walk_packages([str(tree / "src" / "odefit")], "odefit."):
            # Only an optional part may be missing.
            if not found.name.endswith("__main__"):
                with suppress(ImportError):
                    importlib.import_module(found.name)
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType):
                cls.functions.setdefault(thing.__code__.co_filename, []).append(thing)

    @classmethod
    def patches(cls, path: Path, source: bytes, changed: bytes) -> Patches | None:
        """Return the new code of all mutated functions; None if a fresh interpreter is needed.

        Code that runs on import (module level, classes, defaults) and kernels need one.
        """
        name = str(path)
        if "/bdf/" in name or name not in cls.functions:
            return None
        before, after = (_code_by_place(compile(s, name, "exec")) for s in (source, changed))
        if before.keys() != after.keys():
            return None
        different = {k: v for k, v in after.items() if _own(v) != _own(before[k])}
        found = [
            (function, after[key])
            for function in cls.functions[name]
            if (key := _place(function.__code__)) in after
        ]
        inside = {key for function, _ in found for key in _code_by_place(function.__code__)}
        return found if different and different.keys() <= inside else None


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _code_by_place(code: CodeType) -> dict[tuple[str, int], CodeType]:
    found = {_place(code): code}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found.update(_code_by_place(inner))
    return found


def _own(code: CodeType) -> tuple[Any, ...]:
    """Return the content of a piece of code without the functions in it."""
    constants = [repr(c) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_code, constants, code.co_names


def run_tests(tree: Path, tests: list[str], patches: Patches, seconds: int) -> tuple[str, str]:
    """Run tests in a fork of this process, with some functions changed."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        pid = os.fork()
        if pid == 0:
            os.setsid()
            _run_in_child(tree, tests, log, patches, seconds)
        ended = _wait(pid, WALL_SECONDS)
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return verdict(ended, text)


def verdict(ended: int | None, text: str) -> tuple[str, str]:
    """Return the verdict from an exit status of pytest and its output."""
    failed = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    by = failed[0].split(" - ")[0] if failed else text.strip()[-200:]
    if ended is None:
        return "killed", "time"
    if ended == 0:
        return "survived", ""
    uncollected = ended == 4 and any(line.startswith("ERROR ") for line in failed)
    if ended in (BROKEN, 4, 5) and not uncollected:  # pytest was not run, or found no tests
        return "broken", by
    return "killed", by or f"exit status {ended}"


OPTIONS = (
    "-x", "-q", "-p", "no:cacheprovider", "--tb=no", "--assert=plain",
    f"--ignore-glob=*{NEEDS_MEMORY}",
)  # fmt: skip
"""Assertions are not rewritten, since that would be repeated for every mutant and all plugins."""


def _run_in_child(tree: Path, tests: list[str], log: Path, patches: Patches, seconds: int) -> None:
    import pytest

    status = BROKEN
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as in a separate process
        for function, code in patches:
            function.__code__ = code
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.chdir(tree)
        out = os.open(log, os.O_WRONLY | os.O_CREAT)
        os.dup2(out, 1)
        os.dup2(out, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        status = int(pytest.main([*OPTIONS, *tests]))
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        os._exit(status)


def run_afresh(tree: Path, tests: list[str], seconds: int) -> tuple[str, str]:
    """Run tests in a new interpreter, which compiles all kernels again."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": folder}
        with (Path(folder) / "log").open("w+", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *OPTIONS, *tests],
                cwd=tree,
                env={**environment(tree), **own},
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)),
            )
            ended = _wait(process.pid, WALL_SECONDS)
            log.seek(0)
            return verdict(ended, log.read())


def _wait(pid: int, seconds: float) -> int | None:
    """Return the exit status of a child; None if it took too long."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                code = os.waitstatus_to_exitcode(status)
                return None if code == -signal.SIGXCPU else code
            time.sleep(0.05)
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return None
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        raise


def drawn(tree: Path, count: int, seed: int) -> list[Mutation]:
    """Return the mutants of a seed: of each package in proportion to its share, at least one."""
    source = tree / "src" / "odefit"
    every: dict[str, list[Mutation]] = defaultdict(list)
    for path in sorted(source.rglob("*.py")):
        for mutation in mutations(source, str(path.relative_to(source))):
            every[mutation.package].append(mutation)
    total = sum(len(v) for v in every.values())
    shares = {k: max(1, round(count * len(v) / total)) for k, v in every.items()}
    largest = max(shares, key=lambda k: shares[k])
    shares[largest] += count - sum(shares.values())
    chance = random.Random(seed)
    found = [m for k in sorted(every) for m in chance.sample(every[k], shares[k])]
    chance.shuffle(found)  # so a run that ends early has covered all packages
    return found


def read(path: Path) -> list[dict[str, Any]]:
    """Return the finished mutants."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, kept: Mapping[str, Any]) -> None:
    """Store the finished mutants."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(kept) + "\n")


def run(state: Path, count: int, seed: int, packages: list[str]) -> None:
    """Run the tests of all mutants."""
    Loaded.load(copied(state))
    reach, path = Reach(state), state / f"mutants-{seed}.jsonl"
    done = {(k["path"], k["start"], k["after"]) for k in read(path)}
    for mutation in drawn(reach.tree, count, seed):
        if (mutation.path, mutation.start, mutation.after) in done:
            continue
        if packages and mutation.package not in packages:
            continue
        began = time.monotonic()
        tests, how = reach.tests(mutation)
        outcome, by = (
            met(reach.tree, mutation, [t.node for t in tests]) if tests else ("survived", "")
        )
        spent = round(time.monotonic() - began, 1)
        code = (reach.tree / "src" / "odefit" / mutation.path).read_text(encoding="utf-8")
        shown = code.splitlines()[mutation.line - 1].strip()
        told = {
            "code": shown,
            "outcome": outcome,
            "by": by,
            "tests": len(tests),
            "how": how,
            "seconds": spent,
        }
        write(path, {**asdict(mutation), **told})
        print(
            f"{outcome} {spent} s {mutation.path}:{mutation.line} "
            f"{mutation.before!r} -> {mutation.after!r} ({len(tests)} tests by {how}) {by}",
            flush=True,
        )


def mirrored(mutation: Mutation, tree: Path) -> list[list[str]]:
    """Return the tests of the mirrored file, then those of its folder and of its package."""
    path = Path(mutation.path)
    folder = Path("tests") / path.parent
    while not (tree / folder).is_dir():
        folder = folder.parent
    own = folder / f"test_{path.name}"
    first = [[str(own)]] if (tree / own).exists() else []
    if folder == Path("tests"):
        files = sorted((tree / folder).glob("test_*.py"))
        return [*first, [str(p.relative_to(tree)) for p in files if p.name not in LEFT_OUT]]
    return [*first, [str(folder)]]


def moved(mutation: Mutation, before: bytes, after: bytes) -> Mutation | None:
    """Return the mutation in a later version of its file; None if its lines changed."""
    first = before.rfind(b"\n", 0, mutation.start) + 1
    last = before.find(b"\n", mutation.end)
    lines = before[first : last if last >= 0 else None]
    places = []
    at = after.find(lines)
    while at >= 0:
        places.append(at)
        at = after.find(lines, at + 1)
    if not places:
        return None
    shift = min(places, key=lambda place: abs(place - first)) - first
    return replace(mutation, start=mutation.start + shift, end=mutation.end + shift)


def again(state: Path, seed: int) -> None:
    """Run all present tests of the mirrored folder for the survivors, in a new copy."""
    fresh = state / "again"
    shutil.rmtree(fresh, ignore_errors=True)
    tree = copied(fresh)
    Loaded.load(tree)
    kept = read(state / f"again-{seed}.jsonl")
    done = {(k["path"], k["line"], k["after"]) for k in kept if k["outcome"] == "killed"}
    fields = Mutation.__dataclass_fields__
    for told in read(state / f"mutants-{seed}.jsonl"):
        key = (told["path"], told["line"], told["after"])
        if told["outcome"] == "killed" or key in done or reason(told) is not None:
            continue
        mutation = Mutation(**{k: told[k] for k in fields})
        path = Path("src") / "odefit" / mutation.path
        found = moved(mutation, (state / "tree" / path).read_bytes(), (tree / path).read_bytes())
        if found is None:
            print(f"changed since: {mutation.path}:{mutation.line}", flush=True)
            continue
        for tests in mirrored(mutation, tree):
            outcome, by = met(tree, found, tests, WHOLE_FOLDER_SECONDS)
            if outcome == "killed":
                break
        write(state / f"again-{seed}.jsonl", {**told, "outcome": outcome, "by": by})
        print(f"{outcome} {mutation.path}:{mutation.line} {mutation.after!r} {by}", flush=True)


def reason(told: Mapping[str, Any]) -> str | None:
    """Return the reason why a mutant changes nothing; None if there is no known reason."""
    if not EQUIVALENT.exists():
        return None
    for entry in tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", ()):
        if all(entry[k] == told.get(k) for k in ("path", "code", "before", "after")):
            return str(entry["reason"])
    return None


def report(state: Path, seed: int) -> str:
    """The table by package, and every survivor."""
    first = read(state / f"mutants-{seed}.jsonl")
    later = {(k["path"], k["line"], k["after"]): k for k in read(state / f"again-{seed}.jsonl")}
    counts: Counter[tuple[str, str]] = Counter()
    fields = Mutation.__dataclass_fields__
    survivors, equivalents = [], []
    for told in first:
        outcome = told["outcome"]
        found = later.get((told["path"], told["line"], told["after"]), told)
        why = reason(told)
        place = f"{told['path']}:{told['line']}, `{told['before']}` to `{told['after']}`"
        place = " ".join(place.split())
        if outcome == "killed":
            verdict = "killed"
        elif why is not None:
            verdict = "equivalent"
            equivalents.append(f"- {place}: {why}")
        elif found["outcome"] == "killed":
            verdict = "killed by new tests"
        else:
            verdict = "survived"
            survivors.append(f"- {place}")
        package = Mutation(**{k: told[k] for k in fields}).package
        counts[package, verdict] += 1
        counts["all", verdict] += 1
    verdicts = ("killed", "killed by new tests", "survived", "equivalent")
    packages = sorted({p for p, _ in counts} - {"all"})
    columns = ["package", "mutants", *verdicts, "killed of those that change behaviour"]
    lines = [f"| {' | '.join(columns)} |", "|---|" + "--:|" * (len(columns) - 1)]
    for package in [*packages, "all"]:
        row = [counts[package, v] for v in verdicts]
        changing = sum(row) - row[3]
        share = f"{100 * (row[0] + row[1]) / changing:.0f} %" if changing else ""
        lines.append(f"| {package} | {sum(row)} | {' | '.join(map(str, row))} | {share} |")
    return "\n".join(
        [*lines, "", "Survivors:", "", *survivors, "", "Equivalent:", "", *equivalents]
    )


def main() -> None:
    """Read the command, and do it."""
    # However this process ends, the changed file gets its original text again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("command", choices=["map", "run", "again", "report"])
    parser.add_argument("state", type=Path)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--packages", nargs="*", default=[], help="of these alone")
    options = parser.parse_args()
    state = options.state.resolve()
    if options.command == "map":
        make_map(state)
    elif options.command == "run":
        run(state, options.count, options.seed, options.packages)
    elif options.command == "again":
        again(state, options.seed)
    else:
        print(report(state, options.seed))


if __name__ == "__main__":
    main()
