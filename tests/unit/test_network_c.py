"""Links to delegates of other nodes, in C, under sanitizers: accesses, failures, deaths, messages of any kind.

A link, a listener and a cache with a simple delegate live in one process, or in two of which one is killed.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import pytest

from support import cbuild, fuzz
from support.marks import slow

MODULES = ("common", "typemap", "storage", "cache", "rendezvous", "network")


def checked(name: str) -> pathlib.Path:
    return cbuild.program(f"network/{name}.c", *MODULES)


@pytest.mark.parametrize(
    ("name", "cases"),
    [("test_link", 0), ("test_access", 15), ("test_handshake", 4000), ("test_strangers", 0), ("test_death", 0)],
)
def test_requests_accesses_handshakes_strangers_and_deaths(name: str, cases: int) -> None:
    cbuild.passes(checked(name), *(fuzz.words(cases) if cases else ()))


@pytest.mark.parametrize("fault", [*slow("short=777"), "short=1000000:delay_ms=1"])
def test_random_accesses_over_a_connection_that_suffers(fault: str) -> None:
    cbuild.passes(checked("test_access"), "1", fuzz.seed(), MPIOX_NETWORK_FAULT=fault)


@pytest.mark.parametrize(("name", "cases"), [*slow(("test_link", 0)), ("test_access", 3), ("test_death", 0)])
def test_races(name: str, cases: int) -> None:
    cbuild.passes(cbuild.threads_program(f"network/{name}.c", *MODULES), *(fuzz.words(cases) if cases else ()))


@pytest.mark.parametrize("name", ["fuzz_serve", "fuzz_link"])
def test_messages_of_any_kind(name: str) -> None:
    count = fuzz.examples(4000)
    assert cbuild.check(checked(name), str(count), fuzz.seed(), timeout=300) == f"{count} cases passed\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fuzz_serve", "fuzz_link"])
def test_coverage_guided_fuzzing(name: str, tmp_path: pathlib.Path) -> None:
    cbuild.fuzz(f"network/{name}.c", *MODULES, folder=tmp_path, runs=2000, most=2000)


#: Two hosts that are joined by a cable, which is cut. Ends with the status of the one that is left.
TWO_HOSTS = """
ip link add va type veth peer name vb || exit 77
unshare --net sleep 100 & other=$!
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
there="nsenter -t $other -n"
ip link set vb netns $other || exit 77
ip link set lo up; ip link set va up; ip addr add 10.9.8.1/24 dev va || exit 77
$there ip link set lo up; $there ip link set vb up; $there ip addr add 10.9.8.2/24 dev vb || exit 77
$there "$1" serve >"$2/address" & delegate=$!
until [ -s "$2/address" ]; do sleep 0.05; done
"$1" watch $(cat "$2/address") >"$2/said" & client=$!
until grep -q connected "$2/said"; do sleep 0.05; done
sleep 0.5
$there ip link set vb down
wait $client; status=$?
kill $delegate $other
exit $status
"""


def test_a_host_that_vanishes_is_noticed(tmp_path: pathlib.Path) -> None:
    """Nothing closes the connection: only the acknowledgements stop. A delegate that is not noticed hangs this test."""
    needed = [tool for tool in ("unshare", "nsenter", "ip") if shutil.which(tool) is None]
    if needed:
        pytest.skip(f"not installed: {', '.join(needed)}")
    path = checked("vanish")
    command = ["unshare", "--map-root-user", "--net", "--mount", "sh", "-c", TWO_HOSTS, "sh", str(path), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    said = (tmp_path / "said").read_text() if (tmp_path / "said").exists() else ""
    if not said and (done.returncode == 77 or "unshare" in done.stderr):
        pytest.skip(f"no network namespaces here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert "connected" in said
    assert said.splitlines()[-1].endswith(" 0 failures")


#: A host of a job: networks that lead to others (eth8, ib0), and what containers and virtual machines leave behind. The
#: last one is a bridge without a way out, where the kernel can make one: only the kind of the interface tells.
ONE_HOST = """
mount -t sysfs none /sys
ip link add docker0 type veth peer name eth8 || exit 77
ip link add virbr0 type veth peer name br-77 || exit 77
ip link add ib0 type veth peer name lxcbr0 || exit 77
ip link add inner type bridge
n=0
for each in eth8 ib0 docker0 virbr0 br-77 lxcbr0 inner; do
    n=$((n + 1)); ip link set $each up; ip addr add 10.9.$n.1/24 dev $each
done
"$1" "" ib0 "eth8;docker0" "ib0,none" none
"""


def test_bridges_are_not_offered() -> None:
    """Every host may have them, with the same address: a client of another host would call itself, or somebody's."""
    needed = [tool for tool in ("unshare", "ip") if shutil.which(tool) is None]
    if needed:
        pytest.skip(f"not installed: {', '.join(needed)}")
    command = ["unshare", "--map-root-user", "--net", "--mount", "sh", "-c", ONE_HOST, "sh", str(checked("addresses"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode == 77 or done.stderr.startswith("unshare"):
        pytest.skip(f"no network namespaces here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    found = [sorted(line.split()) for line in done.stdout.splitlines()]
    assert found == [["10.9.1.1", "10.9.2.1"], ["10.9.2.1"], ["10.9.1.1", "10.9.3.1"], ["10.9.2.1"], ["19", "none:"]], (
        done.stdout + done.stderr
    )
