"""The entry point ``odefit``: it handles signals from its first line, and reports failures.

It imports only fast modules; the commands are imported once its signal handlers are set.
"""

from __future__ import annotations

import errno
import signal
import sys
from collections.abc import Sequence

from odefit.cli.exit_statuses import UNUSABLE
from odefit.cli.streams import (
    end_beginning,
    guard_memory,
    leave,
    leave_unfinished,
    memory_allowed,
    prepare_streams,
    show_beginning,
    spare_bytecode,
    spare_collections,
    spare_threads,
)
from odefit.common.signals import Ended, message_of, signals_end

UNWRITTEN = {
    errno.EBADF,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EINVAL,
    errno.EIO,
    errno.ENOSPC,
    errno.EPIPE,
}
"""Errors of a stream that cannot be written; an error that knows its file has its name."""

REASON_LENGTH = 300  # longest message of an exception where memory is limited


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status.

    It is 0 for success, 2 for unusable input, 3 if no acceptable fit was found, and 4 if the time
    limit was reached. The best so far is written even then. It is 130 after Ctrl-C, 143 after
    SIGTERM, and 129 after the terminal was closed. Without `arguments` this process is the program
    ``odefit``, and signals end it.
    """
    program = arguments is None
    with signals_end(program):
        try:
            prepare_streams(program)
            if program:
                show_beginning(sys.argv[1:])
                spare_bytecode()
                spare_threads()
                spare_collections()
                guard_memory()
            from odefit.cli.commands import run

            try:
                status = run(arguments)
            except SystemExit:  # after --help and --version
                sys.stdout.flush()
                raise
            end_beginning()
            sys.stdout.flush()  # flush here, where a full disk can still be reported
            if program:
                leave_unfinished(status)
        except KeyboardInterrupt as ended:
            number = ended.number if isinstance(ended, Ended) else signal.SIGINT
            print(message_of(number), file=sys.stderr)
            return 128 + number
        except Exception as error:
            messages = _messages(error)
            if not messages:
                raise
            for message in messages:
                print(f"error: {message}", file=sys.stderr)
            if program and memory_allowed() is not None:
                leave(UNUSABLE)
            if program:
                leave_unfinished(UNUSABLE)
            return UNUSABLE
        return status


def _messages(error: Exception) -> Sequence[str]:
    """Return the message of an exception; nothing for a mistake in odefit."""
    if memory := _lack_of_memory(error):
        return [f"there is not enough memory: {str(memory) or 'an allocation has failed'}"]
    if isinstance(error, OSError) and error.errno is not None:
        if error.errno in (errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE):
            return [f"the system gives no more memory, processes or files: {error.strerror}"]
        if not error.filename and error.errno not in UNWRITTEN:
            return [f"the system refuses what odefit needs: {error.strerror or error}"]
        return [f"{error.filename or 'standard output'}: cannot be written: {error.strerror}"]
    if isinstance(error, ImportError | OSError):  # llvmlite raises the latter without a number
        reason = " ".join(str(error).split())
        hint = "is it installed, and is there enough memory?"
        return [f"a package cannot be loaded: {reason}; {hint}"]
    if (most := memory_allowed()) is not None and not hasattr(error, "messages"):
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:REASON_LENGTH]
        return [f"{reason}; this process is allowed {most} MB of memory (ulimit -v): is it enough?"]
    return getattr(error, "messages", ())  # the problems of an InputError


def _lack_of_memory(error: BaseException | None) -> MemoryError | None:
    """Return the lack of memory that led to an exception, perhaps by way of others."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error
