"""Another user of the machine: nobody (65534).

What it does is done by processes that run as that user, so that they are refused what the user would be refused. Only
root can start them.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator

import pytest

from support.launch import marked_processes
from support.processes import Job, is_delegate, words

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
PYTHON = [*AS_NOBODY, "/usr/bin/python3", "-c"]

#: Listens at all ports of a range of an address, says so, answers whoever calls with as many bytes as a challenge has,
#: and prints what it hears: a line for each caller.
EAR = r"""
import select, socket, sys
host, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
doors = [socket.create_server((host, port)) for port in range(first, last + 1)]
print("listens", flush=True)
while True:
    for door in select.select(doors, [], [])[0]:
        caller = door.accept()[0]
        caller.settimeout(5)
        heard = b""
        try:
            caller.send(bytes(64))
            while got := caller.recv(4096):
                heard += got
        except OSError:
            pass
        caller.close()
        print(heard.hex(), flush=True)
"""

#: Connections to a port that the other user has at a time: more than a listener has places.
MANY = 300
#: Makes so many to each port that it is told, silent ones and beginnings of a hello, and others for those that are sent
#: away, also hellos of each purpose and garbage. Says each port once that has them; at the end, how many there were.
FLOOD = r"""
import os, resource, select, socket
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
said = [b"", b"MXHS", *(b"MXHS\2\0" + bytes([kind, 0]) + bytes(32) for kind in (1, 2, 4, 8)), b"GET / HTTP/1.1\r\n" * 9]
held, ends, made, text, full = {}, {}, 0, b"", set()  # port -> connections; descriptor -> (port, connection)
waits = select.epoll()
waits.register(0, select.EPOLLIN)
while True:
    for at, _ in waits.poll(0.02):
        if at != 0:  # it was sent away
            port, end = ends.pop(at)
            held[port] = held.get(port, 1) - 1
            end.close()
            continue
        got = os.read(0, 4096)
        if not got:
            print(made)
            raise SystemExit
        *lines, text = (text + got).split(b"\n")
        held.update({int(line): 0 for line in lines})
    for port in list(held):
        while held[port] < MANY:
            end = socket.socket()
            end.settimeout(0.05)
            try:
                end.connect(("127.0.0.1", port))
                end.send(said[made % (len(said) if port in full else 2)])
            except OSError as error:
                end.close()
                if isinstance(error, ConnectionRefusedError):
                    del held[port]
                break
            made += 1
            held[port] += 1
            ends[end.fileno()] = port, end
            waits.register(end, select.EPOLLRDHUP)
            if held[port] == MANY and port not in full:
                full.add(port)
                print("port", port, flush=True)
""".replace("MANY", str(MANY))


def need() -> None:
    """Skip the test where nobody can act as another user."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can act as another user, by setpriv of util-linux")
    if subprocess.run([*PYTHON, ""], capture_output=True, timeout=60).returncode != 0:
        pytest.skip("another user cannot run /usr/bin/python3 here")


def _listening(pids: list[int]) -> set[int]:
    """Return the ports of the loopback at which processes listen."""
    found: dict[str, int] = {}
    for line in pathlib.Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[1].startswith("0100007F:"):
            found[f"socket:[{fields[9]}]"] = int(fields[1].partition(":")[2], 16)
    ports = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            ports |= {found.get(os.readlink(entry), 0) for entry in os.scandir(f"/proc/{pid}/fd")}
    return ports - {0}


class Flood:
    """A flood of all ports of a job on this host that are the library's own: MPI's are on all addresses.

    The ports are looked up as root, where another user would try all of them. So that the flood is there first,
    spawned processes are stopped until it has come to rank 0's port, and other ranks until it has come to the
    delegates' ones.

    Attributes
    ----------
    ports : at which it is directed
    full : those of them that have had as many connections at a time as the other user wants
    connections : that were made; known at the end
    """

    def __init__(self, running: Job, delegates: int) -> None:
        self.ports: set[int] = set()
        self.full: set[int] = set()
        self.connections = 0
        self._running, self._delegates = running, delegates
        self._over = threading.Event()
        self._stopped: dict[int, int] = {}  # process -> how many ports have to be full
        self._seen: set[int] = set()
        self._process = subprocess.Popen([*PYTHON, FLOOD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._threads = [threading.Thread(target=self._direct), threading.Thread(target=self._listen)]
        for thread in self._threads:
            thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            name, _, number = line.rpartition(" ")
            if name:
                self.full.add(int(number))
            else:
                self.connections = int(number)

    def _direct(self) -> None:
        assert self._process.stdin is not None
        while not self._over.wait(0.02):
            pids = [pid for pid in marked_processes(self._running.marker) if not _is_launcher(pid)]
            self._hold(pids)
            for port in _listening(pids) - self.ports:
                self.ports.add(port)
                print(port, file=self._process.stdin, flush=True)

    def _hold(self, pids: list[int]) -> None:
        started = [pid for pid in pids if is_delegate(pid)]
        supervisors = [pid for pid in started if words(pid).endswith(" serve")]
        for pid in {*started} - {*supervisors} - self._seen:
            self._stop(pid, 1)
        for pid in {*pids} - {*started} - self._seen if supervisors else ():
            if _rank(pid) > 0:
                self._stop(pid, 1 + 2 * self._delegates)
        for pid, ports in list(self._stopped.items()):
            if len(self.full) >= ports:
                _signal(pid, signal.SIGCONT)
                del self._stopped[pid]

    def _stop(self, pid: int, until: int) -> None:
        self._seen.add(pid)
        self._stopped[pid] = until
        _signal(pid, signal.SIGSTOP)

    def end(self) -> None:
        """End it."""
        self._over.set()
        self._threads[0].join()
        for pid in self._stopped:
            _signal(pid, signal.SIGCONT)
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        finally:
            self._process.kill()
            self._threads[1].join()


@contextlib.contextmanager
def flood(running: Job, delegates: int) -> Iterator[Flood]:
    """Let another user flood a job with so many spawned delegates: :class:`Flood`."""
    found = Flood(running, delegates)
    try:
        yield found
    finally:
        found.end()


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _rank(pid: int) -> int:
    """Return a process's rank, -1: it has none."""
    with contextlib.suppress(OSError):
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        found = re.search(rb"\0(?:OMPI_COMM_WORLD_RANK|PMI_RANK)=(\d+)\0", environment)
        return int(found[1]) if found else -1
    return -1


def _is_launcher(pid: int) -> bool:
    return pathlib.PurePath(words(pid).split(" ")[0]).name.startswith(("mpi", "orte", "prte", "hydra")) and (
        "mpiio-ext" not in words(pid)
    )
