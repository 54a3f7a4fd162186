"""Machine code: optimised by LLVM for this processor, kept on disk, loaded."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

import llvmlite
from llvmlite import binding

KEPT = 12
"""Number of versions of a kernel that stay on disk: processors, types of arguments, changes."""

LOCK = RLock()  # LLVM is used by one thread at a time

C_LIBRARY = (
    "exp log pow sin cos tan asin acos atan sinh cosh tanh fmod ceil memset memcpy memmove"
).split()
"""Functions of C that machine code may call."""

Entry = Callable[[bytes, Any], int]
Release = Callable[[int], None]


@cache
def target() -> Any:
    """Return the description of this processor for LLVM."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    python = ctypes.pythonapi
    binding.add_symbol("odefit_allocate", _address(python.PyMem_RawMalloc))
    binding.add_symbol("odefit_free", _address(python.PyMem_RawFree))
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    for name in C_LIBRARY:
        if hasattr(library, name):
            binding.add_symbol(name, _address(getattr(library, name)))
    machine = binding.Target.from_default_triple()
    return machine.create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=_features(),
        opt=3,
        reloc="static" if machine.name.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )


def _features() -> str:
    try:
        return str(binding.get_host_cpu_features().flatten())
    except RuntimeError:  # of processors that LLVM does not know
        return ""


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def identity() -> str:
    """Return what machine code depends on besides its kernel."""
    processor = binding.get_default_triple(), binding.get_host_cpu_name(), _features()
    sources = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return f"{llvmlite.__version__} {binding.llvm_version_info} {processor} {sources}"


def object_code(text: str) -> bytes:
    """Return the machine code of a module in LLVM's language."""
    machine = target()
    module = binding.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    tuning = binding.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = False
    tuning.loop_unrolling = False  # kernels are as fast without, and take two thirds of the time
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


_ENGINES: list[Any] = []  # which hold the machine code of this process


def loaded(code: bytes) -> tuple[Entry, Release]:
    """Return the entry of a module, and the function that frees its memory."""
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p)
    release = ctypes.CFUNCTYPE(None, ctypes.c_int64)
    return (
        entry(engine.get_function_address("entry")),
        release(engine.get_function_address("release")),
    )


def cache_folder() -> Path:
    """Return the folder of this user in which machine code is kept."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "odefit" / "kernels"


def kept(name: str, key: str, make: Callable[[], tuple[str, str]]) -> tuple[str, bytes]:
    """Return type of result and machine code of a module, from disk or newly made.

    `make` returns the module's text and the type of its result.
    """
    digest = hashlib.sha256(f"{identity()}\n{key}".encode()).hexdigest()
    try:
        path = cache_folder() / f"{name}-{digest[:32]}.o"
    except RuntimeError:  # a user without a home
        path = None
    if path is not None:
        try:
            check, _, content = path.read_bytes().partition(b"\n")
        except OSError:
            pass
        else:
            if check.decode() == hashlib.sha256(content).hexdigest():
                first, _, code = content.partition(b"\n")
                return first.decode(), code
    text, described = make()
    code = object_code(text)
    if path is not None:
        with suppress(OSError):  # a folder that cannot be written: made again in each process
            keep(path, described.encode() + b"\n" + code)
    return described, code


def keep(path: Path, content: bytes) -> None:
    """Write machine code with its check, completely or not at all, and remove old versions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    part.replace(path)
    name = path.name.rpartition("-")[0]
    versions = sorted(path.parent.glob(f"{name}-*.o"), key=lambda p: p.stat().st_mtime)
    for old in versions[:-KEPT]:
        old.unlink(missing_ok=True)
