"""The process that keeps a cluster alive: ``python keeper.py SETTINGS``, started by client.py.

It brings the hosts up, says so on its standard output, and then carries out what comes over `keeper.socket`: one line
of JSON a connection, one line of answer. All of the cluster ends with it: the hosts die with their parent, and the
sweeper, a second process that waits for the keeper's end, removes the files, whatever has ended the keeper.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # this file was started by its path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from cluster import folders
from cluster.host import HERE, Host, spaces
from cluster.network import Network, address
from cluster.served import Place
from cluster.tools import START_S, ClusterError

#: Seconds during which the sweeper tries to remove what dying processes may still be writing.
SWEEP_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a cluster.

    Attributes
    ----------
    count : of the hosts.
    private : folder of what belongs to the cluster: sockets, logs, mount points.
    folder : shared folder in the machine's memory, the same path on all hosts and for the machine.
    rate, latency : of every host's link, as `1gbit` and `1ms`; "": no limit.
    shares : more shared folders; see folders.py.
    rootless : whether the keeper is root of a user namespace only.
    life : descriptor whose other end closes when the cluster is to end; -1: none.
    """

    count: int
    private: str
    folder: str
    rate: str = ""
    latency: str = ""
    shares: tuple[str, ...] = ()
    rootless: bool = False
    life: int = -1

    def text(self) -> str:
        """Return it as a word of the command line."""
        return json.dumps(asdict(self))


def start_sweeper(places: list[Path]) -> int:
    """Start the process that removes these folders after the end of this one; return the pipe to keep open."""
    ended, alive = os.pipe()
    if os.fork():
        os.close(ended)
        return alive
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(0, 1)
    os.dup2(0, 2)
    if ended != 3:
        os.dup2(ended, 3)
    os.closerange(4, 1 << 12)
    os.chdir("/")
    os.read(3, 1)  # nothing is ever written
    deadline_s = time.monotonic() + SWEEP_S
    while any(place.exists() for place in places) and time.monotonic() < deadline_s:
        for place in places:
            shutil.rmtree(place, ignore_errors=True)
        time.sleep(0.02)
    os._exit(0)


class Keeper:
    """The hosts, their network and their shared folders."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.private, self.folder = Path(settings.private), Path(settings.folder)
        self.hosts: dict[int, Host] = {}
        self.links: dict[int, tuple[str, str]] = {}
        (self.private / "tmp").mkdir()
        self.switch, pid = spaces("--net", words=["sleep", "infinity"], log=self.private / "switch.log")
        self.network = Network(pid)

    def bring_up(self) -> None:
        """Start the hosts, join them, mount their shared folders."""
        numbers = range(1, self.settings.count + 1)
        lines = ["127.0.0.1 localhost", *(f"{address(k)} node{k}" for k in numbers), ""]
        (self.private / "hosts").write_text("\n".join(lines), encoding="utf-8")
        self.links = dict.fromkeys(numbers, (self.settings.rate, self.settings.latency))
        if self.settings.latency and not self.network.has_netem():
            raise ClusterError("this kernel cannot delay packets (CONFIG_NET_SCH_NETEM): start without latency")
        for k in numbers:
            self.start(k)
        for host in self.hosts.values():
            host.await_up()
        for kind in self.settings.shares:
            for k in numbers:
                folders.serve(kind, self.place(), k)
            for k in numbers:
                folders.mount(kind, self.place(), k)
        self.write_state()

    def start(self, k: int) -> None:
        """Start host k and join it."""
        host = self.hosts[k] = Host(k, self.private, self.folder)
        try:
            self.network.join(k, host.pid)
            if any(self.links[k]):
                self.network.shape(k, host.pid, *self.links[k])
        except ClusterError:
            host.await_up()  # if the host has ended, its output names the reason
            raise

    def place(self) -> Place:
        """Return where shared folders are served and mounted."""
        return Place(private=self.private, count=self.settings.count, run=self.run)

    def run(self, k: int, words: list[str]) -> str:
        """Run a command that must succeed on host k; its output."""
        agent = [sys.executable, "-S", "-E", str(HERE / "agent.py"), str(self.private), "--exec", f"node{k}", *words]
        output = self.private / "command.log"  # a daemon would leave a pipe open
        with output.open("wb") as file:
            try:
                done = subprocess.run(agent, stdin=subprocess.DEVNULL, stdout=file, stderr=file, timeout=START_S)
            except subprocess.TimeoutExpired:
                raise ClusterError(f"node{k}: {' '.join(words)}: no end after {START_S:.0f} s") from None
        text = output.read_text("utf-8", errors="replace")
        if done.returncode != 0:
            raise ClusterError(f"node{k}: {' '.join(words)}: {text.strip() or f'exit status {done.returncode}'}")
        return text

    # ---- requests of clients ----------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the facts that clients need."""
        hosts = [
            {
                "name": host.name,
                "address": address(k),
                "pid": host.pid,
                "up": host.is_up(),
                "rate": self.links[k][0],
                "latency": self.links[k][1],
            }
            for k, host in self.hosts.items()
        ]
        shares = {kind: str(folders.path_of(kind, self.private)) for kind in self.settings.shares}
        return {
            "pid": os.getpid(),
            "folder": str(self.folder),
            "shares": shares,
            "rootless": self.settings.rootless,
            "hosts": hosts,
            "netem": self.network.has_netem(),
        }

    def write_state(self) -> None:
        """Write the facts where clients read them, complete or not at all."""
        new = self.private / "state.new"
        new.write_text(json.dumps(self.state(), indent=1), encoding="utf-8")
        new.rename(self.private / "state.json")

    def carry_out(self, asked: dict[str, Any]) -> None:
        """Carry one request out; raises ClusterError."""
        what, k = asked["do"], int(asked.get("host", 0))
        if what not in {"vanish", "bring back", "cut", "mend", "shape"}:
            raise ClusterError(f"unknown request '{what}'")
        if k not in self.hosts:
            raise ClusterError(f"no host {k}: there are 1 to {len(self.hosts)}")
        host = self.hosts[k]
        if what != "bring back" and not host.is_up():
            raise ClusterError(f"{host.name} has vanished")
        if what == "vanish":
            self.network.cut(k)  # nothing that it sends arrives any more, then all its processes die
            host.end()
        elif what == "bring back":
            self.bring_back(k)
        elif what == "shape":
            self.network.shape(k, host.pid, asked["rate"], asked["latency"])
            self.links[k] = asked["rate"], asked["latency"]
        elif what == "cut":
            self.network.cut(k)
        else:
            self.network.mend(k)
        self.write_state()

    def bring_back(self, k: int) -> None:
        """Start host k again, as a new machine of the same name."""
        if self.hosts[k].is_up():
            raise ClusterError(f"node{k} has not vanished")
        self.start(k)
        self.hosts[k].await_up()
        for kind in self.settings.shares:
            folders.serve(kind, self.place(), k)
            folders.mount(kind, self.place(), k)

    def take_down(self) -> None:
        """End all that runs on the hosts, the hosts and their network."""
        for host in self.hosts.values():
            host.process.kill()
        for host in self.hosts.values():
            host.end()
        self.switch.kill()
        self.switch.wait(timeout=START_S)


def answer(keeper: Keeper, connection: socket.socket) -> bool:
    """Carry out a client's request; return whether the cluster continues."""
    with connection, contextlib.suppress(OSError):
        connection.settimeout(START_S)
        text = b""
        while not text.endswith(b"\n"):
            part = connection.recv(1 << 16)
            if not part:
                return True
            text += part
        try:
            asked = json.loads(text)
            if asked["do"] == "stop":
                return False
            keeper.carry_out(asked)
            reply: dict[str, Any] = {}
        except (ClusterError, OSError, ValueError, KeyError, TypeError) as error:
            reply = {"error": f"{error}"}
        connection.sendall(json.dumps(reply).encode() + b"\n")
    return True


def serve(keeper: Keeper, listener: socket.socket, life: int) -> None:
    """Carry out requests until the cluster is to end."""
    ended, woken = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(woken, False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(woken)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(ended, selectors.EVENT_READ)
    if life >= 0:
        selector.register(life, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is not listener or not answer(keeper, listener.accept()[0]):
                return


def main() -> int:
    """Hold the cluster until it is to end."""
    fields = json.loads(sys.argv[1])
    settings = Settings(**{**fields, "shares": tuple(fields["shares"])})
    if settings.life >= 0:
        os.set_inheritable(settings.life, False)
    private = Path(settings.private)
    places = [private, Path(settings.folder)]
    alive = start_sweeper(places)
    keeper = None
    try:
        keeper = Keeper(settings)
        keeper.bring_up()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(private / "keeper.socket"))
        listener.listen(16)
        print("{}", flush=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the process that started this waits for the end of its output
        serve(keeper, listener, settings.life)
    except (ClusterError, OSError, subprocess.SubprocessError) as error:
        print(json.dumps({"error": f"{error}"}), flush=True)
        return 1
    finally:
        if keeper is not None:
            keeper.take_down()
        os.close(alive)
    return 0


if __name__ == "__main__":
    sys.exit(main())
