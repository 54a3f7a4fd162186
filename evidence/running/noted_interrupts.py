"""Ctrl-C turned into an event that can be asked for, instead of an exception at any place."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_noted() -> Iterator[threading.Event]:
    """Let Ctrl-C, however often, set the event and do nothing else.

    An exception in the middle of anything is no way to end a campaign. Extension modules above all
    do not survive it: the import of Matplotlib's ``ft2font``, broken off, leaves static objects
    that are destroyed after the interpreter, which then dies with "Fatal Python error:
    PyThreadState_Get".

    Where Ctrl-C is not ours to take, nothing changes: outside the main thread, and where it is
    ignored, as in a shell's background jobs.
    """
    noted = threading.Event()
    main = threading.current_thread() is threading.main_thread()
    previous = signal.getsignal(signal.SIGINT)
    if not main or previous in (None, signal.SIG_IGN):
        yield noted
        return
    signal.signal(signal.SIGINT, lambda *_: noted.set())
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, previous)
