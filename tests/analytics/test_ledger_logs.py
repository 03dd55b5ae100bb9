"""What holds of the ledger of any log: parts are no more than their whole, and no rank has more time than the run."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import numpy as np

from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.ledger import Ledger, of_log
from mpiio_ext.analytics.ledger.records import KINDS, LAYERS
from mpiio_ext.analytics.sources.darshan import convert
from mpiio_ext.common.darshanfile import DamagedLogError
from support.darshan_logs import packaged_logs
from support.traces import DATA

SAMPLES = pathlib.Path(__file__).parents[1] / "samples"
#: Rounding of sums, and of their differences (s).
_MORE, _LITTLE = 1 + 1e-6, 1e-9


def _logs() -> list[pathlib.Path]:
    """Return all logs that there are: of PyDarshan, of the samples and, where it is, of the shared data."""
    return [*packaged_logs(), *sorted(SAMPLES.rglob("*.darshan")), *sorted(DATA.rglob("*.darshan"))]


def broken(ledger: Ledger) -> Iterator[str]:
    """Yield what does not hold of a ledger."""
    run_s, whole = ledger.run_s, ledger.ranks()
    for layer in (None, *LAYERS):
        every, slowest = ledger.ranks(layer=layer), ledger.slowest(layer=layer)
        clock, mean = ledger.clock(layer=layer), ledger.mean(layer=layer)
        files, means = ledger.slowest_of_files(layer=layer), ledger.means(layer=layer)
        kinds = [ledger.ranks(kind, layer=layer) for kind in KINDS]
        threads = ledger.overlapped
        parts = np.sum([each.least for each in kinds], axis=0)[~threads]
        cover = np.sum([each.most for each in kinds], axis=0)[~threads]
        checks = {
            "a rank has more time than the run": np.all(every.most <= _MORE * run_s),
            "a lower bound is above its upper bound": np.all(every.least <= _MORE * every.most),
            "a layer has more time than all layers": np.all(every.least <= _MORE * whole.most),
            "kinds of calls have more time than all calls": np.all(parts <= _MORE * every.most[~threads]),
            "kinds of calls have less time than all calls": layer is None
            or np.all(_MORE * cover >= every.least[~threads]),
            "an average rank has more time than the slowest": mean.least <= _MORE * slowest.most,
            "less time on the clock than of the slowest rank": _MORE * clock.least >= slowest.least,
            "more time on the clock than the run": clock.most <= _MORE * run_s,
            "a file has more time than all files": np.max(files.least, initial=0.0) <= _MORE * slowest.most,
            "files have more time than all files": threads.any()
            or np.sum(means.least) <= _MORE * max(mean.most, run_s),
        }
        if layer is not None:
            likely = [(ledger.likely(kind, layer=layer), each) for kind, each in zip(KINDS, kinds, strict=True)]
            checks["a rank's likely time is out of its bounds"] = all(
                np.all(((each.least <= _MORE * one + _LITTLE) & (one <= _MORE * each.most + _LITTLE))[~threads])
                for one, each in likely
            )
        yield from (f"{what} ({layer or 'all layers'})" for what, holds in checks.items() if run_s > 0 and not holds)
    posix, stdio, mpi = (ledger.ranks("meta", layer=layer).most for layer in LAYERS)
    checks = {
        "a rank opens files for longer than it is in such calls": ledger.opening()
        <= _MORE * np.fmax(posix + stdio, mpi),
        "a file is opened for longer than calls on it take": ledger.opening_of_files() <= _MORE * ledger.means().most,
        "waits of an open are longer than the open": ledger.waited <= _MORE * ledger.means("meta", layer="MPI-IO").most,
        "own records have more time than all": ledger.alone()[0] <= _MORE * (posix + stdio),
    }
    yield from (what for what, holds in checks.items() if not (np.all(holds) or run_s <= 0 or ledger.overlapped.any()))


def test_parts_are_no_more_than_their_whole() -> None:
    found, logs = {}, 0
    for path in _logs():
        try:
            ledger = of_log(path)
        except DamagedLogError:
            continue
        logs += 1
        if wrong := list(broken(ledger)):
            found[path.name] = wrong
    assert logs >= 30
    assert not found


def test_parts_are_no_more_than_their_whole_with_dxt() -> None:
    """The ledger of a log's activity has the requests of DXT."""
    found = {}
    for path in _logs():
        if path.stat().st_size < 200_000 and (tables := convert([path.name], str(path.parent)).tables):
            activity = activity_of(path, tables)
            if activity is not None and activity.ledger is not None and (wrong := list(broken(activity.ledger))):
                found[path.name] = wrong
    assert not found
