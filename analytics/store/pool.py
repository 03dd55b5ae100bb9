"""Worker processes that may die: each is given one task at a time, so that a death is laid to the task it had.

Problem. Connectors call C libraries on files that anybody wrote. A crash or an endless loop must cost the log that
causes it and nothing else. The pool of ``concurrent.futures`` loses every task under way and cannot say which one did
it; and ``multiprocessing`` runs the user's main program again in each worker, which a plain script does not survive.

Algorithm. Threads of a ``ThreadPoolExecutor`` own a process each (:mod:`mpiio_ext.analytics.store.worker`) and talk
with it over pipes in pickles: a function and its arguments there, the result back. Workers end when the pipe ends,
so none outlives a killed fill for longer than its task.
"""

from __future__ import annotations

import os
import pickle
import queue
import select
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from mpiio_ext.analytics.errors import AnalyticsError

Value = TypeVar("Value")

_LENGTH = struct.Struct("<Q")
#: What a worker runs: with the paths of this process, and not the current folder.
_PROGRAM = "import sys; sys.path[:] = {path!r}; from mpiio_ext.analytics.store.worker import main; main()"
#: Seconds after which a worker that is not ready never will be.
_START_S = 300.0


class WorkerDeathError(Exception):
    """A worker ended, or was ended for taking too long, while it had a task; the message has the details."""


class WorkerError(Exception):
    """A task raised an exception; the message has it in one line."""


class _Worker:
    """One process."""

    def __init__(self) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 # closed with the worker
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            bufsize=0,
        )
        try:
            self.call(os.getpid, (), _START_S)
        except (WorkerDeathError, WorkerError, ImportError) as error:
            raise AnalyticsError(f"a process that converts logs cannot be started: {error}") from error

    def _send(self, value: object) -> None:
        assert self._process.stdin is not None
        data = pickle.dumps(value)
        data = _LENGTH.pack(len(data)) + data
        while data:
            data = data[self._process.stdin.write(data) :]

    def _receive(self, count: int, until: float) -> bytes:
        assert self._process.stdout is not None
        parts, there = [], 0
        while there < count:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise TimeoutError
            part = self._process.stdout.read(min(count - there, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            there += len(part)
        return b"".join(parts)

    def call(self, function: Callable[..., Value], arguments: tuple[object, ...], timeout_s: float) -> Value:
        """Return the result of `function` there."""
        until = time.monotonic() + timeout_s
        try:
            self._send((function, arguments))
            (length,) = _LENGTH.unpack(self._receive(_LENGTH.size, until))
            kind, value = pickle.loads(self._receive(length, until))
        except TimeoutError:
            self.close()
            raise WorkerDeathError(f"took longer than {timeout_s:g} s") from None
        except (OSError, EOFError):
            raise WorkerDeathError(self._epitaph()) from None
        if kind == "error":
            raise WorkerError(value)
        if kind == "missing":
            raise ImportError(value)
        found: Value = value
        return found

    def _epitaph(self) -> str:
        code = self._process.wait()
        self._words.seek(max(0, os.fstat(self._words.fileno()).st_size - 2000))
        lines = self._words.read().decode("utf-8", "replace").strip().splitlines()
        self.close()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        return f"the process that read it {how}" + (f": {lines[-1][:200]}" if lines else "")

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._words):
            if stream is not None:
                stream.close()


class Pool:
    """Workers that are started when they are needed.

    Parameters
    ----------
    workers : processes; 0: tasks run in this one, where a crash is the end of all.
    timeout_s : a task that takes longer is ended.
    """

    def __init__(self, workers: int, timeout_s: float) -> None:
        self._count = workers
        self._timeout_s = timeout_s
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._all: list[_Worker] = []
        self._threads = ThreadPoolExecutor(max(1, workers))
        self._ending = False

    def call(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Return the result of `function` in a worker.

        Raises
        ------
        WorkerDeathError, WorkerError, ImportError
            The worker died; the function raised; a module that it needs is missing.
        """
        if not self._count:
            try:
                return function(*arguments)
            except ImportError:
                raise
            except Exception as error:
                raise WorkerError(f"{type(error).__name__}: {error}") from error
        if self._ending:
            raise WorkerError("the fill has ended")
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = _Worker()
            self._all.append(worker)
        try:
            value = worker.call(function, arguments, self._timeout_s)
        except WorkerDeathError:
            worker.close()
            self._all.remove(worker)
            raise
        except (WorkerError, ImportError):
            self._idle.put(worker)
            raise
        self._idle.put(worker)
        return value

    def each(self, run: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        """Yield ``run(task)`` for every task, in the order in which they are done; `run` is called in threads.

        No more tasks are taken than there are workers and as many again.
        """
        if not self._count:
            yield from map(run, tasks)
            return
        waiting: set[Future[Any]] = set()
        for task in tasks:
            waiting.add(self._threads.submit(run, task))
            if len(waiting) >= 2 * self._count:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._ending = True
        if kind is not None:
            for worker in list(self._all):
                worker.close()
        self._threads.shutdown(cancel_futures=True)
        for worker in list(self._all):
            worker.close()
