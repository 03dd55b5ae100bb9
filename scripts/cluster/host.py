"""One host: namespaces of its own, which its first process keeps alive; see host_init.py.

What a host has of its own: network, host name, System V and POSIX IPC, process numbers, mounts; of these /dev/shm,
/proc, /etc/hosts and a folder for temporary files, to which TMPDIR points. Everything else of the file system is the
machine's, at the same paths, with one page cache.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cluster.tools import START_S, ClusterError, die_with_parent

HERE = Path(__file__).resolve().parent
#: Steps of a host before its first process: $1 the shared folder in /dev/shm, $2 a folder to move it by, $3 hosts
#: file, $4 folder of temporary files; the rest is the command.
SETUP = """
set -e
mount -n --bind "$1" "$2"
mount -n -t tmpfs -o mode=1777 none /dev/shm
mkdir -p "$1"
mount -n --move "$2" "$1"
mount -n --bind "$3" /etc/hosts
mount -n -t tmpfs -o mode=1777 none "$4"
mount -n -t proc proc /proc
shift 4
exec "$@"
"""


def spaces(*kinds: str, words: Sequence[str], log: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start a command in namespaces of its own (options of unshare); return its starter, and its process number.

    The command is the first process of a process namespace: all of that namespace dies with it, and it dies with what
    has started it, which dies with the caller.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            ["unshare", *kinds, "--pid", "--fork", "--kill-child=SIGKILL", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline_s = time.monotonic() + START_S
    own = Path("/proc/self/ns/pid").readlink()
    while time.monotonic() < deadline_s and process.poll() is None:
        with contextlib.suppress(OSError):
            for text in children.read_text().split():
                if Path(f"/proc/{text}/ns/pid").readlink() != own:
                    return process, int(text)
        time.sleep(0.005)
    process.kill()
    process.wait()
    raise ClusterError(f"no namespaces could be made: {last_words(log)}")


def last_words(log: Path) -> str:
    """Return the end of a log, on one line."""
    with contextlib.suppress(OSError):
        return log.read_text("utf-8", errors="replace").strip()[-1000:].replace("\n", "; ")
    return ""


class Host:
    """A host that is starting or up.

    Attributes
    ----------
    number : 1 for node1.
    name : node1, node2, …
    pid : its first process, as the machine counts.
    process : what has started that.
    """

    def __init__(self, number: int, private: Path, folder: Path) -> None:
        self.number, self.name, self._private = number, f"node{number}", private
        self._log = private / f"{self.name}.log"
        self._socket = private / f"{self.name}.socket"
        self._socket.unlink(missing_ok=True)
        self._log.unlink(missing_ok=True)
        stage = private / f"{self.name}.stage"
        stage.mkdir(exist_ok=True)
        first = [sys.executable, "-S", "-E", str(HERE / "host_init.py"), str(self._socket), self.name]
        first += [str(private / "tmp")]
        places = [str(path) for path in (folder, stage, private / "hosts", private / "tmp")]
        words = ["sh", "-c", SETUP, "host", *places, *first]
        self.process, self.pid = spaces("--net", "--mount", "--uts", "--ipc", words=words, log=self._log)

    def is_up(self) -> bool:
        """Return whether its first process lives."""
        return self.process.poll() is None

    def await_up(self) -> None:
        """Wait until it takes commands."""
        deadline_s = time.monotonic() + START_S
        while not self._socket.exists():
            if not self.is_up() or time.monotonic() > deadline_s:
                raise ClusterError(f"{self.name} does not come up: {last_words(self._log) or 'it says nothing'}")
            time.sleep(0.01)

    def end(self) -> None:
        """End all that runs on it, at once."""
        self.process.kill()  # its first process dies with it, all others die with that one
        self.process.wait(timeout=START_S)
