"""Bounds of the ledger beside the truth: random programs whose every call is known, reduced to the records of a log."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.ledger import Bounds, Ledger
from mpiio_ext.analytics.ledger import Traced as Known
from mpiio_ext.analytics.ledger import records as kept
from mpiio_ext.analytics.sources.darshan import convert
from support import fuzz
from support.ledger_truth import ALL, outside, questions
from support.random_programs import random_program

#: Programs of each part, of which there are four.
PROGRAMS, PARTS = 2500, 4
_META, _WAITING = kept.KINDS.index("meta"), kept.KINDS.index("waiting")


def _rng(part: int) -> np.random.Generator:
    return np.random.default_rng([int(fuzz.seed()), part])


@pytest.mark.slow_with("2", "3")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_bound_excludes_the_truth(part: int) -> None:
    """A tenth of the logs has no shared records, and a hundredth of the programs 64 to 512 ranks."""
    rng = _rng(part)
    for number in range(fuzz.examples(PROGRAMS)):
        ranks = int(rng.integers(64, 513)) if number % 100 == 99 else None
        traced = random_program(rng, ranks=ranks)
        ledger = traced.ledger(reduced=number % 10 != 9)
        asked = [ALL] if number % 3 == 0 else questions(traced, rng, 1)
        wrong = [each for question in asked for each in outside(traced, ledger, question, files=number % 8 == 0)]
        assert not wrong, f"program {number} of part {part}: {wrong}"


def test_no_bound_excludes_the_truth_with_dxt_and_heatmap(tmp_path: pathlib.Path) -> None:
    rng, log = _rng(PARTS), tmp_path / "one.darshan"
    for number in range(fuzz.examples(160)):
        traced = random_program(rng)
        log.write_bytes(traced.log(reduced=number % 10 != 9, heat=number % 2 == 0, dxt=number % 4 < 3))
        activity = activity_of(log, convert([log.name], str(tmp_path)).tables)
        assert activity is not None and activity.ledger is not None, f"program {number}"
        wrong = [
            each
            for question in (ALL, *questions(traced, rng, 3))
            for each in outside(traced, activity.ledger, question, files=True)
        ]
        assert not wrong, f"program {number}: {wrong}"


def test_no_cell_of_a_rank_excludes_the_truth() -> None:
    """Seconds of each kind of calls on each file; of a file's calls, those of all ranks add up to the log's."""
    rng, compared = _rng(PARTS + 3), 0
    for number in range(fuzz.examples(300)):
        traced = random_program(rng)
        ledger = traced.ledger(reduced=number % 3 != 0)
        cells = [ledger.cells(rank) for rank in range(ledger.processes)]
        for kind in ("read", "write"):
            row = kept.KINDS.index(kind)
            for file in range(len(traced.names)):
                place = np.flatnonzero(ledger.files == traced.number(file))
                if not len(place):
                    continue
                for rank, true in enumerate(traced.seconds(kind, file)):
                    seconds = cells[rank].seconds
                    assert seconds.least[row, place[0]] <= true + 2e-8, f"program {number}"
                    assert true <= seconds.most[row, place[0]] + 2e-8, f"program {number}"
                    compared += true > 0
        calls = sum(one.calls for one in cells)
        np.testing.assert_allclose(calls, ledger.processes * ledger.cells(None).calls, rtol=1e-9)
    assert compared > 0


def test_bounds_of_what_a_log_has_are_no_range() -> None:
    """Bounds are no wider than they must be: the mean of one layer, and each rank of a file without a shared record."""
    rng = _rng(PARTS + 1)
    for _ in range(fuzz.examples(100)):
        traced = random_program(rng)
        ledger, alone = traced.ledger(), traced.ledger(reduced=False)
        for layer in ("POSIX", "STDIO", "MPI-IO"):
            for kinds in ((), ("read",), ("write",), ("meta",)):
                mean, ranks = ledger.mean(*kinds, layer=layer), alone.ranks(*kinds, layer=layer)
                assert mean.least == pytest.approx(mean.most, rel=1e-12)
                np.testing.assert_allclose(ranks.least, ranks.most, rtol=1e-12)


def test_what_recordings_have_is_exact() -> None:
    """Each rank's time in MPI-IO calls on each file by kinds, of opens and closes a part as waits for other ranks."""
    rng, waited = _rng(PARTS + 3), 0
    for number in range(fuzz.examples(400)):
        traced = random_program(rng)
        in_mpi, waits = {}, np.zeros(traced.processes)
        for file in range(len(traced.names)):
            seconds = np.zeros((traced.processes, len(kept.KINDS)))
            for kind in ("read", "write", "meta"):
                seconds[:, kept.KINDS.index(kind)] = traced.seconds(kind, file, "MPI-IO")
            ranks = np.flatnonzero(seconds.any(axis=1))
            seconds[:, _WAITING] = seconds[:, _META] * rng.random(traced.processes)
            seconds[:, _META] -= seconds[:, _WAITING]
            waits += seconds[:, _WAITING]
            if len(ranks):
                in_mpi[traced.number(file)] = Known(ranks, seconds[ranks])
        measured = traced.seconds()
        ledger = traced.ledger(reduced=number % 10 != 9).recorded(in_mpi, Bounds(measured, measured), measured - waits)
        opened = ledger.ranks("meta", "waiting", layer="MPI-IO")
        for found, true in (
            (opened, traced.seconds("meta", None, "MPI-IO")),
            (ledger.ranks("waiting"), waits),
            (ledger.ranks(layer="MPI-IO"), traced.seconds(None, None, "MPI-IO")),
        ):
            np.testing.assert_allclose(found.least, true, atol=1e-7)
            np.testing.assert_allclose(found.most, true, atol=1e-7)
        wrong = [each for kind in (None, "read", "write") for each in outside(traced, ledger, (kind, None, None))]
        assert not wrong, f"program {number}: {wrong}"
        for file, one in in_mpi.items():
            wait, late = ledger.late().get(file, (0.0, -1))
            assert 0 <= wait <= one.seconds[:, _WAITING].max() and (late < 0 or len(one.ranks) > 1)
            assert late < 0 or one.seconds[one.ranks == late, _WAITING] == one.seconds[:, _WAITING].min()
            waited += wait > 0
    assert waited > 0


def test_calls_that_no_counter_has_are_exact() -> None:
    """Waits for locks and the like, of single ranks: they come beside what the log has, and parts add up to the whole.

    A file may have such calls only.
    """
    rng = _rng(PARTS + 4)
    for _ in range(fuzz.examples(300)):
        traced = random_program(rng)
        ledger, count = traced.ledger(), int(rng.integers(1, 12))
        numbers = [*(traced.number(file) for file in range(len(traced.names))), 1 << 40]
        more = kept.empty(count)
        more["file"], more["rank"] = rng.choice(numbers, count), rng.integers(0, traced.processes, count)
        keys = np.unique(np.stack([more["file"], more["rank"]], axis=1), axis=0, return_index=True)[1]
        more = more[keys]
        kinds = rng.choice([kept.KINDS.index(kind) for kind in ("lock", "rename", "other")], len(more))
        more["seconds"][np.arange(len(more)), kinds] = 1e-6 * rng.random(len(more))
        measured = Bounds(np.zeros(traced.processes), np.full(traced.processes, ledger.run_s))
        with_more = ledger.recorded({}, measured, np.zeros(traced.processes), more)
        for kind in ("lock", "rename", "other"):
            each = more["seconds"][:, kept.KINDS.index(kind)]
            found = with_more.ranks(kind)
            for bound in (found.least, found.most):
                np.testing.assert_allclose(bound, np.bincount(more["rank"], each, traced.processes), atol=1e-12)
            assert with_more.means(kind).least.sum() == pytest.approx(each.sum() / traced.processes, abs=1e-15)
        beside = with_more.means().least.sum() - ledger.means().least.sum()
        assert beside == pytest.approx(more["seconds"].sum() / traced.processes, abs=1e-12)
        for file in numbers:
            alone, mine = with_more.of([file]), more["file"] == file
            assert alone.means("lock", "rename", "other").least.sum() == pytest.approx(
                more["seconds"][mine].sum() / traced.processes, abs=1e-15
            )


def test_threads_have_no_more_time_than_the_run() -> None:
    """Calls of threads that overlap take more together; where that shows, bounds hold again."""
    rng, shown = _rng(PARTS + 2), 0
    for _ in range(fuzz.examples(1000)):
        traced = random_program(rng, threads=True)
        ledger = traced.ledger()
        for kind in (None, "read", "write", "meta"):
            found, true = ledger.ranks(*([kind] if kind else [])), traced.seconds(kind)
            threads = ledger.overlapped
            assert (found.most <= ledger.run_s).all() and (found.least <= found.most + 1e-12).all()
            assert (found.least <= true + 1e-8)[threads].all() and (true <= found.most + 1e-8)[threads].all()
            shown += int(threads.sum())
    assert shown > 0


def test_an_access_that_no_call_waits_for_takes_no_time_of_a_rank() -> None:
    """Nonblocking calls of 0.1 s, whose requests another thread makes for 2 s: at least 0.1 s, at most 2.1 s."""
    records = kept.empty(2)
    records["layer"] = [kept.LAYERS.index(layer) for layer in ("MPI-IO", "POSIX")]
    records["rank"], records["ranks"] = kept.ALL, 4
    records["seconds"][:, kept.KINDS.index("write")] = 4 * np.array([0.1, 2.0])
    records["opens"], records["last"] = 4, 5.0
    assert Ledger(records, 4, 5.0).mean().least == pytest.approx(2.0), "calls that wait contain their requests"
    records["pending"][0] = 8
    found = Ledger(records, 4, 5.0).mean()
    assert (found.least, found.most) == (pytest.approx(0.1), pytest.approx(2.1))


def test_metadata_calls_beside_are_no_reads_and_no_writes() -> None:
    """Writes of MPI-IO take 10 s, 9 s of them in requests; a stat of 0.1 s may come beside, and is no write."""
    records = kept.empty(2)
    records["layer"] = [kept.LAYERS.index(layer) for layer in ("MPI-IO", "POSIX")]
    records["rank"], records["ranks"], records["opens"] = kept.ALL, 4, 4
    records["seconds"][:, kept.KINDS.index("write")] = 4 * np.array([10.0, 9.0])
    records["seconds"][1, _META], records["stats"][1] = 4 * 0.1, 4
    records["first"], records["last"] = [0.0, 0.5], [11.0, 10.5]
    ledger = Ledger(records, 4, 20.0)
    written, every = ledger.mean("write"), ledger.mean()
    assert (written.least, written.most) == (pytest.approx(10.0), pytest.approx(10.0))
    assert (every.least, every.most) == (pytest.approx(10.0), pytest.approx(10.1))
