"""The command line of the cluster."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from cluster import client, folders, launchers
from cluster.tools import ClusterError, environment_has, kill_quietly, with_system_path

#: In the environment of every process of a run, so that what is left of it can be found.
MARKER = "MPIOX_CLUSTER_RUN"
#: Seconds that processes of a run get to end after their launcher.
GRACE_S = 5.0
OUT_OF_TIME = 124

EXAMPLES = """\
examples:
  scripts/cluster/run start --hosts 4                    # or: make cluster HOSTS=4
  scripts/cluster/run run --mpi mpich -n 8 ./program     # or: make cluster-run MPI=mpich ARGS='-n 8 ./program'
  scripts/cluster/run run --mpi openmpi -n 8 --preload build/openmpi/cmake/lib/libmpiio_ext.so ./program
  scripts/cluster/run exec node2 ip addr
  scripts/cluster/run shape node2 --rate 100mbit
  scripts/cluster/run stop                               # or: make cluster-stop
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="cluster",
        description="Several hosts on this machine, made of namespaces: own host name, network, /dev/shm, processes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--name", default=client.DEFAULT, help="of the cluster, where there are several")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    start = commands.add_parser("start", help="bring hosts up")
    start.add_argument("--hosts", type=int, default=4, help="how many (default: 4)")
    _add_limits(start)
    start.add_argument(
        "--share",
        action="append",
        default=[],
        choices=list(folders.KINDS),
        help="also a shared folder with a client on every host; may be repeated",
    )
    start.add_argument("--rootless", action="store_true", help="in a user namespace, also as root")

    run = commands.add_parser("run", help="run an MPI program on the hosts")
    run.add_argument("--mpi", choices=launchers.FAMILIES, default=os.environ.get("MPI", "openmpi"))
    run.add_argument("-n", "--ranks", type=int, help="default: one a host")
    run.add_argument("--ranks-per-host", type=int, default=0, metavar="N", help="in blocks; default: spread evenly")
    run.add_argument("--hosts", type=int, metavar="N", help="use the first N hosts only")
    run.add_argument("--preload", type=Path, metavar="LIBRARY", help="libmpiio_ext.so, put under the program")
    run.add_argument(
        "--limit",
        type=float,
        default=600.0,
        metavar="S",
        help="seconds after which everything of the run is ended (default: 600)",
    )
    run.add_argument("--option", action="append", default=[], metavar="WORD", help="a word for the launcher itself")
    run.add_argument("program", nargs=argparse.REMAINDER, help="program and its arguments")

    execute = commands.add_parser("exec", help="run a command on one host")
    execute.add_argument("host")
    execute.add_argument("words", nargs=argparse.REMAINDER, metavar="command")

    shape = commands.add_parser("shape", help="limit the link of one host; without limits: lift them")
    shape.add_argument("host")
    _add_limits(shape)
    on_a_host = {
        "cut": "cut the link of a host: silence",
        "mend": "mend it",
        "vanish": "kill a host and all its processes",
        "bring-back": "start it again",
    }
    for name, text in on_a_host.items():
        commands.add_parser(name, help=text).add_argument("host")
    commands.add_parser("status", help="what is up, and where things are")
    commands.add_parser("stop", help="end everything")
    return top


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", default="", help="bandwidth of a host's link in each direction, as 1gbit")
    parser.add_argument("--latency", default="", help="round trip between two hosts, as 200us; needs netem")


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry a command out; returns the exit status."""
    options = parser().parse_args(arguments)
    os.environ["PATH"] = with_system_path(os.environ.get("PATH"))
    try:
        return _carry_out(options)
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 2


def _carry_out(options: argparse.Namespace) -> int:
    if options.command == "start":
        rootless = True if options.rootless else None
        found = client.start(
            options.hosts,
            name=options.name,
            rate=options.rate,
            latency=options.latency,
            shares=options.share,
            rootless=rootless,
        )
        print(describe(found))
        return 0
    if options.command == "stop":
        client.Cluster(options.name).stop()
        return 0
    found = client.find(options.name)
    if options.command == "status":
        print(describe(found))
        return 0
    if options.command == "run":
        return run(found, options)
    k = number_of(options.host)
    if options.command == "exec":
        if not options.words:
            raise ClusterError("exec needs a command")
        return subprocess.run(found.on(k, options.words)).returncode
    if options.command == "shape":
        found.shape(k, options.rate, options.latency)
    else:
        getattr(found, options.command.replace("-", "_"))(k)
    return 0


def number_of(host: str) -> int:
    """Return 3 of `node3` or `3`."""
    text = host.removeprefix("node")
    if not text.isdecimal():
        raise ClusterError(f"host '{host}': write node1, node2, …")
    return int(text)


def describe(found: client.Cluster) -> str:
    """Return the running parts, in words."""
    state = found.state()
    lines = [f"cluster '{found.name}', {'in a user namespace' if state['rootless'] else 'as root'}"]
    for host in found.hosts():
        limits = ", ".join(filter(None, (host.rate, host.latency and f"round trip {host.latency}")))
        lines.append(f"  {host.name:8} {host.address:12} {limits or 'no limits'}{'' if host.up else ', has vanished'}")
    lines.append(f"shared folder, one page cache:  {found.folder}")
    lines += [f"shared folder, own caches:      {path}  ({kind})" for kind, path in found.shares().items()]
    if not state["netem"]:
        lines.append("latency cannot be set: this kernel has no netem (CONFIG_NET_SCH_NETEM)")
    return "\n".join(lines)


def run(found: client.Cluster, options: argparse.Namespace) -> int:
    """Run a program on the hosts; no process of it survives. Returns the launcher's exit status."""
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        raise ClusterError("run needs a program")
    up = len(found.hosts())
    hosts = options.hosts or up
    if not 1 <= hosts <= up:
        raise ClusterError(f"{hosts} hosts: there are {up}")
    ranks = options.ranks or hosts * max(1, options.ranks_per_host)
    places = launchers.places_of(ranks, hosts, options.ranks_per_host)
    if options.preload is not None:
        if not options.preload.exists():
            raise ClusterError(f"{options.preload}: no such library")
        program = ["env", f"LD_PRELOAD={options.preload.resolve()}", *program]
    words = launchers.start_of(options.mpi, launchers.launcher(options.mpi), found.agent, places, ranks, options.option)
    marker = uuid.uuid4().hex
    environment = {**launchers.ENVIRONMENT, **os.environ, MARKER: marker}
    process = subprocess.Popen(found.on(1, [*words, *program]), env=environment, start_new_session=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    status = OUT_OF_TIME
    try:
        status = process.wait(timeout=options.limit)
    except subprocess.TimeoutExpired:
        print(f"cluster: out of time after {options.limit:g} s", file=sys.stderr)
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    finally:
        process.kill()
        process.wait()
        left = end_all(marker, GRACE_S if status != OUT_OF_TIME else 0.0)
    if left and status != OUT_OF_TIME:
        print(f"cluster: {left} processes were left and have been ended", file=sys.stderr)
    return status


def end_all(marker: str, grace_s: float) -> int:
    """Wait until no process of a run is left, then end those that are; how many that were."""
    needle, deadline_s = f"{MARKER}={marker}".encode(), time.monotonic() + grace_s
    ended: set[int] = set()
    while True:
        found = [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and environment_has(entry.name, needle)
        ]
        found = [pid for pid in found if pid != os.getpid()]
        if not found:
            return len(ended)
        if time.monotonic() > deadline_s:
            for pid in found:
                with contextlib.suppress(PermissionError):
                    kill_quietly(pid)
            ended.update(found)
        time.sleep(0.02)
