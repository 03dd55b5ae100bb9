"""The output of findings: a line each with a mark and an advice, or JSON."""

from __future__ import annotations

import socket
from typing import IO, Any

import mpiio_ext
from mpiio_ext.common.printing import echo_styled, printable
from mpiio_ext.doctor.findings import Finding, State, worst

_MARKS = {State.OK: "✓", State.WARNING: "!", State.ERROR: "✗"}
_PLAIN = {State.OK: "+", State.WARNING: "!", State.ERROR: "x"}
_COLORS = {State.OK: "green", State.WARNING: "yellow", State.ERROR: "red"}
_ARROW, _PLAIN_ARROW = "→", "->"
_KEY_WIDTH = 24


class Lines:
    """Prints problems first, as they are found, so that they are there even if the job is ended; the rest at the end.

    Parameters
    ----------
    stream : where to.
    colors : whether a terminal gets colours. Launchers give ranks a terminal of their own, whoever reads it.
    """

    def __init__(self, stream: IO[str], colors: bool = True) -> None:
        self._stream = stream
        self._colors = None if colors else False
        fancy = (getattr(stream, "encoding", None) or "").lower().startswith("utf")
        self._marks, self._arrow = (_MARKS, _ARROW) if fancy else (_PLAIN, _PLAIN_ARROW)
        self._later: list[Finding] = []

    def _say(self, text: str, mark: str = "", **how: Any) -> None:
        encoding = getattr(self._stream, "encoding", None) or "ascii"
        mark, text = (printable(part).encode(encoding, "replace").decode(encoding) for part in (mark, text))
        echo_styled([(mark, how), (text, {})], self._stream, color=self._colors)
        self._stream.flush()

    def head(self, ranks: int) -> None:
        """Write the first line."""
        of = f", {ranks} ranks" if ranks > 1 else ""
        self._say(f"mpiio_ext {mpiio_ext.__version__} on {socket.gethostname()}{of}")

    def add(self, finding: Finding) -> None:
        """Write one finding, or store it for the end if it is no problem."""
        if finding.state is State.OK:
            self._later.append(finding)
        else:
            self._write(finding)

    def _write(self, finding: Finding) -> None:
        line, mark = f" {finding.key:<{_KEY_WIDTH}} {finding.text}", self._marks[finding.state]
        self._say(line, mark, fg=_COLORS[finding.state], bold=True)
        if finding.advice:
            self._say(f"  {'':<{_KEY_WIDTH}} {self._arrow} {finding.advice}")

    def end(self, findings: list[Finding]) -> None:
        """Write what is as it should be, and the last line: how many of which kind."""
        for finding in self._later:
            self._write(finding)
        count = {state: sum(item.state is state for item in findings) for state in State}
        self._say("   ".join(f"{self._marks[state]} {count[state]}" for state in State))


def as_json(findings: list[Finding], ranks: int) -> dict[str, Any]:
    """Return the object that ``--json`` prints."""
    checks = [item.as_dict() for item in findings]
    about = {"mpiio_ext": mpiio_ext.__version__, "host": socket.gethostname(), "ranks": ranks}
    return {**about, "state": worst(findings).value, "checks": checks}
