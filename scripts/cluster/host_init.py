"""The first process of a host: gives it its name, runs the commands that agents bring, and ends with the host.

``python host_init.py SOCKET NAME TMPDIR`` inside the host's namespaces; agent.py is the other side. One connection is
one command: a JSON line with ``words``, ``environment`` and ``folder``, with which the agent's standard input, output
and error come as descriptors. The answer is the exit status in text, when the command ends. An agent that goes away
takes its command along, as a broken terminal would (SIGHUP to its session), and for certain some seconds later. Nothing
but Python's own library is used.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

Listening = selectors.DefaultSelector()
#: Seconds from SIGHUP to SIGKILL.
GRACE_S = 5.0
#: Process groups whose agent has gone, and when they are killed.
Leaving: dict[int, float] = {}


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the command and its three descriptors."""
    text, held = b"", array.array("i")
    while not text.endswith(b"\n"):
        part, extra, _, _ = connection.recvmsg(1 << 16, socket.CMSG_SPACE(3 * held.itemsize))
        if not part:
            raise EOFError
        text += part
        for level, kind, data in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                held.frombytes(data[: len(data) - len(data) % held.itemsize])
    return json.loads(text), held.tolist()


def start(command: dict[str, Any], descriptors: list[int]) -> int:
    """Start a command in a session of its own; its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(3, 1 << 16)
        for number in (signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(command["folder"])
        environment = {**command["environment"], "TMPDIR": sys.argv[3]}
        os.execvpe(command["words"][0], command["words"], environment)
    except OSError as error:
        os.write(2, f"{command['words'][0]}: {error}\n".encode())
    os._exit(127)


def reap(running: dict[int, socket.socket]) -> None:
    """Report to agents how their commands have ended; orphans end here, too."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        connection = running.pop(pid, None)
        if connection is not None:
            code = os.waitstatus_to_exitcode(status)
            Listening.unregister(connection)
            with contextlib.suppress(OSError):
                connection.sendall(f"{code if code >= 0 else 128 - code}\n".encode())
            connection.close()


def hang_up(connection: socket.socket, running: dict[int, socket.socket]) -> None:
    """End the command of an agent that has gone."""
    for pid, other in list(running.items()):
        if other is connection:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGHUP)
                Leaving[pid] = time.monotonic() + GRACE_S
            del running[pid]
    Listening.unregister(connection)
    connection.close()


def end_leaving() -> float | None:
    """Kill processes whose time is over; return seconds until the next, None if there is none."""
    now_s = time.monotonic()
    for group in [group for group, end_s in Leaving.items() if end_s <= now_s]:
        del Leaving[group]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    return min(Leaving.values()) - now_s if Leaving else None


def take(listener: socket.socket, running: dict[int, socket.socket]) -> None:
    """Accept an agent and start its command."""
    connection, _ = listener.accept()
    try:
        command, descriptors = receive(connection)
    except (EOFError, ValueError, OSError):
        connection.close()
        return
    running[start(command, descriptors)] = connection
    for descriptor in descriptors:
        os.close(descriptor)
    Listening.register(connection, selectors.EVENT_READ)


def main() -> None:
    """Serve until the host ends."""
    socket.sethostname(sys.argv[2])
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"{sys.argv[1]}.new")
    listener.listen(64)
    Path(f"{sys.argv[1]}.new").rename(sys.argv[1])  # every process that sees it can connect
    ended, woken = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    running: dict[int, socket.socket] = {}
    Listening.register(listener, selectors.EVENT_READ)
    Listening.register(ended, selectors.EVENT_READ)
    while True:
        for key, _ in Listening.select(end_leaving()):
            if key.fileobj is listener:
                take(listener, running)
            elif key.fileobj == ended:
                os.read(ended, 4096)
            elif isinstance(key.fileobj, socket.socket) and key.fileobj.fileno() >= 0:
                hang_up(key.fileobj, running)
        reap(running)


if __name__ == "__main__":
    main()
