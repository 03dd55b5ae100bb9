"""The cluster of namespaces: needs, command lines, what is left of it; docs/project/clusters.md."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from cluster import client, needs
from cluster.tools import ClusterError
from support import hosts
from support.launch import ROOT

COMMAND = ROOT / "scripts" / "cluster" / "run"
LIMIT_S = 240.0


@pytest.fixture()
def namespaces() -> None:
    """Skip where hosts cannot be brought up."""
    hosts.require()


def await_that(is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline_s = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def processes_of(name: str) -> list[str]:
    """Return the command lines of living processes that belong to a cluster."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(client.private_folder(name)) in words:
                found.append(f"{entry.name}: {words}")
    return found


def left_of(name: str) -> list[str]:
    """Return all that is left of a cluster: processes, folders, mounts."""
    folders_of = [client.private_folder(name), client.shared_folder(name)]
    mounts = pathlib.Path("/proc/self/mounts").read_text("utf-8")
    found = processes_of(name) + [str(path) for path in folders_of if path.exists()]
    return found + [str(path) for path in folders_of if str(path) in mounts]


def machine() -> tuple[list[str], str]:
    """Return what a cluster must not touch: the machine's network devices and its host name."""
    return sorted(os.listdir("/sys/class/net")), os.uname().nodename


def command(*words: str, name: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    done = subprocess.run(
        [sys.executable, COMMAND.parent, "--name", name, *words], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert not check or done.returncode == 0, done
    return done


# ---- parts -----------------------------------------------------------------------------------------------------------


# ---- life ------------------------------------------------------------------------------------------------------------

HOLDER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from cluster import client
client.start(2, name=sys.argv[2], attached=True)
print("up", flush=True)
time.sleep(1000)
"""


@pytest.fixture()
def name(namespaces: None, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the name of a cluster of which nothing is left after the test."""
    own, before = f"t{os.getpid()}", machine()
    yield own
    client.Cluster(own).stop()
    assert machine() == before
    assert not left_of(own)


def test_command_line(name: str, tmp_path: pathlib.Path) -> None:
    """Start, look, run commands, stop."""
    assert "no cluster" in command("status", name=name, check=False).stderr
    text = command("start", "--hosts", "2", name=name).stdout
    assert "node1" in text and "10.77.0.2" in text and str(client.shared_folder(name)) in text
    assert "is up already" in command("start", name=name, check=False).stderr
    assert command("exec", "node2", "hostname", name=name).stdout == "node2\n"
    assert command("exec", "1", "sh", "-c", "exit 7", name=name, check=False).returncode == 7
    command("vanish", "node2", name=name)
    assert "node2" in (text := command("status", name=name).stdout) and "has vanished" in text
    assert "has vanished" in command("cut", "node2", name=name, check=False).stderr
    command("bring-back", "node2", name=name)
    assert command("exec", "node2", "hostname", name=name).stdout == "node2\n"
    assert "no host 9" in command("cut", "node9", name=name, check=False).stderr
    command("stop", name=name)
    assert not left_of(name)
    command("stop", name=name)  # of nothing


@pytest.mark.parametrize("who", ["launcher", "keeper", "keeper and sweeper"])
def test_killed(name: str, who: str) -> None:
    """Whoever is killed: nothing is left, at the latest when the cluster is stopped or started again."""
    words = [sys.executable, "-c", HOLDER, ROOT / "scripts", name]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "up\n"
        found = client.find(name)
        sleeper = subprocess.Popen(found.on(2, ["sleep", "1000"]))
        pids = [found.state()["pid"], *(host.pid for host in found.hosts())]
        if who == "keeper and sweeper":  # the sweeper is the keeper's copy
            pattern = str(client.private_folder(name))
            keepers = [line for line in processes_of(name) if "keeper.py" in line and pattern in line]
            assert len(keepers) == 2, keepers
            for number in (signal.SIGSTOP, signal.SIGKILL):  # neither cleans up after the other
                for line in keepers:
                    os.kill(int(line.split(":")[0]), number)
        elif who == "keeper":
            os.kill(pids[0], signal.SIGKILL)
        holder.kill()
    assert sleeper.wait(timeout=LIMIT_S) != 0 if who != "keeper and sweeper" else True
    await_that(lambda: not any(pathlib.Path(f"/proc/{pid}/ns/net").exists() for pid in pids))
    if who == "keeper and sweeper":
        assert client.private_folder(name).exists()
        client.start(1, name=name, attached=True).stop()  # cleans up first
        assert sleeper.wait(timeout=LIMIT_S) != 0
    await_that(lambda: not left_of(name))


def test_another_user(namespaces: None) -> None:
    """A user without rights brings hosts up in a user namespace; nothing is left."""
    if os.geteuid() != 0:
        pytest.skip("every other test of this file shows it")
    python, user, own = "/usr/bin/python3", 65534, f"u{os.getpid()}"
    run = {"user": user, "group": user, "extra_groups": [], "capture_output": True, "text": True, "timeout": LIMIT_S}
    code = "import os, sys; sys.exit(sys.version_info < (3, 10) or not os.access(sys.argv[1], os.R_OK))"
    if subprocess.run([python, "-c", code, COMMAND.parent / "client.py"], check=False, **run).returncode:
        pytest.skip(f"{python} is too old, or other users cannot read these files")
    if subprocess.run(["unshare", "--user", "--map-root-user", "true"], check=False, **run).returncode:
        pytest.skip("users may not make user namespaces here")
    words = [python, COMMAND.parent, "--name", own]
    started = subprocess.run([*words, "start", "--hosts", "2"], check=False, **run)
    try:
        assert started.returncode == 0, started
        assert "in a user namespace" in started.stdout
        said = subprocess.run([*words, "exec", "2", "sh", "-c", "hostname; id -u"], check=False, **run)
        assert said.stdout.split() == ["node2", "0"], said
    finally:
        stopped = subprocess.run([*words, "stop"], check=False, **run)
    assert stopped.returncode == 0, stopped
    for path in (client.private_folder(own), client.shared_folder(own)):
        assert not os.path.exists(str(path).replace("_0_", f"_{user}_"))


# ---- hosts -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["as the user", "in a user namespace"])
def pair(request: pytest.FixtureRequest) -> Iterator[client.Cluster]:
    """Bring up two hosts; root does so in a user namespace, too."""
    hosts.require()
    try:
        with client.cluster(2, rootless=True if request.param.startswith("in") else None) as found:
            yield found
    except ClusterError as error:
        if request.param.startswith("in"):
            pytest.skip(f"no user namespaces: {error}")
        raise


def said(pair: client.Cluster, k: int, script: str) -> str:
    """Run a shell script on a host; what it printed."""
    done = subprocess.run(pair.on(k, ["sh", "-c", script]), capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done
    return done.stdout.strip()


def test_hosts_are_apart(pair: client.Cluster) -> None:
    """Names, networks, processes, IPC and /dev/shm are a host's own; the shared folder is everybody's."""
    assert [said(pair, k, "hostname") for k in (1, 2)] == ["node1", "node2"]
    here = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in needs.KINDS}
    there = [{kind: said(pair, k, f"readlink /proc/self/ns/{kind}") for kind in needs.KINDS} for k in (1, 2)]
    for kind in needs.KINDS:
        assert len({here[kind], there[0][kind], there[1][kind]}) == 3, kind
    said(pair, 1, "echo one > /dev/shm/own; echo two > $TMPDIR/own")
    assert said(pair, 2, "ls /dev/shm/own $TMPDIR/own 2>/dev/null; true") == ""
    assert len({said(pair, k, "stat -c %d /dev/shm") for k in (1, 2)}) == 2
    said(pair, 1, f"echo shared > {pair.folder}/file")
    assert said(pair, 2, f"cat {pair.folder}/file") == "shared"
    assert (pair.folder / "file").read_text() == "shared\n"
    assert int(said(pair, 2, "cat /proc/sys/kernel/ns_last_pid")) < 10_000  # process numbers of its own


SERVER = "import socket; s = socket.create_server(('', 5000)); print(s.accept()[0].sendall(b'hello'))"
ASKER = """
import socket, sys, time
for _ in range(int(sys.argv[1])):
    try:
        print(socket.create_connection(('node1', 5000), timeout=1).recv(5).decode())
        break
    except OSError:
        time.sleep(0.1)
else:
    print('silence')
"""


def test_link(pair: client.Cluster) -> None:
    """Hosts know each other by name; a cut link lets nothing through, a mended one does."""
    with subprocess.Popen(pair.on(1, [sys.executable, "-c", SERVER]), stdout=subprocess.PIPE) as server:
        for kind, expected in ((pair.cut, "silence"), (pair.mend, "hello")):
            kind(2)
            words = pair.on(2, [sys.executable, "-c", ASKER, "3" if expected == "silence" else "600"])
            done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
            assert done.stdout.strip() == expected, done
        assert server.wait(timeout=LIMIT_S) == 0


def test_limits(pair: client.Cluster) -> None:
    """Limits of bandwidth are on both ends of the link, can be changed and lifted, and are written down."""
    if lacking := hosts.lacks_shaping():
        pytest.skip("; ".join(lacking))
    for rate, expected in (("100mbit", "tbf"), ("20mbit", "rate 20Mbit"), ("", "noqueue")):
        pair.shape(2, rate)
        assert expected in said(pair, 2, "tc qdisc show dev eth0")
        assert [host.rate for host in pair.hosts()] == ["", rate]
    with pytest.raises(ClusterError, match="1gbit"):
        pair.shape(2, "fast")


def test_agent_goes(pair: client.Cluster) -> None:
    """A command ends with its agent, as with a broken connection."""
    process = subprocess.Popen(pair.on(2, ["sh", "-c", f"trap '' HUP; echo $$ > {pair.folder}/pid; sleep 1000"]))
    await_that(lambda: (pair.folder / "pid").exists() and (pair.folder / "pid").read_text().endswith("\n"))
    number = (pair.folder / "pid").read_text().strip()
    process.kill()
    process.wait()
    await_that(lambda: said(pair, 2, f"test -d /proc/{number} || echo gone") == "gone")
