"""Links to delegates of other nodes, in C, under sanitizers: accesses, failures, deaths, messages of any kind.

A link, a listener and a cache with a simple delegate live in one process, or in two of which one is killed.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

import pytest

from support import cbuild

SEED = os.environ.get("MPIOX_TEST_SEED", "1")
MODULES = ("common", "typemap", "cache", "rendezvous", "network")
THREADS = ("-fsanitize=thread",)
FUZZER = ("-fsanitize=fuzzer-no-link,address,undefined", "-fno-sanitize-recover=all")


@pytest.fixture(scope="module")
def folder() -> Iterator[pathlib.Path]:
    """Return a folder for the objects of the modules, which all programs share: one compilation a sanitizer."""
    with tempfile.TemporaryDirectory(prefix="mpiio_ext_network_") as name:
        yield pathlib.Path(name)


def objects(folder: pathlib.Path, compiler: str, *sanitize: str) -> list[str]:
    """Compile the modules, unless that has been done; return their object files."""
    here = folder / f"{pathlib.Path(compiler).name}{abs(hash(sanitize))}"
    sources = cbuild.sources(*MODULES)
    if not here.exists():
        here.mkdir()
        command = [compiler, *cbuild.FLAGS, *sanitize, *cbuild.includes(), "-c", *sources]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=here)
        assert done.returncode == 0, done.stderr
    return [str(here / f"{pathlib.Path(source).stem}.o") for source in sources]


def build(folder: pathlib.Path, name: str, *sanitize: str) -> pathlib.Path:
    """Compile tests/c/network/NAME.c with the modules; under address and undefined-behaviour sanitizers by default."""
    sanitize = sanitize or cbuild.SANITIZE
    path = folder / f"{name}{abs(hash(sanitize))}"
    if not path.exists():
        source = str(cbuild.ROOT / "tests" / "c" / "network" / f"{name}.c")
        flags = [*cbuild.FLAGS, *sanitize, *cbuild.includes(), f"-I{cbuild.ROOT / 'tests' / 'c'}"]
        files = [source, *objects(folder, cbuild.compiler(), *sanitize)]
        command = [cbuild.compiler(), *flags, *files, "-o", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    return path


def need_thread_sanitizer(folder: pathlib.Path) -> None:
    """Skip the test where no program under the thread sanitizer starts."""
    command = [cbuild.compiler(), "-fsanitize=thread", "-x", "c", "-", "-o", str(folder / "probe")]
    built = subprocess.run(command, input="int main(void) { return 0; }", capture_output=True, text=True, timeout=60)
    if built.returncode != 0 or subprocess.run([str(folder / "probe")], timeout=60).returncode != 0:
        pytest.skip("the thread sanitizer does not run here")


def passes(path: pathlib.Path, *arguments: str, **environment: str) -> None:
    out = cbuild.check(path, *arguments, timeout=300, **environment)
    assert out.splitlines()[-1].endswith(" 0 failures")


def test_requests_failures_and_threads(folder: pathlib.Path) -> None:
    passes(build(folder, "test_link"))


def test_random_accesses(folder: pathlib.Path) -> None:
    passes(build(folder, "test_access"), "15", SEED)


def test_handshakes(folder: pathlib.Path) -> None:
    passes(build(folder, "test_handshake"), "4000", SEED)


def test_strangers(folder: pathlib.Path) -> None:
    passes(build(folder, "test_strangers"))


@pytest.mark.parametrize("fault", ["short=777", "short=1000000:delay_ms=1"])
def test_random_accesses_over_a_connection_that_suffers(folder: pathlib.Path, fault: str) -> None:
    passes(build(folder, "test_access"), "1", SEED, MPIOX_NETWORK_FAULT=fault)


def test_deaths(folder: pathlib.Path) -> None:
    passes(build(folder, "test_death"))


@pytest.mark.parametrize(("name", "arguments"), [("test_link", ()), ("test_access", ("3", SEED)), ("test_death", ())])
def test_races(folder: pathlib.Path, name: str, arguments: tuple[str, ...]) -> None:
    need_thread_sanitizer(folder)
    passes(build(folder, name, *THREADS), *arguments)


@pytest.mark.parametrize("name", ["fuzz_serve", "fuzz_link"])
def test_messages_of_any_kind(folder: pathlib.Path, name: str) -> None:
    assert cbuild.check(build(folder, name), "4000", SEED, timeout=300) == "4000 cases passed\n"


@pytest.mark.parametrize("name", ["fuzz_serve", "fuzz_link"])
def test_coverage_guided_fuzzing(folder: pathlib.Path, name: str, tmp_path: pathlib.Path) -> None:
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("no clang: libFuzzer is not available")
    path = tmp_path / name
    source = str(cbuild.ROOT / "tests" / "c" / "network" / f"{name}.c")
    flags = [*cbuild.FLAGS, "-DFUZZ", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    command = [clang, *flags, *cbuild.includes(), source, *objects(folder, clang, *FUZZER), "-o", str(path)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if built.returncode != 0 and "libclang_rt.fuzzer" in built.stderr:
        pytest.skip("clang has no libFuzzer")
    assert built.returncode == 0, built.stderr
    (tmp_path / "corpus").mkdir()
    options = ["-runs=4000", "-max_len=2000", f"-seed={SEED}", f"-artifact_prefix={tmp_path}/"]
    command = [str(path), *options, str(tmp_path / "corpus")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]


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


def test_a_host_that_vanishes_is_noticed(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Nothing closes the connection: only the acknowledgements stop. A delegate that is not noticed hangs this test."""
    needed = [tool for tool in ("unshare", "nsenter", "ip") if shutil.which(tool) is None]
    if needed:
        pytest.skip(f"not installed: {', '.join(needed)}")
    path = build(folder, "vanish")
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


def test_bridges_are_not_offered(folder: pathlib.Path) -> None:
    """Every host may have them, with the same address: a client of another host would call itself, or somebody's."""
    needed = [tool for tool in ("unshare", "ip") if shutil.which(tool) is None]
    if needed:
        pytest.skip(f"not installed: {', '.join(needed)}")
    command = ["unshare", "--map-root-user", "--net", "--mount", "sh", "-c", ONE_HOST, "sh",
               str(build(folder, "addresses"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode == 77 or done.stderr.startswith("unshare"):
        pytest.skip(f"no network namespaces here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    found = [sorted(line.split()) for line in done.stdout.splitlines()]
    assert found == [["10.9.1.1", "10.9.2.1"], ["10.9.2.1"], ["10.9.1.1", "10.9.3.1"], ["10.9.2.1"],
                     ["19", "none:"]], done.stdout + done.stderr
