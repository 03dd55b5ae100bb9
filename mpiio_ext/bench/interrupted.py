"""Ctrl-C under a launcher: the first rank that can ends, and the launcher ends the others.

Problem. Each rank gets SIGINT in another place. One that goes on to the end of Python waits in MPI_Finalize for the
others; another one waits in a collective for the first, where no Python code runs. Nobody ever comes.
Algorithm. A thread waits for the signal: Python's C handler writes a byte to it at once, whatever call the rank is in.
Rank 0 removes the files of the measurement, writes the results until then, says where they are, and ends without MPI;
the launcher takes that for a failure and ends the job. SIGTERM, with which some launchers answer Ctrl-C, does the same.
The other ranks give rank 0 a few seconds for that, and then end in the same way.
Guarantees. No rank waits for another one. Results have every run that had ended.
Where SIGINT was ignored when the program began (in the background of a script) it stays so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_GRACE_S = 3.0
_PASSED_ON_S = 0.2  # in which the launcher passes on what was said
_cleaning: list[Callable[[], str | None]] = []


def on_interrupt(clean: Callable[[], str | None]) -> None:
    """Have something done by this process before an interrupt ends it, in this order; a text from it is said."""
    _cleaning.append(clean)


def _wait(descriptor: int, rank: int) -> None:
    while (number := os.read(descriptor, 1)[0]) not in _SIGNALS:
        pass  # another signal that Python handles
    said = "interrupted" if number == signal.SIGINT else "ended from outside"
    if rank:
        time.sleep(_GRACE_S)
    else:
        for clean in _cleaning:
            with contextlib.suppress(Exception):
                text = clean()
                said += f"; {text}" if text else ""
        with contextlib.suppress(OSError, ValueError):
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"mpiio-ext bench: {said}\n".encode())
        time.sleep(_PASSED_ON_S)
    os._exit(128 + number)


def end_on_interrupt(rank: int) -> None:
    """Have SIGINT and SIGTERM end this process, and with it the job. On the main thread, before MPI begins.

    Parameters
    ----------
    rank : that the launcher gives this process; 0 speaks
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    theirs, ours = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(ours, False)
    for number in _SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(ours, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(theirs, rank), name="interrupt", daemon=True).start()
