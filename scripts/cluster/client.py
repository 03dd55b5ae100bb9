"""Start, use and stop a cluster from another process: tests, measurements, the command line.

A cluster has a name; all that belongs to it lies in one folder of that name, which only its user can enter, and in one
folder in the machine's memory that all hosts share. A cluster that is *attached* ends with the process that has started
it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import folders, needs
from cluster.host import HERE
from cluster.keeper import Settings
from cluster.network import MAX_HOSTS, parse_rate, parse_time
from cluster.tools import START_S, ClusterError, with_system_path

MEMORY = Path("/dev/shm")
#: Bytes of a socket's path, with its end.
MAX_SOCKET_PATH = 107
#: Seconds until the hosts and all files must be gone.
STOP_S = 60.0
DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """A host as its keeper records it.

    Attributes
    ----------
    name, address : node1, node2, … and where.
    pid : its first process, as the machine counts.
    up : whether it was up when this was asked for.
    rate, latency : limits of its link, "" for none.
    """

    name: str
    address: str
    pid: int
    up: bool
    rate: str
    latency: str


def private_folder(name: str) -> Path:
    """Return the folder of a cluster."""
    if not name.replace("_", "a").replace("-", "a").isalnum():
        raise ClusterError(f"name of a cluster '{name}': write letters, digits, - and _")
    return Path(tempfile.gettempdir()) / f"mpiox_cluster_{os.getuid()}_{name}"


def shared_folder(name: str) -> Path:
    """Return the folder in memory that all its hosts share."""
    return MEMORY / f"mpiox_hosts_{os.getuid()}_{name}"


class Cluster:
    """A cluster that is up; see :func:`start` and :func:`find`.

    Attributes
    ----------
    name : of the cluster.
    private : what belongs to it.
    folder : shared, in memory, the same path everywhere.
    agent : an executable like ssh.
    """

    def __init__(self, name: str) -> None:
        self.name, self.private = name, private_folder(name)
        self.folder, self.agent = shared_folder(name), self.private / "agent"
        self._life = -1

    # ---- what there is ----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the record of the keeper."""
        try:
            return dict(json.loads((self.private / "state.json").read_text("utf-8")))
        except (OSError, ValueError) as error:
            raise ClusterError(f"the cluster '{self.name}' is not up: {error}") from error

    def hosts(self) -> list[HostState]:
        """Return its hosts, node1 first."""
        return [HostState(**host) for host in self.state()["hosts"]]

    def shares(self) -> dict[str, Path]:
        """Return the shared folders without coherent caches, by kind; see folders.py."""
        return {kind: Path(path) for kind, path in self.state()["shares"].items()}

    def is_up(self) -> bool:
        """Return whether its keeper answers."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.connect(str(self.private / "keeper.socket"))
            except OSError:
                return False
        return True

    # ---- what its keeper does ---------------------------------------------------------------------------------------

    def ask(self, do: str, **more: Any) -> None:
        """Send the keeper a request; raises ClusterError."""
        answer = b""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(4 * START_S)
            try:
                connection.connect(str(self.private / "keeper.socket"))
                connection.sendall(json.dumps({"do": do, **more}).encode() + b"\n")
                while part := connection.recv(1 << 16):
                    answer += part
            except OSError as error:
                raise ClusterError(f"the cluster '{self.name}' does not answer: {error}") from error
        trouble = json.loads(answer or b"{}").get("error")
        if trouble:
            raise ClusterError(trouble)

    def vanish(self, k: int) -> None:
        """Make host k vanish: nothing that it sends arrives any more, then all its processes die at once."""
        self.ask("vanish", host=k)

    def bring_back(self, k: int) -> None:
        """Start host k again, as a new machine of the same name."""
        self.ask("bring back", host=k)

    def cut(self, k: int) -> None:
        """Cut the link of host k: silence in both directions."""
        self.ask("cut", host=k)

    def mend(self, k: int) -> None:
        """Undo :meth:`cut`."""
        self.ask("mend", host=k)

    def shape(self, k: int, rate: str = "", latency: str = "") -> None:
        """Limit the link of host k: bits per second in each direction, round trip; "" for no limit."""
        self.ask("shape", host=k, rate=_checked(rate, ""), latency=_checked("", latency))

    def stop(self) -> None:
        """End it and wait until nothing is left."""
        if self.is_up():
            self.ask("stop")
        self.let_go()
        deadline_s = time.monotonic() + STOP_S
        while (self.private.exists() or self.folder.exists()) and time.monotonic() < deadline_s:
            if not self.is_up() and not _has_keeper(self.private):  # keeper and sweeper were killed
                shutil.rmtree(self.private, ignore_errors=True)
                shutil.rmtree(self.folder, ignore_errors=True)
            time.sleep(0.01)
        while _has_keeper(self.private) and time.monotonic() < deadline_s:  # they end when the files are gone
            time.sleep(0.01)
        left = [str(path) for path in (self.private, self.folder) if path.exists()]
        if left:
            raise ClusterError(f"the cluster '{self.name}' has ended and left {', '.join(left)}: remove them")

    def let_go(self) -> None:
        """Close the descriptor on which an attached cluster's life depends."""
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

    def hold(self, life: int) -> None:
        """Remember the descriptor on which an attached cluster's life depends."""
        self._life = life

    # ---- commands ---------------------------------------------------------------------------------------------------

    def on(self, k: int, words: Sequence[str | os.PathLike[str]]) -> list[str]:
        """Return the command line that runs a command on host k."""
        return [str(self.agent), "--exec", f"node{k}", *(os.fspath(word) for word in words)]


def find(name: str = DEFAULT) -> Cluster:
    """Return a cluster that is up; raises ClusterError."""
    found = Cluster(name)
    if not found.is_up():
        raise ClusterError(f"no cluster '{name}' is up: start one (make cluster, or scripts/cluster/run start)")
    return found


def start(
    count: int,
    *,
    name: str = DEFAULT,
    rate: str = "",
    latency: str = "",
    shares: Sequence[str] = (),
    rootless: bool | None = None,
    attached: bool = False,
) -> Cluster:
    """Bring a cluster up.

    Parameters
    ----------
    count : of the hosts.
    name : of the cluster.
    rate, latency : of every host's link, as `1gbit` and `1ms` (round trip); "": no limit.
    shares : more shared folders: names of `folders.KINDS`.
    rootless : in a user namespace; None: when the caller is not root.
    attached : it ends with the caller, or with :meth:`Cluster.stop`.

    Raises
    ------
    ClusterError
        With all that is missing on this machine, or what failed.
    """
    rootless = os.geteuid() != 0 if rootless is None else rootless
    if not 1 <= count <= MAX_HOSTS:
        raise ClusterError(f"{count} hosts: write a number from 1 to {MAX_HOSTS}")
    rate, latency = _checked(rate, ""), _checked("", latency)
    os.environ["PATH"] = with_system_path(os.environ.get("PATH"))
    _check_machine(shares, rootless=rootless, shaping=bool(rate or latency))
    found = Cluster(name)
    _make_folders(found)
    life, held = os.pipe() if attached else (-1, -1)
    if attached:
        found.hold(held)
    settings = Settings(
        count=count,
        private=str(found.private),
        folder=str(found.folder),
        rate=rate,
        latency=latency,
        shares=tuple(shares),
        rootless=rootless,
        life=life,
    )
    try:
        _start_keeper(found, settings)
    except BaseException:
        with contextlib.suppress(ClusterError):
            found.stop()
        raise
    finally:
        if life >= 0:
            os.close(life)
    return found


def _check_machine(shares: Sequence[str], *, rootless: bool, shaping: bool) -> None:
    lacking = needs.missing(rootless=rootless, shaping=shaping)
    for kind in shares:
        if kind not in folders.KINDS:
            raise ClusterError(f"shared folder '{kind}': {' or '.join(folders.KINDS)}")
        lacking += folders.missing(kind, rootless=rootless)
    if lacking:
        raise ClusterError("hosts cannot be brought up here; missing:\n" + "\n".join(f"  - {line}" for line in lacking))


@contextlib.contextmanager
def cluster(count: int, **settings: Any) -> Iterator[Cluster]:
    """Bring up so many hosts, which are gone afterwards; see :func:`start`."""
    found = start(count, name=uuid.uuid4().hex[:8], attached=True, **settings)
    try:
        yield found
    finally:
        found.stop()


def _checked(rate: str, latency: str) -> str:
    if rate:
        parse_rate(rate)
    if latency:
        parse_time(latency)
    return rate or latency


def _make_folders(found: Cluster) -> None:
    if found.is_up():
        raise ClusterError(f"a cluster '{found.name}' is up already: stop it (make cluster-stop), or name another")
    if len(str(found.private / "node200.socket.new")) > MAX_SOCKET_PATH:
        raise ClusterError(f"{found.private} is too long for sockets: set TMPDIR to a shorter folder")
    if found.private.exists():  # of a cluster that was killed, with its sweeper
        _check_owner(found.private)
        found.stop()
    found.private.mkdir(mode=0o700)
    found.folder.mkdir(mode=0o700, exist_ok=True)
    _check_owner(found.folder)
    words = [sys.executable, "-S", "-E", str(HERE / "agent.py"), str(found.private)]
    quoted = " ".join(f"'{word}'" for word in words)
    found.agent.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n', encoding="utf-8")
    found.agent.chmod(0o755)


def _check_owner(path: Path) -> None:
    status = path.lstat()
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
        raise ClusterError(f"{path} is there and is not a folder of this user's: remove it")


def _start_keeper(found: Cluster, settings: Settings) -> None:
    words = [sys.executable, "-S", "-E", str(HERE / "keeper.py"), settings.text()]
    if settings.rootless:
        words = ["unshare", "--user", "--map-root-user", *words]
    with (found.private / "keeper.log").open("wb") as log:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            pass_fds=(settings.life,) if settings.life >= 0 else (),
            text=True,
        )
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline()  # the keeper bounds each of its steps
    if not line or "error" in json.loads(line):
        process.wait(timeout=STOP_S)
        with contextlib.suppress(OSError):
            line = line or (found.private / "keeper.log").read_text("utf-8", errors="replace")
        text = json.loads(line)["error"] if line.startswith("{") else line.strip()
        raise ClusterError(f"hosts cannot be brought up here: {text or f'exit status {process.returncode}'}")


def _has_keeper(private: Path) -> bool:
    """Return whether a keeper or sweeper of this folder lives: both have it in their command line."""
    needle = json.dumps(str(private)).encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if needle in (entry / "cmdline").read_bytes():
                    return True
    return False
