"""A measurement that is ended from outside: every rank ends at once, and its files and results are put in order.

Problem. One rank that tidies up while others wait for it in a collective keeps the job alive. No Python code runs in a
collective call, or while a library has Python's lock; and a rank that reaches the end of Python waits in MPI_Finalize.

Algorithm. SIGINT and SIGTERM have their default action: the system ends each rank in whatever call it is, and the
launcher ends those that got no signal. A small process in a session of its own accompanies the rank that makes folders.
The process reads a pipe, and that rank alone has the other end of the pipe. The process receives the names of the
temporary folder and of the folder of results. A pipe that closes without a last word means that the rank is dead,
however it died. Then the process removes the temporary folder, and a folder of results that contains no results. A
folder that contains results gets its table and page (`results.rest`).

Guarantees. No rank waits for another one. Nothing temporary stays on this host. Results have every row that had ended.
Where SIGINT was ignored when the program began (in the background of a script) it stays so.

Also a script that needs the standard library alone: ``interrupted.py DESCRIPTOR``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time

#: How long ranks that are ended may go on to write into the folder, s.
_DYING_S = 10.0
_STEP_S = 0.05
#: A bar of progress without an end: its line is emptied, and the cursor shown again.
_OVER_THE_BAR = "\r\x1b[2K\x1b[?25h"
#: MPICH leaves its shared memory, megabytes, when ranks are killed; mpirun of Open MPI removes its own.
_SEGMENT = "/dev/shm/mpich_shm_"
#: The end of the pipe that this process has, once there is one.
_pipe: list[int] = []


def end_on_interrupt() -> None:
    """Have SIGINT and SIGTERM end this process wherever it is, and with it the job."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _send(**words: object) -> None:
    if not _pipe:
        theirs, ours = os.pipe()
        try:
            subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, str(theirs)],
                pass_fds=[theirs],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:  # no process is left to be had: then an end from outside leaves its folder
            os.close(ours)
            return
        finally:
            os.close(theirs)
        _pipe.append(ours)
    with contextlib.suppress(OSError):
        os.write(_pipe[0], f"{json.dumps(words)}\n".encode())


def remove_at_the_end(folder: str | os.PathLike[str]) -> None:
    """Have a folder removed when this process dies before `all_is_done`."""
    _send(folder=os.path.abspath(folder))  # noqa: PTH100  (a script of the standard library)


def report_at_the_end(
    output: str | os.PathLike[str], *, kept: str | os.PathLike[str], title: str = "", speak_to: str = ""
) -> None:
    """Have the results in a folder reported, or the empty folder removed, when this process dies before `all_is_done`.

    Parameters
    ----------
    output : folder of results.
    kept : it, or the folder above it, that was there before; empty folders below go.
    title : of the page that is made of the results; "": there is no page.
    speak_to : file of the launcher, in /proc, that gets the words, for it may not pass on what is printed behind its
        job; "": as errors.
    """
    _send(output=os.path.abspath(output), kept=os.path.abspath(kept), title=title, speak_to=speak_to)  # noqa: PTH100


def all_is_done() -> None:
    """Let all files stay as they are when this process dies; harmless if nothing was requested before."""
    if _pipe:
        _send(done=True)
        os.close(_pipe.pop())


# ---- the process beside it ----


def _remove(folder: str) -> None:
    until = time.monotonic() + _DYING_S
    while os.path.exists(folder) and time.monotonic() < until:  # noqa: PTH110  (a script of the standard library)
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(_STEP_S)


def _remove_empty(folder: str, kept: str) -> None:
    with contextlib.suppress(OSError):
        while folder.startswith(f"{kept}{os.sep}"):
            os.rmdir(folder)  # noqa: PTH106  (as above)
            folder = os.path.dirname(folder)  # noqa: PTH120  (as above)


def _say(text: str, launcher: str) -> None:
    """Print a line; in a file behind the launcher's own output, whose place another writer does not move."""
    until = time.monotonic() + _DYING_S
    waits = launcher and stat.S_ISREG(os.fstat(2).st_mode)
    while waits and os.path.exists(launcher) and time.monotonic() < until:  # noqa: PTH110  (as above)
        time.sleep(_STEP_S)
    over = _OVER_THE_BAR if os.isatty(2) else ""
    with contextlib.suppress(OSError):
        os.write(2, f"{over}mpiio-ext: {text}\n".encode())


def _segments() -> set[str]:
    """Return the shared memory of the MPI library that the rank beside this process has."""
    with contextlib.suppress(OSError), open(f"/proc/{os.getppid()}/maps", encoding="utf-8") as maps:  # noqa: PTH123
        return {line.split(maxsplit=5)[5].strip() for line in maps if _SEGMENT in line}
    return set()


def _tidy(orders: dict[str, str], segments: set[str]) -> None:
    """Remove or complete what a dead rank has left behind. `orders` are the orders that the rank sent."""
    for segment in segments:
        with contextlib.suppress(OSError):
            os.unlink(segment)  # noqa: PTH108  (as above)
    if "folder" in orders:
        _remove(orders["folder"])
    output = orders.get("output", "")
    if os.path.exists(os.path.join(output, "results.json")):  # noqa: PTH110, PTH118  (as above)
        _say(f"ended early; {output} has the results until then", orders["speak_to"])
        if orders["title"]:
            os.dup2(2, 1)
            os.execv(sys.executable, [sys.executable, "-m", "mpiio_ext.bench.results.rest", output, orders["title"]])
    elif output:
        _remove_empty(output, orders["kept"])
        _say("ended early; no run had ended, so there are no results", orders["speak_to"])


def _speak(path: str) -> None:
    """Write to a file from now on, and close the rank's own output: launchers wait until no process has it."""
    with contextlib.suppress(OSError):
        to = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY)
        os.dup2(to, 1)
        os.dup2(to, 2)
        os.close(to)


def _watch(descriptor: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    orders: dict[str, str] = {}
    segments: set[str] = set()
    with os.fdopen(descriptor, encoding="utf-8") as lines:
        for line in lines:
            orders |= json.loads(line)
            segments |= _segments()
            if orders.get("speak_to"):
                _speak(orders["speak_to"])
    if "done" not in orders:
        _tidy(orders, segments)


if __name__ == "__main__":
    _watch(int(sys.argv[1]))
