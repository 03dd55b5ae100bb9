"""Contributing factors: Equations 1 to 5 worked by hand, each factor on a job of a few files, NULL, thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mpiio_ext.analytics.factors import Files, equations, extract, factors
from mpiio_ext.analytics.tables.schema import SIZE_BINS
from mpiio_ext.errors import ArgumentError

NAN = float("nan")


def job(*files: dict[str, Any], **common: Any) -> pa.Table:
    """Files of one job; what is not said is NULL."""
    names = dict.fromkeys(name for each in files for name in each)
    rows = [{"job_id": 1, **common, **{name: each.get(name) for name in names}} for each in files]
    return pa.Table.from_pylist(rows)


def values(**columns: Any) -> dict[str, Any]:
    return columns


def one(table: pa.Table, direction: str = "write", **options: Any) -> dict[str, Any]:
    (row,) = extract(table, direction=direction, **options).to_pylist()  # type: ignore[arg-type]
    return row  # type: ignore[no-any-return]


def critical(table: pa.Table, **options: float) -> Any:
    """Return the IDs of the critical files of a job that writes."""
    found = Files(table, "write", **options).critical  # type: ignore[arg-type]
    return table["file_id"].filter(pa.array(found)).to_pylist()


def histogram(direction: str = "write", **counts: int) -> dict[str, int]:
    return {f"{direction}_size_{name}": counts.get(f"b{name}", 0) for name in SIZE_BINS}


#: Figure 3: four files, of which the first, second and fourth are critical for 10, 2 and 2 s.
FIGURE_3 = [(0.0, 10.0), (6.0, 12.0), (4.0, 8.0), (16.0, 18.0)]


def figure_3(**columns: list[Any]) -> pa.Table:
    files = [
        {"write_start": start, "write_end": end, **{name: each[k] for name, each in columns.items()}}
        for k, (start, end) in enumerate(FIGURE_3)
    ]
    return job(*files)


def test_equation_1() -> None:
    """9 GB from 0 to 18 s: 500 MB/s; over no time it is unknown."""
    found = equations.bandwidth([9e9, 1.0, NAN], [0.0, 5.0, 0.0], [18.0, 5.0, 1.0])
    np.testing.assert_array_equal(found, [5e8, NAN, NAN])
    row = one(figure_3(bytes_written=[4_000, 3_000, 1_000, 1_000]))
    assert (row["bandwidth"], row["critical_time"]) == (500, 14)  # 9000 B over 18 s
    assert row["critical_bandwidth"] == 9000 / 14


def test_equation_2() -> None:
    """p of 0.5, 0.1, 0.9 (not critical), 1.0 with t of 10, 2, 0, 2: (5 + 0.2 + 2) / 14."""
    found = equations.weighted(np.array([0.5, 0.1, 0.9, 1.0]), np.array([10.0, 2, 0, 2]), np.array([0]))
    np.testing.assert_allclose(found, [7.2 / 14])


def test_equation_2_with_unknown_values() -> None:
    """Unknown files are left out while what is known covers half of the time; below, the factor is unknown."""
    exclusive, starts = np.array([10.0, 2, 2, 1, 3]), np.array([0, 3])
    found = equations.weighted(np.array([NAN, 0.1, 1.0, 0.4, NAN]), exclusive, starts, 0.2)
    np.testing.assert_allclose(found, [(0.2 + 2) / 4, 0.4])
    found = equations.weighted(np.array([0.5, NAN, NAN, 0.4, NAN]), exclusive, starts)
    np.testing.assert_allclose(found, [0.5, NAN])


def test_equations_3_to_5_are_ratios() -> None:
    np.testing.assert_array_equal(equations.ratio([3, 0, 0, 1], [4, 2, 0, NAN]), [0.75, 0, NAN, NAN])


def test_the_five_of_the_paper() -> None:
    table = job(
        values(
            write_start=0.0,
            write_end=10.0,
            consec_writes=25,
            ranks=64,
            stripe_count=1,
            osts=[5],
            mpiio_coll_writes=0,
            mpiio_indep_writes=8,
            mpiio_nb_writes=0,
            **histogram(b0_100=10, b100k_1m=40, b1m_4m=50),
        ),
        values(
            write_start=10.0,
            write_end=12.0,
            consec_writes=10,
            ranks=64,
            stripe_count=8,
            osts=[5, 6, 7],
            mpiio_coll_writes=6,
            mpiio_indep_writes=1,
            mpiio_nb_writes=1,
            **histogram(b4m_10m=10),
        ),
        values(
            write_start=3.0,
            write_end=4.0,
            consec_writes=0,
            ranks=1,
            stripe_count=1,
            osts=None,
            mpiio_coll_writes=None,
            mpiio_indep_writes=None,
            mpiio_nb_writes=None,
            **histogram(b0_100=1),
        ),
    )
    row = one(table)
    assert row["small"] == pytest.approx((0.5 * 10 + 0 * 2) / 12)
    assert row["non_consecutive"] == pytest.approx((0.75 * 10 + 0 * 2) / 12)
    assert row["collective"] == 1
    assert row["no_collective"] == pytest.approx((1 * 10 + 0.25 * 2) / 12)
    assert row["osts"] == 3
    assert row["processes_per_ost"] == pytest.approx((64 * 10 + 8 * 2) / 12)


@pytest.mark.parametrize(("limit", "share"), [(100, 0.1), (1 << 10, 0.1), (1 << 20, 0.5), (4 << 20, 1.0)])
def test_small_has_a_threshold(limit: int, share: float) -> None:
    counts = histogram(b0_100=10, b100k_1m=40, b1m_4m=50)
    table = job(values(write_start=0.0, write_end=1.0, **counts))
    assert one(table, small_bytes=limit)["small"] == pytest.approx(share)
    text = f"{limit >> 10}KiB" if limit >= 1 << 10 else f"{limit}B"
    assert one(table, small_bytes=text)["small"] == pytest.approx(share)


def test_thresholds_that_do_not_exist() -> None:
    table = job(values(write_start=0.0, write_end=1.0))
    with pytest.raises(ArgumentError, match="small_bytes is 5000; Darshan's histogram has the bounds 100, 1024"):
        extract(table, small_bytes=5000)
    with pytest.raises(ArgumentError, match=r"no factor has a threshold smal_bytes; there are .*small_bytes"):
        extract(table, smal_bytes=100)
    with pytest.raises(ArgumentError, match="threshold small_bytes: '1s' is not a size such as"):
        extract(table, small_bytes="1s")
    with pytest.raises(ArgumentError, match="threshold small_bytes: None is not a size such as"):
        extract(table, small_bytes=None)
    with pytest.raises(ArgumentError, match="threshold many_files: '1kB' is not a number without a unit"):
        extract(table, many_files="1kB")
    with pytest.raises(ArgumentError, match="there is no factor smal;"):
        extract(table, names=["smal"])


@pytest.mark.parametrize("direction", ["read", "write"])
def test_what_is_absent_is_null(direction: str) -> None:
    """A job of which only times are known: no factor that needs a counter is 0."""
    row = one(job({f"{direction}_start": 0.0, f"{direction}_end": 2.0}), direction)
    known = {name for name in factors(direction) if row[name] is not None}
    assert known == {"dominant_file", "gaps"}
    assert (row["bandwidth"], row["read_ratio"], row["files_per_process"]) == (None, None, None)
    assert row["critical_time"] == 2


def test_a_log_without_mpiio_has_no_collective_calls() -> None:
    """The log says so; a partial log does not."""
    files = job(values(write_start=0.0, write_end=1.0), log_id=4)
    jobs = pa.table({"log_id": [4], "uses_mpiio": [False], "partial": [False], "run_time": [4.0]})
    row = one(files, jobs=jobs)
    assert (row["collective"], row["no_collective"], row["idle"]) == (0, 1, 0.75)
    partial = jobs.set_column(2, "partial", pa.array([True]))
    assert (one(files, jobs=partial)["collective"], one(files, jobs=partial)["no_collective"]) == (None, None)
    other = jobs.set_column(0, "log_id", pa.array([5]))
    assert one(files, jobs=other)["collective"] is None


def test_figure_3_as_factors() -> None:
    """The longest file takes 10 of 14 s; durations 10, 6, 4, 2: (14 - 10) / (22 - 10); 4 of 18 s are a pause."""
    files = figure_3(file_id=[1, 2, 3, 4])
    row = one(files)
    assert row["dominant_file"] == pytest.approx(10 / 14)
    assert row["serialised"] == pytest.approx(4 / 12)
    assert row["gaps"] == pytest.approx(4 / 18)
    assert row["critical_files"] == 3
    assert critical(files) == [1, 2, 4]
    assert Files(files, "write").exclusive.tolist() == [10, 2, 0, 2]


@pytest.mark.parametrize(
    ("spans", "value"),
    [([(0, 1), (1, 2), (2, 3)], 1), ([(0, 9), (1, 2), (2, 3)], 0), ([(0, 2), (1, 3)], 0.5), ([(0, 2)], None)],
)
def test_serialised(spans: list[tuple[float, float]], value: float | None) -> None:
    files = [{"write_start": float(start), "write_end": float(end)} for start, end in spans]
    assert one(job(*files))["serialised"] == value


def test_ranks_and_metadata() -> None:
    """Rank 0 wrote 60 of 80 bytes; of 20 s in calls 5 were metadata; an average rank needed 2 of the slowest's 8 s."""
    table = job(
        values(
            write_start=0.0,
            write_end=8.0,
            bytes_written=60,
            root_bytes_written=60,
            read_time=1.0,
            write_time=3.0,
            meta_time=4.0,
            ranks=4,
            slowest_rank_time=8.0,
            fastest_rank_bytes=7,
        ),
        values(
            write_start=0.0,
            write_end=8.0,
            bytes_written=20,
            root_bytes_written=0,
            read_time=0.0,
            write_time=11.0,
            meta_time=1.0,
            ranks=1,
            slowest_rank_time=None,
            fastest_rank_bytes=None,
        ),
        processes=4,
    )
    row = one(table, background=0)
    assert row["root_writes"] == pytest.approx(0.75)
    assert row["metadata"] == pytest.approx(0.25)
    assert row["straggler"] == pytest.approx(1 - 2 / 8)
    assert one(table.set_column(1, "processes", pa.array([1, 1])))["root_writes"] is None


def test_aggregators_are_no_stragglers() -> None:
    shared = values(write_start=0.0, write_end=8.0, read_time=0.0, write_time=8.0, meta_time=0.0, ranks=8)
    calls = values(slowest_rank_time=8.0, fastest_rank_bytes=0)
    assert one(job({**shared, **calls, "mpiio_coll_writes": 0}))["straggler"] == pytest.approx(7 / 8)
    assert one(job({**shared, **calls, "mpiio_coll_writes": 8}))["straggler"] is None


def test_unaligned_and_small_files() -> None:
    counts = histogram(b0_100=6) | histogram("read", b0_100=2)
    files = [
        values(write_start=float(k), write_end=k + 1.0, bytes_written=10, unaligned=2, **counts) for k in range(100)
    ]
    row = one(job(*files))
    assert (row["unaligned"], row["small_files"]) == (0.25, 1)
    assert one(job(*files[1:]))["small_files"] == 0
    assert one(job(*files[1:]), many_files=99)["small_files"] == 1
    assert one(job(*files), small_file_bytes=9)["small_files"] == 0


def slow_ost(slowness: float) -> pa.Table:
    """32 files of 8 OSTs, 2 MiB each in 1 s; on OST 5 it takes longer. And files of other sizes, slow."""
    files = [
        values(write_start=0.0, write_end=slowness if k % 8 == 5 else 1.0, bytes_written=2 << 20, osts=[k % 8])
        for k in range(32)
    ]
    others = [values(write_start=0.0, write_end=50.0, bytes_written=moved, osts=[2]) for moved in (10, 64 << 20)]
    return job(*files, *others)


def test_slow_ost() -> None:
    row = one(slow_ost(20.0))
    assert (row["slow_ost"], row["slow_file"]) == (20, 20)
    assert one(slow_ost(1.0))["slow_ost"] == 1
    paused = slow_ost(20.0).append_column("write_time", pa.array([1.0] * 34))
    assert one(paused)["slow_ost"] == 1, "the time between the calls is the program's"
    tiny = [
        values(write_start=0.0, write_end=20.0 if k == 5 else 1.0, bytes_written=1000, osts=[k % 8]) for k in range(32)
    ]
    assert one(job(*tiny))["slow_ost"] is None
    assert one(slow_ost(20.0), alike_osts=9)["slow_ost"] is None
    assert one(slow_ost(20.0), alike_files=33)["slow_file"] is None


def test_osts_from_bitmap_or_list() -> None:
    """The bitmap has 62 OSTs a word; both columns say the same."""
    osts = [[0, 61], None, [61, 62, 130]]
    times = {"write_start": [0.0] * 3, "write_end": [1.0] * 3, "job_id": [1, 1, 1], "bytes_written": [1] * 3}
    words = [
        [None if each is None else sum(1 << ost % 62 for ost in each if ost // 62 == word) for each in osts]
        for word in range(3)
    ]
    bitmap = pa.table({**times, **{f"ost_word_{k}": pa.array(word, pa.int64()) for k, word in enumerate(words)}})
    lists = pa.table({**times, "osts": pa.array(osts, pa.list_(pa.int32()))})
    for table in (bitmap, lists, lists.slice(0, 3)):
        assert one(table)["osts"] == 4
    pairs = [sorted(zip(*Files(table, "write").ost_pairs, strict=True)) for table in (bitmap, lists)]
    assert pairs[0] == pairs[1] == [(0, 0), (0, 61), (2, 61), (2, 62), (2, 130)]
    assert one(lists.slice(1, 1))["osts"] is None


def test_background_files_do_not_cover_the_job() -> None:
    """A log written now and then covers the job in the paper's sweep; here the file with the data is critical."""
    log = values(write_start=0.0, write_end=100.0, bytes_written=100, write_time=0.01, file_id=1)
    data = values(write_start=10.0, write_end=40.0, bytes_written=10**6, write_time=30.0, file_id=2)
    row = one(job(log, data))
    assert (row["critical_time"], critical(job(log, data))) == (30, [2])
    assert row["bandwidth"] == pytest.approx(1_000_100 / 30) == row["critical_bandwidth"]
    assert row["gaps"] == pytest.approx(0.7)
    assert critical(job(log, data), background=0) == [1]
    assert critical(job(log)) == [1]  # all of a job's files are never left out
    unknown = {**log, "write_time": None}
    assert critical(job(unknown, data)) == [1]


def test_idle_knows_both_directions_and_all_logs() -> None:
    table = pa.table(
        {
            "job_id": [1, 1, 1],
            "log_id": [7, 7, 8],
            "run_time": [10.0, 10.0, 30.0],
            "write_start": pa.array([0.0, None, 20.0]),
            "write_end": pa.array([4.0, None, 21.0]),
            "read_start": pa.array([2.0, 5.0, None]),
            "read_end": pa.array([5.0, 6.0, None]),
        }
    )
    assert one(table, by="job_id")["idle"] == pytest.approx(1 - 7 / 40)
    by_log = extract(table, by="log_id").to_pylist()
    assert [(row["log_id"], row["idle"]) for row in by_log] == [(7, pytest.approx(0.4)), (8, pytest.approx(1 - 1 / 30))]
