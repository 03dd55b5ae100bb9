"""The network of the hosts: a bridge in a network namespace of its own, a link to each host, bandwidth and latency.

A link is a pair of virtual Ethernet devices: `eth0` on the host, `portN` at the bridge. What a host sends is shaped at
its `eth0`, what it receives at its port: a host's own bandwidth in each direction, as a real network card's. Bandwidth
is a token bucket (`tbf`); latency is `netem`, which many kernels lack. A link is cut at the bridge: both sides see
silence, as when a cable or a switch fails, and no connection is reset.
"""

from __future__ import annotations

import contextlib
import math
import re

from cluster.tools import ClusterError, in_network

#: The first 24 bits of all addresses; the network exists in the cluster's own namespaces only.
PREFIX = "10.77.0"
SUBNET = f"{PREFIX}.0/24"
MAX_HOSTS = 200
#: Bytes that a token bucket lets through at once: a segment that the kernel has not cut into packets, and 1 ms of data.
LARGEST_SEGMENT_BYTES = 65536
#: How long a packet may wait for its tokens before it is dropped.
QUEUE_MS = 50
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def address(k: int) -> str:
    """Return the address of host k, which counts from 1."""
    return f"{PREFIX}.{k}"


def parse_rate(text: str) -> float:
    """Return bits per second of a text such as ``1gbit``; raises ClusterError."""
    return _parse(text, UNITS, "bandwidth", "1gbit, 250mbit or 64kbit")


def parse_time(text: str) -> float:
    """Return seconds of a text such as ``200us``; raises ClusterError."""
    return _parse(text, TIMES, "latency", "50us, 2ms or 0.1s")


def _parse(text: str, units: dict[str, float], what: str, like: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)([a-z]+)", text.strip().lower())
    value = float(match[1]) * units[match[2]] if match and match[2] in units else 0.0
    if value <= 0.0:
        raise ClusterError(f"{what} '{text}': write a positive number with its unit, as {like}")
    return value


class Network:
    """The bridge, in the network namespace of process `pid`.

    Parameters
    ----------
    pid : process that holds the namespace of the bridge.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._count = 0
        self._ports: dict[int, str] = {}
        in_network(pid, "ip", "link", "set", "lo", "up")
        in_network(pid, "ip", "link", "add", "bridge", "type", "bridge")
        in_network(pid, "ip", "link", "set", "bridge", "up")

    def join(self, k: int, pid: int) -> None:
        """Join host k, whose first process is `pid`, to the bridge."""
        self._count += 1  # the port of a host that has vanished goes away some time later
        port = f"port{self._count}"
        peer = ["peer", "name", "eth0", "netns", str(pid)]
        in_network(self.pid, "ip", "link", "add", port, "type", "veth", *peer)
        in_network(self.pid, "ip", "link", "set", port, "master", "bridge", "up")
        in_network(pid, "ip", "addr", "add", f"{address(k)}/24", "dev", "eth0")
        in_network(pid, "ip", "link", "set", "eth0", "up")
        in_network(pid, "ip", "link", "set", "lo", "up")
        self._ports[k] = port

    def cut(self, k: int) -> None:
        """Let nothing through between host k and the others; :meth:`mend` undoes it."""
        in_network(self.pid, "ip", "link", "set", self._ports[k], "nomaster")

    def mend(self, k: int) -> None:
        """Let everything through again."""
        in_network(self.pid, "ip", "link", "set", self._ports[k], "master", "bridge")

    def shape(self, k: int, pid: int, rate: str, latency: str) -> None:
        """Limit the link of host k: bandwidth in each direction, round-trip latency to any other host; "": no limit."""
        one_way_s = parse_time(latency) / 4 if latency else 0.0  # a round trip passes four ends of links
        for where, device in ((pid, "eth0"), (self.pid, self._ports[k])):
            with contextlib.suppress(ClusterError):  # nothing was set
                in_network(where, "tc", "qdisc", "del", "dev", device, "root")
            parent = ["root"]
            if rate:
                in_network(where, "tc", "qdisc", "add", "dev", device, *parent, "handle", "1:", *_bucket(rate))
                parent = ["parent", "1:1"]
            if one_way_s:
                delay = ["netem", "delay", f"{max(1, round(one_way_s * 1e6))}us", "limit", "100000"]
                in_network(where, "tc", "qdisc", "add", "dev", device, *parent, *delay)

    def has_netem(self) -> bool:
        """Return whether the kernel can delay packets."""
        try:
            in_network(self.pid, "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
        except ClusterError:
            return False
        in_network(self.pid, "tc", "qdisc", "del", "dev", "lo", "root")
        return True


def _bucket(rate: str) -> list[str]:
    bits = parse_rate(rate)
    burst = math.ceil(max(2 * LARGEST_SEGMENT_BYTES, bits / 8 * 1e-3))
    return ["tbf", "rate", f"{round(bits)}bit", "burst", str(burst), "latency", f"{QUEUE_MS}ms"]
