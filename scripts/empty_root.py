"""The wheel in nearly empty roots: bare Debian with Python and one MPI each (``make test-root``).

    sudo python scripts/empty_root.py                     both roots
    sudo python scripts/empty_root.py mpich               one of them
    sudo python scripts/empty_root.py --limit 120         on a slow machine

Problem. An environment on a developer's machine has compilers, headers and libraries that a user's machine lacks.

Algorithm. debootstrap makes a root of the smallest kind with python3, venv, pip and one MPI, once per MPI; it stays in
``build/roots``. What the wheel needs is downloaded outside, by pip as it is configured there, into a folder. Then an
ordinary user without any right of root lives in that root, in name spaces of processes, mounts, memory and network, the
last with an interface that leads nowhere: pip installs the wheel from that folder into a fresh environment, and all
lines of the README's first example run, ``./app`` being tests/programs/wheel_smoke.c as the machine's ``mpicc`` of that
MPI has compiled it. A program in Python follows.

Guarantees. Nothing is taken from the machine or the network but the folder of wheels and the two programs; the root has
no compiler, which is looked for. The statistics must show that the library carried out every collective. Exit status 1
when something fails, or when install and first example take longer than the limit, download included. Needs root: it
mounts and calls chroot. All mounts and processes end with their name spaces.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "roots"
USER = 1000
PYTHON = ("python3", "python3-venv", "python3-pip")
#: Options that select the wheels for the root's Python, whatever the machine has.
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1)] + ["manylinux2014_x86_64", "linux_x86_64"]
_STEP_S = 600
_OUTPUT = 4000
#: Arguments: root, folder of wheels, home, command. Mounts are those of the process's own name space.
_ENTER = """
set -euo pipefail
root=$1 wheels=$2 home=$3; shift 3
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for name in null zero full random urandom; do touch "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 pts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"; ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mkdir -p "$root/wheels" "$root/home/user"
mount --bind "$wheels" "$root/wheels"; mount --bind "$home" "$root/home/user"
ip link set lo up; hostname empty
ip link add eth0 type veth peer name eth1; ip addr add 10.0.0.2/24 dev eth0; ip link set eth0 up; ip link set eth1 up
exec chroot --userspec="$UID_INSIDE:$UID_INSIDE" "$root" env -i HOME=/home/user USER=user LANG=C.UTF-8 \\
    PATH=/home/user/env/bin:/usr/local/bin:/usr/bin:/bin "$@"
"""


class StepError(Exception):
    """A step that failed; the text is the end of its output, or the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One root.

    Attributes
    ----------
    packages : of Debian, that bring the MPI library and its launcher.
    mpicc : compiler wrapper of the machine, for the program in C.
    development : package that has it.
    before_c, before_python : lines that docs/howto/install.md gives the user for this MPI.
    replays : whether ``pioneer all`` is run.
    """

    packages: tuple[str, ...]
    mpicc: str
    development: str
    before_c: str = ""
    before_python: str = ""
    replays: bool = True


KINDS = {
    "openmpi": Kind(
        packages=("openmpi-bin",),
        mpicc="mpicc.openmpi",
        development="libopenmpi-dev",
        before_c="export OMPI_MCA_rmaps_base_oversubscribe=1",
    ),
    "mpich": Kind(
        packages=("mpich",),
        mpicc="mpicc.mpich",
        development="libmpich-dev",
        before_python="mkdir -p ~/mpich && ln -sf /lib/x86_64-linux-gnu/libmpich.so.12 ~/mpich/libmpi.so.12\n"
        "export LD_LIBRARY_PATH=~/mpich",
        replays=False,  # MPICH 4.0.2's ROMIO ends it, "Out of memory in adio/common/flatten.c"; MPICH 5 does not
    ),
}


def run(command: list[str], *, limit_s: float = _STEP_S, more: dict[str, str] | None = None) -> str:
    """Run a command; returns both outputs, raises `StepError`."""
    try:
        done = subprocess.run(
            command,
            env=os.environ | (more or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StepError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise StepError(f"{command[0]}: exit status {done.returncode}\n{done.stdout[-_OUTPUT:]}")
    return done.stdout


def cpu_s() -> float:
    """Return the processor seconds of all commands so far, which a busy machine does not change much."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def example(text: str) -> list[str]:
    """Return the lines of the README's first example of putting the library under one's own program."""
    found = re.search(r"^## Put it under your own code$.*?^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line.partition("  #")[0].strip() for line in found[1].splitlines()] if found else []
    if not any(line.startswith("mpirun ") and line.endswith("-- ./app") for line in lines):
        raise StepError("README.md: no example with ./app under 'Put it under your own code'")
    return [line for line in lines if line]


def carried_out(output: str) -> bool:
    """Return whether a program's statistics show that the library carried out its collectives, and nothing else did."""
    calls = {name: int(count) for name, count in re.findall(r"^  (\w+) +(\d+) calls", output, re.MULTILINE)}
    return calls.get("collective_writes", 0) > 0 and calls.get("native_calls", 0) == 0


def mirror() -> tuple[str, str]:
    """Return the address and the suite from which this machine has its own packages."""
    lines = Path("/etc/os-release").read_text("utf-8").splitlines()
    release = dict(line.split("=", 1) for line in lines if "=" in line)
    suite = release.get("VERSION_CODENAME", "").strip('"')
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", f"Codename: {suite}"]
    found = run(asked).split()
    if not suite or not found:
        raise StepError("no Debian with a list of packages: apt-get update")
    return found[0], suite


# ---- what is made once -----------------------------------------------------------------------------------------------


def make_root(name: str, kind: Kind) -> Path:
    """Make the root unless it is there; returns its folder."""
    root = FOLDER / name
    if (root / "complete").exists():
        return root
    shutil.rmtree(root, ignore_errors=True)
    for tool, package in (("debootstrap", "debootstrap"), ("unshare", "util-linux"), ("ip", "iproute2")):
        if shutil.which(tool) is None:
            raise StepError(f"no {tool}: apt-get install {package}")
    cache = FOLDER / "packages"
    cache.mkdir(parents=True, exist_ok=True)
    address, suite = mirror()
    include = ",".join((*PYTHON, *kind.packages))
    print(f"{name}: debootstrap of {suite} with {include}", flush=True)
    log = run(
        ["debootstrap", "--variant=minbase", f"--cache-dir={cache}", f"--include={include}", suite, str(root), address],
        limit_s=3600,
    )
    (FOLDER / f"{name}.log").write_text(log, encoding="utf-8")
    with (root / "etc/passwd").open("a", encoding="utf-8") as file:
        file.write(f"user:x:{USER}:{USER}::/home/user:/bin/bash\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost empty\n", encoding="utf-8")
    (root / "complete").touch()
    return root


def download(root: Path, wheel: Path) -> tuple[Path, float]:
    """Download the wheel's dependencies for the root's Python; returns the folder, and the seconds it took."""
    folder = FOLDER / "wheels"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(wheel, folder)
    version = run(["chroot", str(root), "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()
    begun = time.monotonic()
    tags = [
        f"--python-version={version}",
        "--implementation=cp",
        f"--abi=cp{version.replace('.', '')}",
        "--abi=abi3",
        "--abi=none",
        *(f"--platform={item}" for item in PLATFORMS),
    ]
    run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--disable-pip-version-check",
            "--no-cache-dir",
            "--only-binary=:all:",
            *tags,
            "-d",
            str(folder),
            f"{wheel}[doctor,pioneer]",
        ]
    )
    return folder, time.monotonic() - begun


# ---- what the user does ----------------------------------------------------------------------------------------------


class Machine:
    """A root with a user in it, whose home stays from step to step."""

    def __init__(self, name: str, root: Path, wheels: Path) -> None:
        self._home = FOLDER / f"home-{name}"
        shutil.rmtree(self._home, ignore_errors=True)
        self._home.mkdir(parents=True)
        self._place = [str(root), str(wheels), str(self._home)]

    def take(self, path: Path, name: str, mode: int) -> None:
        """Put a file into the home."""
        shutil.copy(path, self._home / name)
        (self._home / name).chmod(mode)

    def settle(self) -> None:
        """Let the home be the user's."""
        for path in (self._home, *self._home.iterdir()):
            os.chown(path, USER, USER)

    def do(self, script: str) -> tuple[str, float]:
        """Run a script as the user; returns its output and the seconds it took."""
        begun = time.monotonic()
        spaces = ["unshare", "--mount", "--pid", "--fork", "--net", "--uts", "--ipc", "--kill-child"]
        inside = ["bash", "-euo", "pipefail", "-c", f"cd\n{script}"]
        output = run([*spaces, "bash", "-c", _ENTER, "enter", *self._place, *inside], more={"UID_INSIDE": str(USER)})
        return output, time.monotonic() - begun


_BARE = """
[[ $(id -u) == {user} ]]
for tool in cc gcc clang as ld make cmake python3-config; do
    if command -v $tool; then echo "the root has a compiler, it is not empty"; exit 1; fi
done
"""
#: Command, and what it prints at its end. Status 1: on a busy machine the times of the copy are not the program's.
_PIONEER = (
    ("mpiio-ext trace -o TRACE -- mpirun -n 2 ./app", "smoke: ok"),
    ("mpiio-ext pioneer all TRACE -n 2 -o DIR || (($? == 1))", "6/6 compare: done"),
)
_INSTALL = """
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check --no-index --find-links /wheels mpiio_ext
"""
#: For the doctor, for programs in Python, and for PIONEER.
_EXTRAS = _INSTALL.splitlines()[-1] + "[doctor,pioneer]"


def quiet(machine: Machine, script: str) -> None:
    """Run a script without statistics; the library may only report that the launcher spawns no delegates."""
    output = machine.do(script)[0]
    own = [line for line in output.splitlines() if re.search(r"\bmpiio[_-]ext\b", line)]
    if "smoke: ok" not in output or not all(line.endswith("is in force") for line in own):
        raise StepError(f"more than the program's own output:\n{output[-_OUTPUT:]}")


def check(name: str, kind: Kind, root: Path, wheels: Path) -> dict[str, float]:
    """Carry out the steps of a user; returns {step: seconds}."""
    if shutil.which(kind.mpicc) is None:
        raise StepError(f"no {kind.mpicc}: apt-get install {kind.development}")
    machine = Machine(name, root, wheels)
    binary = FOLDER / f"app-{name}"
    programs = ROOT / "tests" / "programs"
    run([kind.mpicc, "-o", str(binary), str(programs / "wheel_smoke.c")])
    machine.take(binary, "app", 0o755)
    machine.take(programs / "wheel_smoke.py", "app.py", 0o644)
    machine.settle()
    machine.do(_BARE.format(user=USER))
    used_s = cpu_s()
    seconds = {"install": machine.do(_INSTALL)[1]}
    seconds["install, processor"] = cpu_s() - used_s
    seconds["install, extras"] = machine.do(_EXTRAS)[1]
    lines = example((ROOT / "README.md").read_text(encoding="utf-8"))
    for line in lines:
        output, seconds[line] = machine.do(f"{kind.before_c}\nexport MPIOX_STATS=1\n{line} 2>&1")
        if " doctor " not in line and not ("smoke: ok" in output and carried_out(output)):
            raise StepError(f"{line}: the library did not carry it out\n{output[-_OUTPUT:]}")
        if "mpiox_delegates" in line:
            quiet(machine, f"{kind.before_c}\n{line} 2>&1")
    before = "\n".join((kind.before_c, kind.before_python))
    for line in ("mpirun -n 2 python app.py import", "mpirun -n 2 mpiio-ext doctor"):
        output, seconds[line] = machine.do(f"{before}\n{line} 2>&1")
        if " doctor" not in line and "smoke: ok" not in output:
            raise StepError(f"{line}: {output[-_OUTPUT:]}")
    (FOLDER / f"doctor-{name}.txt").write_text(output, encoding="utf-8")
    for line, words in _PIONEER if kind.replays else ():
        output, seconds[line] = machine.do(f"{before}\n{line} 2>&1")
        if words not in output:
            raise StepError(f"{line}: {output[-_OUTPUT:]}")
    return seconds | {"first example": seconds[lines[0]]}


def main() -> int:
    """Run the steps that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"roots: {', '.join(KINDS)}")
    parser.add_argument("--wheel", type=Path, help="default: the newest in build/wheel/dist")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for download, install and first example")
    options = parser.parse_args()
    wheels = sorted((ROOT / "build" / "wheel" / "dist").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    wheel = options.wheel or (wheels[-1] if wheels else None)
    if not set(options.names) <= set(KINDS) or wheel is None:
        parser.error("there is no wheel: run `make wheel`" if wheel is None else f"roots: {', '.join(KINDS)}")
    if os.geteuid() != 0:
        parser.error("only root can call chroot and mount: sudo, or a container with CAP_SYS_ADMIN")
    results, failed = {}, False
    for name in options.names or KINDS:
        try:
            root = make_root(name, KINDS[name])
            folder, download_s = download(root, wheel)
            seconds = {"download": download_s} | check(name, KINDS[name], root, folder)
        except StepError as error:
            print(f"{name}: FAILED: {error}", flush=True)
            failed = True
            continue
        total = sum(seconds[step] for step in ("download", "install", "first example"))
        results[name] = seconds | {"total": total, "load": os.getloadavg()[0]}
        for step, value in results[name].items():
            print(f"{name}: {step}: {value:.1f}{'' if step == 'load' else ' s'}")
        if total > options.limit:
            print(f"{name}: FAILED: {total:.0f} s, the limit is {options.limit:.0f} s", flush=True)
            failed = True
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
