"""What goes where, and what needs nothing heavy."""

from __future__ import annotations

import errno
import os
import random
import shlex
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from odefit.cli import streams
from tests.cli.commands import COMMAND, run

Capture = pytest.CaptureFixture[str]


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("odefit 0.")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        *(pytest.param(a, marks=pytest.mark.slow) for a in (["fit", "--help"], ["--version"])),
    ],
)
def test_help_needs_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom odefit.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        "print(*sorted(set(sys.modules) & {'casadi', 'heyoka', 'matplotlib', 'numpy', 'pandas', "
        "'rich', 'scipy'}), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout
    assert set(ran.stderr.split()) <= {"numpy"}  # of `import odefit` itself


@pytest.mark.slow
def test_results_go_to_standard_output_and_all_else_to_standard_error(folder: Path) -> None:
    ran = subprocess.run(
        [*COMMAND, "fit", "decay.toml", "--report", "r.md", "--starts", "1"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0
    assert ran.stderr == "report: r.md\n"
    assert "report: r.md" not in ran.stdout
    assert "\x1b" not in ran.stdout  # no colours where there is no terminal


@pytest.mark.slow
def test_a_reader_that_closes_the_pipe_causes_no_error(folder: Path) -> None:
    ran = subprocess.run(
        f"{shlex.join(COMMAND)} simulate decay.toml --set k=1 s=1 --times 0:9:200000 | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=120,
    )
    assert ran.stdout == "t,x,y\n"
    assert "Traceback" not in ran.stderr
    assert "Error" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["fit", "decay.toml", "--starts", "1", "--json", "r.json", "--table", "t.csv"],
         {"r.json", "t.csv", "r.md"}),
        pytest.param(["profile", "decay.toml", "--json", "r.json", "--plot", "p.svg"],
                     {"r.json", "p.svg", "r.md"}, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_a_closed_pipe_ends_printing_alone(
    folder: Path, arguments: list[str], written: set[str]
) -> None:
    """As `odefit fit ... --report r.html 2>&1 | head -1` after minutes of work."""
    before = {p.name for p in folder.iterdir()}
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody:
        command = [*COMMAND, *arguments, "--report", "r.md", "--jobs", "1"]
        ran = subprocess.run(command, stdout=nobody, stderr=nobody, check=False, timeout=120)
    assert ran.returncode == 0
    assert {p.name for p in folder.iterdir()} - before == written  # and no checkpoint


@pytest.mark.skipif(os.name != "posix", reason="needs streams of POSIX")
@pytest.mark.parametrize("argument", ["--version", pytest.param("--help", marks=pytest.mark.slow)])
def test_output_that_cannot_be_written_is_told_of_help_as_well(argument: str) -> None:
    ran = subprocess.run(
        [*COMMAND, argument], stderr=subprocess.PIPE, text=True, check=False, timeout=120,
        preexec_fn=partial(os.close, 1),
    )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stderr == "error: standard output: cannot be written: Bad file descriptor\n"


@pytest.mark.slow
def test_letters_that_the_encoding_lacks_are_printed_as_question_marks(folder: Path) -> None:
    """Pipes on Windows have such encodings, which know no Greek letters."""
    stored = Path(__file__).parents[1] / "results-format-1" / "0.1-single-shooting.json"
    text = stored.read_text(encoding="utf-8").replace('"decay"', '"decay \u03b1"')
    (folder / "named.json").write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [*COMMAND, "show", "named.json"],
        capture_output=True,
        cwd=folder,
        env=dict(os.environ) | {"PYTHONIOENCODING": "ascii"},
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(b"decay ?  SingleShooting")


PRINTED = r"""
from odefit.cli.streams import prepare_streams
prepare_streams(True)
print("x \ud800 \udce9 \u03b1")
"""


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_half_a_character_is_printed_as_a_question_mark(errors: str) -> None:
    """The second is Python's way in the locales C, C.UTF-8 and POSIX."""
    ran = subprocess.run(
        [sys.executable, "-c", PRINTED],
        capture_output=True,
        env=dict(os.environ) | {"PYTHONIOENCODING": f"utf-8:{errors}"},
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    kept = b"?" if errors == "strict" else b"\xe9"  # a byte of a file's name
    assert ran.stdout.strip() == b"x ? " + kept + " \u03b1".encode()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs limits of POSIX")
def test_a_limit_on_the_size_of_files_leaves_no_module_in_parts(tmp_path: Path) -> None:
    """Python writes what fits of its bytecode and does not notice: no later start could read it."""
    import resource

    environment = dict(os.environ) | {"PYTHONPYCACHEPREFIX": str(tmp_path / "cache")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    for arguments, prepared in ((["--version"], None), (["methods"], limited), (["methods"], None)):
        ran = subprocess.run(
            [*COMMAND, *arguments],
            capture_output=True,
            text=True,
            env=environment,
            preexec_fn=prepared,
            check=False,
            timeout=300,
        )
        assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("1", "1")),
        ({"OPENBLAS_NUM_THREADS": "2"}, ("2", None)),
        ({"OMP_NUM_THREADS": "2"}, (None, None)),
    ],
)
def test_linear_algebra_takes_one_thread_unless_the_user_has_set_a_number(
    given: dict[str, str], expected: tuple[str | None, str | None]
) -> None:
    code = (
        "import os, sys\nfrom odefit.cli import main\nprint('numpy' in sys.modules)\n"
        "sys.argv = ['odefit', '--version']\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*map(os.environ.get, ('OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')))"
    )
    others = {k: v for k, v in os.environ.items() if k not in streams.THREADS}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=others | given)
    first, *_, last = ran.stdout.splitlines()
    assert first == "False"  # NumPy reads the variables when it is imported
    assert last == " ".join(map(str, expected))


def test_the_program_looks_for_garbage_rarely_and_a_calling_program_as_before() -> None:
    code = (
        "import gc, sys; from odefit.cli.main import main; sys.argv[1:] = ['library']; "
        "main({}); print(*gc.get_threshold(), gc.isenabled())"
    )
    for argument, seldom in (("", True), ("['library']", False)):
        command = [sys.executable, "-c", code.format(argument)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        first, *_, enabled = ran.stdout.splitlines()[-1].split()
        assert enabled == "True"
        assert (int(first) == 10_000) is seldom


@pytest.mark.skipif(os.name != "posix", reason="needs limits of POSIX")
def test_bytecode_is_written_unless_the_disk_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    from odefit.cli import streams

    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    streams.spare_bytecode()
    assert not sys.dont_write_bytecode
    monkeypatch.setattr(streams, "LEAST_FREE", 1e30)
    streams.spare_bytecode()
    assert sys.dont_write_bytecode
    assert os.environ["PYTHONDONTWRITEBYTECODE"] == "1"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the address space")
def test_a_package_that_would_hang_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OpenBLAS waits for ever for 32 MB that it does not get."""
    guard = streams.Guard(500)
    monkeypatch.setattr(streams, "_address_space", lambda: 430)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    for name in streams.SHARED:
        monkeypatch.delitem(sys.modules, name, raising=False)
    guard.find_spec("pandas")
    with pytest.raises(ModuleNotFoundError, match=r"pyarrow takes 170 MB"):
        guard.find_spec("pyarrow")  # so Pandas works without it
    with pytest.raises(MemoryError, match=r"scipy\.linalg takes 150 MB.* and 70 of the 500 MB"):
        guard.find_spec("scipy.linalg")
    with pytest.raises(MemoryError, match=r"scipy\.special takes 150 MB.* and 70 of the 500 MB"):
        guard.find_spec("scipy.special")
    monkeypatch.setitem(sys.modules, "scipy.special", sys)
    guard.find_spec("scipy.linalg")  # OpenBLAS is loaded
    monkeypatch.delitem(sys.modules, "scipy.special")
    monkeypatch.setattr(streams, "_address_space", lambda: 350)
    guard.find_spec("scipy.linalg")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the address space")
@pytest.mark.parametrize("command", ["sensitivity", "check", "simulate"])
def test_a_limit_of_memory_ends_a_command_with_a_sentence(command: str, folder: Path) -> None:
    """`sensitivity` waited for ever within 462 and 500 MB, and LLVM aborted within 496."""
    import resource

    drawn = random.Random(f"38 {command}")
    arguments = ["decay.toml", *(() if command == "check" else ("--set", "k=1", "s=2"))]
    for most in [
        462_000_000,
        500_000_000,
        *(drawn.randrange(300, 700) * 1_000_000 for _ in range(3)),
    ]:
        ran = subprocess.run(
            [*COMMAND, command, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_AS, (most, most)),
        )
        what = f"{command} {most}: {ran.returncode} {ran.stderr}"
        assert ran.returncode in (0, 2), what
        assert "Traceback" not in ran.stderr, what
        assert ran.returncode == 0 or ran.stderr.strip(), what


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left"), "standard output: cannot be written: No space"),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory"), "the system refuses"),
        (PermissionError(errno.EACCES, "denied", "r.json"), "r.json: cannot be written: denied"),
    ],
)
def test_an_error_is_one_of_the_standard_output_only_in_writing(
    error: OSError, message: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fails(_: object) -> int:
        raise error

    monkeypatch.setattr("odefit.cli.commands.run", fails)
    assert run("methods") == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")


def test_an_exception_for_want_of_memory_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Extension modules turn a MemoryError into exceptions of other kinds."""

    def fails(_: object) -> int:
        raise SystemError("error return without exception set") from MemoryError("an array")

    monkeypatch.setattr("odefit.cli.commands.run", fails)
    assert run("methods") == 2
    assert capsys.readouterr().err == "error: there is not enough memory: an array\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_command_says_on_a_terminal_that_it_reads_before_it_loads_modules(folder: Path) -> None:
    import pty

    code = (
        "import sys\nfrom odefit.cli import main\n"
        "class Loaded:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'odefit.cli.commands':\n"
        "            print('[loads]', end='', file=sys.__stderr__, flush=True)\n"
        "sys.meta_path.insert(0, Loaded())\n"
        "sys.argv[1:] = ['check', 'decay.toml']\nsys.exit(main())"
    )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    printed = b""
    with suppress(OSError):  # the end of a terminal
        while part := os.read(ours, 4096):
            printed += part
    assert process.wait(timeout=120) == 0
    text = printed.decode()
    assert text.startswith("reading ...[loads]")
    rest = text.removeprefix("reading ...[loads]")
    assert rest.startswith("\r           \r")  # removed by the first output
    assert "decay" in rest
    assert "reading" not in rest
