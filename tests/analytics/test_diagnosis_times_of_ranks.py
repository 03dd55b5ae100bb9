"""Which of several times is the cause: of a slow rank, of those that wait for it, of few large requests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpiio_ext.analytics.diagnosis import diagnose
from mpiio_ext.analytics.diagnosis.activity import Activity, Calls
from mpiio_ext.analytics.diagnosis.activity_counters import _add_waits
from mpiio_ext.analytics.ledger.ledger import Ledger
from mpiio_ext.analytics.ledger.records import ALL, empty
from support.expected import Expected
from support.quiet_rows import JOB, file, in_mpi, summary

MIB = 1 << 20


def made(rows: list[dict[str, Any]], activity: Any = None, way: Any = "write", **job: Any) -> dict[str, Any]:
    """Return the diagnosis of made rows."""
    return summary(diagnose({**JOB, "run_time": 20.0, **job}, rows, way, activity=activity))


@pytest.mark.parametrize(
    ("most", "least", "given"),
    [(100, 100, 1 / 8), (450, 50, (450**2 + 7 * 50**2) / 800**2), (450, 50, 1 / 8)],
    ids=["as much as each other one: it is slow", "what it gives", "it carries out what all give"],
)
def test_who_makes_the_requests_of_collective_calls(most: int, least: int, given: float, expected: Expected) -> None:
    """Of 12 s of 8 ranks in requests 9 s are those of one rank."""
    bytes_of = {"slowest_rank_bytes": most * MIB, "fastest_rank_bytes": least * MIB, "bytes_written": 800 * MIB}
    times = {"slowest_rank_time": 9.0, "fastest_rank_time": 0.4, "write_time": 12.0}
    calls = {"mpiio_coll_writes": 80, "mpiio_indep_writes": 0, "mpiio_bytes_written": 800 * MIB}
    row = file(0, 10, ranks=8, processes=8, **bytes_of, **times, **calls)
    seen = in_mpi(Activity("", 8, 20.0, calls={row["file_id"]: Calls(given=given)}), row, write=(9.5, 9.5))
    expected(made([row], activity=seen, processes=8))


@pytest.mark.parametrize(
    ("fastest_s", "of_fastest"),
    [(0.5, 50), (3.0, 50), (0.5, 20)],
    ids=["half are slow", "ranks differ", "the fastest has less to do"],
)
def test_half_of_the_ranks_may_be_slow(fastest_s: float, of_fastest: int, expected: Expected) -> None:
    """Two of four ranks need 5 s each, the other two `fastest_s`: an average rank needs more than half of 5 s."""
    times = {"slowest_rank": 3, "slowest_rank_time": 5.0, "fastest_rank_time": fastest_s}
    bytes_of = {"slowest_rank_bytes": 50 * MIB, "fastest_rank_bytes": of_fastest * MIB, "bytes_written": 200 * MIB}
    row = file(0, 10, ranks=4, processes=4, write_time=10 + 2 * fastest_s, mpiio_coll_writes=None, **times, **bytes_of)
    heat = np.array([100 - of_fastest, of_fastest, 50, 50]) * float(MIB)
    record = empty(1)
    record["file"], record["rank"], record["ranks"] = row["file_id"], ALL, 4
    record["seconds"][:, 1] = row["write_time"]
    record["slowest"], record["slowest_s"], record["fastest"], record["fastest_s"] = 3, 5.0, 1, fastest_s
    seen = Activity("HEATMAP", 4, 20.0, heat={True: heat}, ledger=Ledger(record, 4, 20.0))
    expected(made([row], activity=seen, processes=4))


@pytest.mark.parametrize("write_time", [8 * 0.4 + 2.6, 8 * 3.0], ids=["one waits", "all write"])
def test_waiting_at_a_close_for_a_slow_rank_is_no_opening(write_time: float, expected: Expected) -> None:
    """A rank writes for 3 s, and all are in opens and closes for 4 s on average, less what they wait for that one."""
    times = {"slowest_rank_time": 3.0, "fastest_rank_time": 0.4, "write_time": write_time}
    row = file(0, 10, ranks=8, processes=8, mpiio_indep_writes=80, mpiio_coll_writes=0, **times)
    seen = Activity("", 8, 20.0, calls={row["file_id"]: Calls(opens=8)})
    expected(made([row], activity=in_mpi(seen, row, opening=4.0, write=(write_time / 8, 3.0)), processes=8))


@pytest.mark.parametrize(("opens", "files"), [(1, 1), (1, 3), (5, 1)])
def test_who_opens_a_file_once_need_not_open_it_once(opens: int, files: int, expected: Expected) -> None:
    """Eight ranks spend 4 s in opens and closes, and hardly any time in writes."""
    times = {"slowest_rank_time": 0.1, "fastest_rank_time": 0.1, "write_time": 0.8}
    rows = [file(n, n + 3, ranks=8, processes=8, mpiio_indep_writes=80, file_id=n, **times) for n in range(files)]
    seen = Activity("", 8, 20.0, calls={n: Calls(opens=8 * opens) for n in range(files)})
    for n in range(files):
        seen = in_mpi(seen, rows[n], *rows[:n], *rows[n + 1 :], opening=4.0, write=(0.1, 0.1))
    expected(made(rows, activity=seen, processes=8))


@pytest.mark.parametrize("longest", [0.01, 0.6])
def test_small_requests_are_sure_where_large_ones_take_little_time(longest: float, expected: Expected) -> None:
    """20,000 writes of 300 B and 8 of 4 MiB take 8 s: the large ones at most 0.08 s, or 4.8 s."""
    sizes = {"write_size_100_1k": 20_000, "write_size_1m_4m": 8, "writes": 20_008}
    order = {"consec_writes": 0, "seq_writes": 20_000, "bytes_written": 20_000 * 300 + 32 * MIB}
    row = file(0, 10, write_time=8.0, slowest_rank_time=7.9, mpiio_coll_writes=None, **sizes, **order)
    seen = Calls(longest={True: longest})
    common = {"POSIX": {300: 20_000, 4 * MIB: 8}}
    expected(made([row], activity=Activity("", 1, 20.0, calls={row["file_id"]: seen}, common=common)))


@pytest.mark.parametrize(
    ("counts", "serial"),
    [((26, 2, 2, 2), False), ((8, 8, 8, 8), True), ((16, 0, 16, 0), False), ((32, 0, 0, 0), False)],
    ids=["one has most", "each has as many, one after the other", "half of them have all", "one writer"],
)
def test_files_of_one_rank_are_its_own_work(counts: tuple[int, ...], serial: bool, expected: Expected) -> None:
    """Of 32 files of 10 MiB each rank writes its own one after the other, 0.25 s each; ranks write side by side."""
    rows, owners, begun = [], {}, 0.0
    for rank, count in enumerate(counts):
        for k in range(count):
            start = begun if serial else 0.25 * k
            begun += 0.25
            rows.append(file(start, start + 0.25, processes=4, bytes_written=10 * MIB, file_id=len(rows)))
            rows[-1] |= {"mpiio_coll_writes": None, "mpiio_indep_writes": None, "root_bytes_written": None}
            owners[len(rows) - 1] = rank
    known = made(rows, Activity("", 4, 20.0, owners=owners), processes=4)
    expected({"owners are known": known, "owners are unknown": made(rows, processes=4)})


@pytest.mark.parametrize(("seconds", "opens"), [(0.06, 1), (0.06, 20), (0.3, 1)])
def test_one_short_open_is_in_the_best_of_runs(seconds: float, opens: int, expected: Expected) -> None:
    """8 ranks open a file and write it within 50 ms of a run of 0.5 s; opens and closes take as long, or longer."""
    row = file(0, 0.05, ranks=8, processes=8, write_time=8 * 0.05, slowest_rank_time=0.05, fastest_rank_time=0.05)
    row["write_size_1m_4m"] = 1000
    seen = Activity("", 8, 0.5, calls={row["file_id"]: Calls(opens=8 * opens)})
    seen = in_mpi(seen, row, opening=seconds, write=(0.05, 0.05))
    expected(made([row], seen, processes=8, run_time=0.5))


@pytest.mark.parametrize(
    ("collective", "of_last", "times"),
    [
        (1, 8 << 20, (13.4, 0.24, 2.64)),
        (0, 8 << 20, (13.4, 0.24, 2.64)),
        (1, 9 << 20, (13.4, 0.24, 2.64)),
        (1, 8 << 20, (7.0, 0.24, 2.64)),
        (1, 8 << 20, (1.5, 0.02, 0.3)),
    ],
    ids=["one is late", "independent calls", "one has less to do", "ranks differ", "the storage takes it all"],
)
def test_a_late_rank_that_only_hdf5_shows(
    collective: int, of_last: int, times: tuple[float, float, float], expected: Expected
) -> None:
    """Five of six ranks wait 2.4 s in H5Dread, which calls MPI-IO then, for 0.25 s; headers are read by each rank."""
    part = np.zeros(1, [("file", "u8"), ("rank", "i8"), ("counters", "i8", (95,)), ("times", "f8", (17,))])
    part["rank"], part["counters"][0, [0, 89]], part["times"][0, [8, 13, 14]] = -1, [7, collective], times
    part["counters"][0, 91:95] = [2, 8 << 20, 4, of_last]
    row = file(0, 2.7, "read")
    row |= {
        "ranks": 6,
        "processes": 6,
        "file_id": 7,
        "reads": 40,
        "read_size_100_1k": 34,
        "read_size_1m_4m": 0,
        "read_size_4m_10m": 6,
    }
    row |= {"bytes_read": 48 << 20, "read_time": 0.19, "slowest_rank_time": 0.17, "slowest_rank_bytes": 48 << 20}
    row |= {"fastest_rank_bytes": 0, "mpiio_coll_reads": 6, "mpiio_indep_reads": 34, "mpiio_bytes_read": 48 << 20}
    sizes = {False: np.array([0, 34, 0, 0, 0, 0, 6, 0, 0, 0.0])}
    seen = Activity("", 6, 3.24, calls={7: Calls(sizes=sizes, apart=(0.23, 0.25, 0.29))})
    seen = in_mpi(seen, row, read=(0.25, 0.29))
    _add_waits(seen, part)
    found = made([row], seen, "read", processes=6, run_time=3.24)
    expected({**found, "time in I/O, mean and longest": seen.calls[7].above[False]})


@pytest.mark.parametrize(
    "of",
    [{}, {2: 6}, {5: 0}, {120: 9 << 20}],
    ids=["one is late", "independent calls", "no collective calls", "one has more to do"],
)
def test_a_late_rank_that_only_pnetcdf_shows(of: dict[int, int], expected: Expected) -> None:
    """Three of four ranks wait 3 s in ncmpi_put_vara_all, which calls MPI-IO then: that takes 0.25 s."""
    part = np.zeros(1, [("file", "u8"), ("rank", "i8"), ("counters", "i8", (121,)), ("times", "f8", (17,))])
    part["rank"], part["counters"][0, [0, 5]], part["times"][0, [9, 13, 14]] = -1, [7, 24], (10.7, 0.42, 3.43)
    part["counters"][0, 117:] = [3, 8 << 20, 1, 8 << 20]
    part["counters"][0, list(of)] = list(of.values())
    columns = {"file_id": 7, "mpiio_coll_writes": 24, "mpiio_indep_writes": 7, "write_time": 0.15}
    row = file(
        0, 3.81, **{"processes": 4, "ranks": 4, **columns, "slowest_rank_time": 0.05, "slowest_rank_bytes": 25 << 20}
    )
    seen = in_mpi(Activity("", 4, 3.9, calls={7: Calls(apart=(0.23, 0.25, 0.26))}), row, write=(0.25, 0.26))
    _add_waits(seen, part, "PnetCDF")
    expected(made([row], seen, processes=4, run_time=3.9))


def test_rules_do_not_query_the_ledger_of_all_files_once_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a diagnosis grows with the files of the job, not with their square."""
    asked: dict[int, int] = {}

    def queried(ledger: Ledger, *kinds: str, layer: str) -> Any:
        asked[len(ledger.files)] = asked.get(len(ledger.files), 0) + 1
        return answer(ledger, *kinds, layer=layer)

    answer = Ledger.likely_of_files
    monkeypatch.setattr(Ledger, "likely_of_files", queried)
    calls = {"mpiio_coll_writes": 80, "mpiio_indep_writes": 0, "slowest_rank_time": 3.0, "fastest_rank_time": 0.4}
    for files in (2, 20):
        rows = [file(n, n + 3, ranks=8, processes=8, file_id=n, write_time=8.0, **calls) for n in range(files)]
        seen = Activity("", 8, 20.0, calls=dict.fromkeys(range(files), Calls(apart=(0.1, 2.0, 3.0))))
        made(rows, activity=in_mpi(seen, *rows, write=(2.9, 3.0)), processes=8)
    assert 0 < asked[20] == asked[2]
