"""Counters of our Darshan logs beside those of Darshan's own runtime, of the same run.

A program runs under the tracer and Darshan's runtime at the same time, so that both see the same calls.

Guarantees. A record that only one log has counts as a difference of the record. Times count as equal within 20 % or
0.2 ms, since each side reads its own clock around the other; moments within 20 ms.
"""

from __future__ import annotations

import math
import pathlib

from corpora import diagnosis_corpus
from mpiio_ext._load import get_tracer
from mpiio_ext.pioneer.darshan.convert import convert
from support.darshan_records import Key, Row, read_records
from support.launch import base_environment, launcher, run_bounded

TIMEOUT_S = 300.0


def is_equal(name: str, one: float, other: float) -> bool:
    """Return whether two values of a counter are equal, times within what two clocks differ."""
    if "_F_" not in name:
        return one == other
    if name.endswith("VARIANCE_RANK_BYTES"):
        return math.isclose(one, other, rel_tol=1e-9)
    if name.endswith("TIMESTAMP"):
        return abs(one - other) < 0.02 and (one == 0) == (other == 0)
    return abs(one - other) < max(0.0002 if "VARIANCE" not in name else 1e-6, 0.2 * max(one, other))


def logs(
    command: list[str], ranks: int, darshan: str, folder: pathlib.Path, *, recording: bool
) -> tuple[dict[Key, Row], dict[Key, Row]]:
    """Run a command on FOLDER/data; return the records of Darshan's runtime and ours, of recordings or of traces."""
    data, traces, theirs = (folder / name for name in ("data", "traces", "logs"))
    for path in (traces, theirs):
        path.mkdir()
    diagnosis_corpus.prepare(data)
    variables = {
        "LD_PRELOAD": f"{get_tracer()}:{darshan}",
        "DARSHAN_LOGPATH": str(theirs),
        "MPIOX_TRACE_DIR": str(traces),
        "MPIOX_TRACE_MODE": "recording" if recording else "trace",
    }
    words = [launcher() or "mpiexec", "-n", str(ranks), "env"]
    words += [f"{name}={value}" for name, value in variables.items()]
    run_bounded([*words, *command], env=base_environment() | {"OMPI_MCA_io": "romio321"}, timeout_s=TIMEOUT_S)
    ours = folder / "ours.darshan"
    convert(traces, ours)
    (native,) = theirs.rglob("*.darshan")
    return read_records(native), read_records(ours)


def differences(theirs: dict[Key, Row], ours: dict[Key, Row]) -> dict[str, str]:
    """Return each counter that differs in a record, or record that only one side has -> the first difference."""
    found: dict[str, str] = {}
    for key in theirs.keys() ^ ours.keys():
        side = "Darshan's log alone" if key in theirs else "our log alone"
        found.setdefault(f"{key[0]} record", f"{key[1]} rank {key[2]} is in {side}")
    for key in theirs.keys() & ours.keys():
        for name, value in theirs[key].items():
            if not is_equal(name, value, ours[key][name]):
                found.setdefault(name, f"{value:g}, ours {ours[key][name]:g}")
    return found
