"""A rank that has failed while the others do not return: it prints why and ends, and the launcher ends the rest.

Ranks agree on errors when a phase is over. Some libraries never get there: where the disk is full, HDF5's collective
close waits on some ranks for others that have given up. No Python code of such a process can run, because the library
has Python's lock. So a rank that fails starts a helper process with the message, and ends the helper after the ranks
have agreed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

#: How long a failed rank waits for the others, besides the time that the phase's data may take them on a slow file
#: system. The next ranks wait longer, while the launcher ends them: one speaks.
PATIENCE_S = 20
SLOWEST_BYTES_PER_S = 2_000_000
_STEP_S = 5
_MOST_STEPS = 8

#: $1 seconds, $2 process, $3 message. It ends by itself when the process has gone.
_HELPER = """
seconds=$1
while [ "$seconds" -gt 0 ]; do
    sleep 1
    kill -0 "$2" 2>/dev/null || exit 0
    seconds=$((seconds - 1))
done
printf '%s\\n' "$3" >&2
kill -KILL "$2"
"""


class LastWords:
    """The helper of one rank.

    Parameters
    ----------
    rank : of this process
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self.phase_bytes = 0  # that each rank moves in the phase
        self._helper: subprocess.Popen[bytes] | None = None

    def prepare(self, message: str) -> None:
        """Print `message` and end this process unless `dismiss` is called in time; the first message counts."""
        if self._helper is not None:
            return
        text = f"mpiio-ext: {' '.join(message.split())}"
        seconds = PATIENCE_S + self.phase_bytes // SLOWEST_BYTES_PER_S + _STEP_S * min(self._rank, _MOST_STEPS)
        words = ["/bin/sh", "-c", _HELPER, "sh", str(seconds), str(os.getpid()), text]
        with contextlib.suppress(OSError):  # no process left to be had: then the rank just waits
            self._helper = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
            )

    def dismiss(self) -> None:
        """Send the helper away; harmless without one."""
        if self._helper is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._helper.pid, signal.SIGKILL)
            self._helper.wait()
            self._helper = None
