"""Several hosts on this one machine, for launches between hosts: real host names, networks, processes, /dev/shm.

Problem.   What happens between nodes (two network stacks, memory that cannot be mapped, launchers' daemons, a host that
           vanishes) shows only where there are nodes.
Method.    A host is a process with namespaces of its own (network, mounts, host name, IPC, processes), the first of its
           process namespace: whatever runs on the host is below it, and dies with it. Hosts are joined by a bridge in a
           namespace that nobody else uses, so that the machine's own network is not touched, and nothing has a name
           that could be left behind. Launchers start their daemons through host_agent.py, as through ssh.
Shared.    All hosts see the machine's files. ``Cluster.folder`` lies in memory (a tmpfs) at one path for all hosts and
           for the machine: what a parallel file system with coherent caches would be.
Guarantee. When the context ends, or this process dies, no process, namespace, interface or file is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from support.launch import Launch, base_environment, library_path, mpi_family, run_bounded, starter

HERE = pathlib.Path(__file__).resolve().parent
MEMORY = pathlib.Path("/dev/shm")
START_S = 60.0
NETWORK = "10.77.0"
TOOLS = ("unshare", "nsenter", "ip", "mount")
#: What a host does before its first process: $1 name, $2 the shared folder, $3 a folder to move it by, $4 hosts file,
#: and the rest is the command.
SETUP = """
set -e
hostname "$1"
mount --bind "$2" "$3"
mount -t tmpfs none /dev/shm
mkdir -p "$2"
mount --move "$3" "$2"
mount --bind "$4" /etc/hosts
mount -t proc proc /proc
shift 4
exec "$@"
"""


def die_with_parent() -> None:
    """Have the kernel end this process when its parent dies. After a fork."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@functools.cache
def why_not() -> str | None:
    """Return why hosts cannot be brought up here, None when they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "hosts are namespaces, which need root on Linux"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"hosts need {', '.join(missing)}"
    try:
        with cluster(2) as found:
            found.call(1, ["ping", "-c", "1", "-W", "5", "node2"] if shutil.which("ping") else ["true"])
    except (OSError, subprocess.SubprocessError, AssertionError) as error:
        return f"hosts cannot be brought up here: {error}"
    return None


@dataclass(slots=True)
class Host:
    """A host.

    Attributes
    ----------
    name : node1, node2, …
    address : in the network of the hosts.
    process : the starter of its first process.
    pid : of the first process, as the machine counts.
    """

    name: str
    address: str
    process: subprocess.Popen[bytes]
    pid: int


class Cluster:
    """Hosts that are up; see :func:`cluster`.

    Attributes
    ----------
    folder : shared, in memory, the same path everywhere.
    hosts : node1 … nodeN.
    agent : an executable like ssh.
    """

    def __init__(self, private: pathlib.Path, folder: pathlib.Path) -> None:
        self.private, self.folder = private, folder
        self.hosts: list[Host] = []
        self.switch: subprocess.Popen[bytes] | None = None
        self.switch_pid = self.ports = 0
        self.log = private / "log"
        self.agent = private / "agent"
        words = [sys.executable, "-S", "-E", str(HERE / "host_agent.py"), str(private)]
        self.agent.write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n', encoding="utf-8")
        self.agent.chmod(0o755)

    # ---- up and down ------------------------------------------------------------------------------------------------

    def bring_up(self, count: int) -> None:
        """Start the switch and the hosts, and join them."""
        self.switch, self.switch_pid = self.spaces("--net", words=["sleep", "infinity"])
        inside(self.switch_pid, "ip", "link", "add", "bridge", "type", "bridge")
        inside(self.switch_pid, "ip", "link", "set", "bridge", "up")
        lines = [f"{NETWORK}.{k} node{k}" for k in range(1, count + 1)]
        (self.private / "hosts").write_text("\n".join(["127.0.0.1 localhost", *lines, ""]), encoding="utf-8")
        self.hosts = [self.start(k) for k in range(1, count + 1)]
        for host in self.hosts:
            self.await_first(host)

    def start(self, k: int) -> Host:
        """Start a host and join it to the switch."""
        name, address = f"node{k}", f"{NETWORK}.{k}"
        stage, socket = self.private / f"{name}.stage", self.private / f"{name}.socket"
        stage.mkdir(exist_ok=True)
        socket.unlink(missing_ok=True)
        first = [sys.executable, "-S", "-E", str(HERE / "host_init.py"), str(socket)]
        words = ["sh", "-c", SETUP, "host", name, str(self.folder), str(stage), str(self.private / "hosts"), *first]
        process, pid = self.spaces("--net", "--mount", "--uts", "--ipc", words=words)
        self.ports += 1  # the port of a host that has vanished goes away some time later
        port, switch = f"port{self.ports}", self.switch_pid
        ends = [port, "netns", str(switch), "type", "veth", "peer", "name", "eth0", "netns", str(pid)]
        command("ip", "link", "add", *ends)
        inside(switch, "ip", "link", "set", port, "master", "bridge", "up")
        inside(pid, "ip", "addr", "add", f"{address}/24", "dev", "eth0")
        inside(pid, "ip", "link", "set", "eth0", "up")
        inside(pid, "ip", "link", "set", "lo", "up")
        return Host(name, address, process, pid)

    def await_first(self, host: Host) -> None:
        """Wait until a host takes commands."""
        deadline_s = time.monotonic() + START_S
        while not (self.private / f"{host.name}.socket").exists():
            if host.process.poll() is not None or time.monotonic() > deadline_s:
                raise OSError(f"{host.name} does not come up: {self.log.read_text('utf-8', errors='replace')}")
            time.sleep(0.01)

    def spaces(self, *kinds: str, words: Sequence[str]) -> tuple[subprocess.Popen[bytes], int]:
        """Start a command in namespaces of its own; the starter, which dies with it, and its process id."""
        process = subprocess.Popen(
            ["unshare", *kinds, "--pid", "--fork", "--kill-child=SIGKILL", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.log.open("ab"),
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        deadline_s = time.monotonic() + START_S
        own = os.readlink(f"/proc/{process.pid}/ns/pid")
        while time.monotonic() < deadline_s and process.poll() is None:
            for text in children.read_text().split():
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{text}/ns/pid") != own:
                        return process, int(text)
            time.sleep(0.005)
        process.kill()
        process.wait()
        raise OSError(f"no namespaces could be made: {self.log.read_text('utf-8', errors='replace')}")

    def take_down(self) -> None:
        """End all that runs on the hosts, and the hosts."""
        processes = [host.process for host in self.hosts] + ([self.switch] if self.switch else [])
        for process in processes:
            process.kill()  # the first process of the namespace dies with it, all others die with that one
        for process in processes:
            process.wait(timeout=START_S)

    def vanish(self, k: int) -> None:
        """Make host k vanish: nothing that it sends arrives any more, then all its processes die at once."""
        host = self.hosts[k - 1]
        inside(host.pid, "ip", "link", "set", "eth0", "down")
        os.kill(host.pid, signal.SIGKILL)
        host.process.wait(timeout=START_S)

    def bring_back(self, k: int) -> None:
        """Start host k again, as a new machine of the same name."""
        self.hosts[k - 1] = self.start(k)
        self.await_first(self.hosts[k - 1])

    # ---- commands ---------------------------------------------------------------------------------------------------

    def on(self, k: int, words: Sequence[str | os.PathLike[str]]) -> list[str]:
        """Return the command line that runs a command on host k."""
        return [str(self.agent), "--exec", f"node{k}", *map(os.fspath, words)]

    def call(self, k: int, words: Sequence[str | os.PathLike[str]], timeout_s: float = 30.0) -> str:
        """Run a command that must succeed on host k; what it printed."""
        return run_bounded(self.on(k, words), env=base_environment(), timeout_s=timeout_s).stdout

    def starter(
        self, ranks: int, places: Mapping[int, int] | int = 0, *, first: int = 1, options: Sequence[str] = ()
    ) -> list[str]:
        """Return the start of a launcher's command line, to be run on host `first`, up to the program.

        Parameters
        ----------
        ranks : of the program.
        places : ranks by host, in order; or as many on each; 0: spread evenly. A host with 0 ranks is the job's, too.
        first : the host of the launcher.
        options : more of the launcher's.
        """
        count = len(self.hosts)
        if not isinstance(places, Mapping):
            places = dict.fromkeys(range(1, count + 1), places or -(-ranks // count))
        if mpi_family() == "mpich":
            names = ",".join(f"node{k}:{n}" for k, n in places.items() if n)
            words = ["-launcher", "ssh", "-launcher-exec", str(self.agent), "-hosts", names]
        else:
            names = ",".join(f"node{k}:{n}" if n else f"node{k}" for k, n in places.items())
            networks = [f"--mca {part}_tcp_if_include {NETWORK}.0/24" for part in ("btl", "oob")]
            words = ["--mca", "plm_rsh_agent", str(self.agent), *" ".join(networks).split(), "-H", names]
        return self.on(first, [str(starter()), *words, *options, "-n", str(ranks)])

    def run(
        self,
        program: Sequence[str | os.PathLike[str]],
        ranks: int,
        places: Mapping[int, int] | int = 0,
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
        options: Sequence[str] = (),
    ) -> Launch:
        """Run a program under this library on the hosts; see :meth:`starter` and :func:`support.launch.mpi_run`."""
        words = [*self.starter(ranks, places, options=options), *self.program(program)]
        environment = base_environment() | dict(env or {})
        return run_bounded(words, env=environment, timeout_s=timeout_s, cwd=self.folder, check=check)

    def program(self, program: Sequence[str | os.PathLike[str]]) -> list[str]:
        """Return a program with this library under it."""
        return ["env", f"LD_PRELOAD={library_path()}", *map(os.fspath, program)]


def command(*words: str) -> None:
    """Run a command of the machine that must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=START_S)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")


def inside(pid: int, *words: str) -> None:
    """Run a command with the network of a process."""
    command("nsenter", "-t", str(pid), "-n", *words)


@contextlib.contextmanager
def cluster(count: int) -> Iterator[Cluster]:
    """Bring up so many hosts; they are gone afterwards."""
    private = pathlib.Path(tempfile.mkdtemp(prefix="mpiox_cluster_"))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mpiox_hosts_", dir=MEMORY))
    found = Cluster(private, folder)
    try:
        found.bring_up(count)
        yield found
    finally:
        found.take_down()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(private, ignore_errors=True)
