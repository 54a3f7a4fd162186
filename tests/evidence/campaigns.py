"""Campaigns made of trouble, which the tests run in real processes."""

from __future__ import annotations

import ctypes
import enum
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from evidence.running.campaign import Campaign, Record, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOG = "ODEFIT_TEST_LOG"
"""Environment variable: a directory where every run of a task leaves a line."""


def plain_tasks() -> list[Task]:
    return [
        {"key": f"{shape} {n}", "shape": shape, "n": n}
        for n in range(6)
        for shape in ("square", "cube")
    ]


def trouble_tasks() -> list[Task]:
    kinds = "fine exit hang raise segfault killed memory shout odd last".split()
    return [{"key": kind, "kind": kind} for kind in kinds]


def run_plain(task: Task) -> Mapping[str, Any]:
    note(task)
    time.sleep(0.05)
    return {"value": task["n"] ** (2 if task["shape"] == "square" else 3)}


def run_slow(task: Task) -> Mapping[str, Any]:
    note(task)
    time.sleep(0.25)
    return {"value": task["n"]}


def run_trouble(task: Task) -> Mapping[str, Any]:
    note(task)
    kind = task["kind"]
    if kind == "exit":
        os.write(1, b"out of ideas")
        os._exit(3)
    if kind == "hang":
        while True:
            time.sleep(10)
    if kind == "raise":
        raise ValueError("the [bad] luck")
    if kind == "segfault":
        ctypes.string_at(0)
    if kind == "killed":
        os.kill(os.getpid(), 9)
    if kind == "memory":
        return {"much": len(bytearray(2**34))}
    if kind == "shout":
        os.write(1, b"x" * 10**6)
    if kind == "odd":
        return {"nan": float("nan"), "infinite": float("inf")}
    return {"pid": os.getpid()}


def note(task: Task) -> None:
    folder = os.environ.get(LOG)
    if folder:
        with (Path(folder) / "runs.txt").open("a", encoding="utf-8") as file:
            file.write(f"{task['key']}|{os.getpid()}\n")


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    rows = [{"task": r.key, "value": r.result["value"]} for r in records if r.result]
    return {"values": pd.DataFrame(rows, columns=["task", "value"])}


def interrupted_tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Ctrl-C, twice: ``timeout`` sends it to a process and then to its group."""
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)
    return tables(records)


def tables_before_interrupted_fonts(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Later, Ctrl-C while Matplotlib's extension module for fonts makes its enumerations."""
    assert "matplotlib" not in sys.modules
    make = enum.EnumType.__call__

    def interrupting(cls: Any, value: Any, *names: Any, **options: Any) -> Any:
        if value == "Kerning":
            sys.stdout.write("Ctrl-C among the fonts\n")
            signal.raise_signal(signal.SIGINT)
        return make(cls, value, *names, **options)

    enum.EnumType.__call__ = interrupting  # type: ignore[method-assign]
    return tables(records)


def figures(records: Sequence[Record]) -> Mapping[str, Figure]:
    from matplotlib.figure import Figure

    return {"empty": Figure()}


def no_tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    return {}


PLAIN = Campaign("plain", "powers", plain_tasks, run_plain, tables)
SLOW = Campaign("slow", "a quarter of a second each", plain_tasks, run_slow, tables)
TWICE = Campaign("twice", "Ctrl-C twice", plain_tasks, run_plain, interrupted_tables, figures)
FONTS = replace(TWICE, name="fonts", tables=tables_before_interrupted_fonts)
TROUBLE = Campaign("trouble", "", trouble_tasks, run_trouble, no_tables, seconds=1.5, memory=2**30)
