"""A pool of MPI ranks that runs history after history: one launch, thousands of histories.

The ranks (worker.py) wait in sockets. A history that does not end within its limit, or that ends the launch, raises
:class:`Stuck`, which says what every rank was doing; the next history gets a new launch.
"""

from __future__ import annotations

import collections
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from multiprocessing.connection import Connection, Listener, wait
from typing import Any

import numpy as np

from model.history import MOST_RANKS, History, initial
from model.oracle import judge
from model.settings import Setting
from support.launch import MARKER, MEMORY, PATIENCE, base_environment, end_marked, launcher, marked_processes
from support.processes import is_delegate, words

WORKER = pathlib.Path(__file__).resolve().parent / "worker.py"
START_S = 240.0
STACKS_S = 60.0
TAIL_BYTES = 6000


class Stuck(Exception):
    """A history hung or ended the launch."""


class Pool:
    """The ranks.

    Parameters
    ----------
    setting : hints and variables of all ranks, and what opens pass to MPI.
    limit_s : PATIENCE times this many seconds, and a history counts as stuck.
    parent : where the files are written; None: memory.
    ranks : number of ranks.

    ``counts``: statistics of the library, summed over ranks and histories.
    """

    def __init__(
        self,
        setting: Setting | None = None,
        *,
        limit_s: float = 60.0,
        parent: str | None = None,
        ranks: int = MOST_RANKS,
    ) -> None:
        self.setting, self.parent, self.ranks = setting or Setting(), parent, ranks
        self.limit_s = limit_s * PATIENCE
        self.process: subprocess.Popen[bytes] | None = None
        self.connections: list[Connection[Any, Any]] = []
        self.launches = 0
        self.counts: collections.Counter[str] = collections.Counter()
        self.marker = ""
        self.folder = ""

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        problem = self.stop()
        if problem and _[0] is None:
            raise Stuck(problem)

    # ---- the launch -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Launch the ranks."""
        self.folder = tempfile.mkdtemp(prefix="mpiox_model_", dir=self.parent or MEMORY)
        address = os.path.join(self.folder, "socket")
        self.note = np.zeros(MOST_RANKS, np.int64)
        pathlib.Path(address + ".note").write_bytes(self.note.tobytes())
        self.marker = uuid.uuid4().hex
        self.log = open(os.path.join(self.folder, "log"), "wb")  # noqa: SIM115
        program = [sys.executable, str(WORKER), address]
        environment = base_environment() | dict(self.setting.environment) | {MARKER: self.marker}
        if self.setting.hints:
            environment["MPIOX_HINTS"] = self.setting.hints
        if self.setting.site:
            environment["MPIOX_SITE_FILE"] = os.path.join(self.folder, "site")
            pathlib.Path(self.folder, "site").write_text(self.setting.site, encoding="utf-8")
        listener = Listener(address, "AF_UNIX", backlog=self.ranks)
        self.process = subprocess.Popen(
            [str(launcher()), "-n", str(self.ranks), *program],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.launches += 1
        problem = self.gather(listener)
        listener.close()
        if problem:
            self.kill()
            raise Stuck(problem)

    def gather(self, listener: Listener) -> str:
        """Wait until every rank has connected; what went wrong, or nothing."""
        assert self.process is not None
        found: dict[int, Connection[Any, Any]] = {}
        deadline_s = time.monotonic() + START_S
        listener._listener._socket.settimeout(1.0)  # type: ignore[attr-defined]
        while len(found) < self.ranks:
            try:
                connection = listener.accept()
                found[connection.recv()] = connection
            except TimeoutError:
                if self.process.poll() is not None:
                    return f"crash: the ranks have not started\n{self.tail()}"
                if time.monotonic() > deadline_s:
                    return f"hang: the ranks do not start\n{self.stacks()}{self.tail()}"
        self.connections = [found[rank] for rank in range(self.ranks)]
        return ""

    def tail(self) -> str:
        """Return the end of what the ranks printed."""
        self.log.flush()
        with contextlib.suppress(OSError):
            return pathlib.Path(self.folder, "log").read_bytes()[-TAIL_BYTES:].decode(errors="replace")
        return ""

    def stop(self) -> str:
        """End the launch as programs end; what went wrong with that, or nothing."""
        if self.process is None:
            return ""
        for connection in self.connections:
            connection.close()
        problem = ""
        try:
            status = self.process.wait(timeout=self.limit_s)
            if status != 0:
                problem = f"the launch ended with status {status}\n{self.tail()}"
        except subprocess.TimeoutExpired:
            problem = f"the launch did not end\n{self.tail()}"
        self.kill()
        return problem

    def kill(self) -> None:
        """End the launch."""
        if self.process is not None:
            end_marked(self.marker, self.process)
            self.process = None
            self.log.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    # ---- histories --------------------------------------------------------------------------------------------------

    def run(self, history: History) -> list[str]:
        """Run a history; what was wrong. Raises Stuck."""
        if self.process is None:
            self.start()
        for i, n in enumerate(history["files"]):
            path = pathlib.Path(self.folder, f"f{i}")
            path.unlink(missing_ok=True)
            if n >= 0:
                path.write_bytes(initial(i, n).tobytes())
        message = {"history": history, "folder": self.folder, "limit_s": self.limit_s + 2 * STACKS_S}
        results = self.exchange(message, history)
        for found in results:
            self.counts.update(found[-1]["stats"])
        held = []
        for i in range(len(history["files"])):
            path = pathlib.Path(self.folder, f"f{i}")
            held.append(path.read_bytes() if path.exists() else None)
        return judge(history, results, held)

    def exchange(self, message: dict[str, Any], history: History) -> list[Any]:
        """Send a history to its ranks and wait for their answers."""
        active = self.connections[: history["ranks"]]
        answers: dict[int, Any] = {}
        deadline_s = time.monotonic() + self.limit_s
        try:
            for connection in active:
                connection.send(message)
            while len(answers) < len(active):
                waiting = [c for r, c in enumerate(active) if r not in answers]
                ready = wait(waiting, timeout=max(deadline_s - time.monotonic(), 0.0))
                if not ready:
                    raise TimeoutError
                for connection in ready:
                    answers[active.index(connection)] = connection.recv()  # type: ignore[arg-type, union-attr]
        except (TimeoutError, EOFError, OSError) as error:
            where, kind = self.where(history, answers), "hang" if isinstance(error, TimeoutError) else "crash"
            stacks = self.stacks() if kind == "hang" else ""
            text = self.tail()
            self.kill()
            raise Stuck(f"{kind}: {where}\n{stacks}{text}") from None
        return [answers[rank] for rank in range(len(active))]

    def stacks(self) -> str:
        """Return where every thread of the launch stands, if there is a debugger."""
        if shutil.which("gdb") is None:
            return ""
        texts, deadline_s = [], time.monotonic() + STACKS_S
        for pid in marked_processes(self.marker):
            if time.monotonic() < deadline_s and (is_delegate(pid) or str(WORKER) in words(pid)):
                command = ["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "thread apply all bt 14"]
                done = subprocess.run(command, capture_output=True, text=True, timeout=STACKS_S, check=False)
                lines = [line[:160] for line in done.stdout.splitlines() if line.startswith(("#", "Thread"))]
                texts += [f"process {pid}: {words(pid)[:120]}", *lines]
        return "\n".join([*texts, ""])

    def where(self, history: History, answers: dict[int, Any]) -> str:
        """Return where every rank stands."""
        note = np.frombuffer(pathlib.Path(self.folder, "socket.note").read_bytes(), np.int64)
        texts = []
        for rank in range(history["ranks"]):
            at = int(note[rank])
            if rank in answers:
                texts.append(f"rank {rank} is done")
            elif at > 0:
                op = history["ops"][at - 1]
                texts.append(f"rank {rank} is in call {at - 1} ({op['op']} {op.get('how', '')})")
            else:
                texts.append(f"rank {rank} is {'closing its files' if at < 0 else 'waiting'}")
        return ", ".join(texts)
