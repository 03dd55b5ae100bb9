"""A process that draws while the queries run.

Problem. Importing Matplotlib takes half a second and importing Ibis another half; a report of a store shall take two.

Algorithm. The process is started first. It imports Matplotlib and draws what comes in, one chart a line, while this
process imports its engine and queries. With one core nothing is lost but the start of an interpreter.

Guarantees. The pen ends with the ``with`` statement, whatever happens inside. A chart that cannot be drawn is an error
that names it, not a figure that is missing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import subprocess
import sys
import tempfile
import threading
from types import TracebackType
from typing import IO

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.errors import AnalyticsError

__all__ = ["Pen"]

#: Errors of a drawing that are told as such, rather than as a dead process.
_PROBLEM = "problem"
#: Bytes of charts that may wait, which Linux grants to everybody.
_PIPE = 1 << 20


class Pen:
    """Draw charts in another process; a context manager."""

    def __init__(self) -> None:
        self._problems = tempfile.TemporaryFile(mode="w+", encoding="utf-8")  # noqa: SIM115  (closed by __exit__)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mpiio_ext.analytics.report.pen"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._problems, encoding="utf-8",
        )  # fmt: skip
        assert self._process.stdin is not None
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            # Charts wait in the pipe while the process still imports Matplotlib; with 64 KiB this one would wait.
            with contextlib.suppress(OSError):  # more than the system allows
                fcntl.fcntl(self._process.stdin, fcntl.F_SETPIPE_SZ, _PIPE)
        self._answers: list[str] = []
        # Read as they come: a pipe holds 64 KiB, and two processes that wait for each other to read wait for ever.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._answers.extend(self._process.stdout)

    def __enter__(self) -> Pen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._finish()
        self._problems.close()

    def _finish(self) -> int:
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):  # it died; its exit status says so
            self._process.stdin.close()
        status = self._process.wait()
        self._reader.join()
        self._process.stdout.close()
        return status

    def take(self, chart: Chart) -> None:
        """Hand a chart over; it is drawn while the caller goes on."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # as above
            fields = {field.name: getattr(chart, field.name) for field in dataclasses.fields(chart)}
            self._process.stdin.write(json.dumps(fields) + "\n")  # dataclasses.asdict would copy every number
            self._process.stdin.flush()

    def drawings(self) -> dict[str, str]:
        """Return the SVG of every chart taken, by name; nothing can be taken afterwards.

        Raises
        ------
        AnalyticsError
            A chart cannot be drawn, or the process died.
        """
        if self._finish():
            self._problems.seek(0)
            last = self._problems.read().strip().splitlines()[-1:] or ["no reason given"]
            raise AnalyticsError(f"the process that draws the figures ended with an error: {last[0]}")
        found = {}
        for line in self._answers:
            answer = json.loads(line)
            if _PROBLEM in answer:
                raise AnalyticsError(f"figure {answer['name']}: cannot be drawn: {answer[_PROBLEM]}")
            found[answer["name"]] = answer["svg"]
        return found


def _draw_all(source: IO[str], sink: IO[str]) -> None:
    import matplotlib.backends.backend_svg
    import matplotlib.figure  # noqa: F401  (what takes the time, before the first chart is there)

    from mpiio_ext.analytics.report.drawing import draw

    for line in source:
        chart = Chart(**json.loads(line))
        try:
            answer = {"name": chart.name, "svg": draw(chart)}
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            answer = {"name": chart.name, _PROBLEM: f"{type(error).__name__}: {error}"}
        sink.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    _draw_all(sys.stdin, sys.stdout)
