"""Diagnosis: real logs with known causes, each rule on rows made for it, what is unknown, and the anonymous form."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pytest

from mpiio_ext import hints
from mpiio_ext.analytics.diagnosis import Diagnosis, Limits, advice, diagnose
from mpiio_ext.analytics.diagnosis.words import rounded, worded
from mpiio_ext.analytics.factors.storage import count_of_osts
from mpiio_ext.analytics.tables.schema import SIZE_BINS
from mpiio_ext.errors import ArgumentError
from support import darshan_rows
from support.expected import Expected
from support.quiet_rows import JOB, file, small, summary

#: Diagnoses of one quiet file that is worse in one way each, or of several: the rows, and options of `diagnose`.
Case = tuple[list[dict[str, Any]], dict[str, Any]]


def case(*files: dict[str, Any], **options: Any) -> Case:
    return list(files), options


def independent(way: str = "write", **columns: Any) -> dict[str, Any]:
    return {f"mpiio_coll_{way}s": 0, f"mpiio_indep_{way}s": 100, **columns}


def on_targets(**columns: Any) -> list[dict[str, Any]]:
    """Return files on six OSTs, of which one takes 90 s for what the others do in 3 s."""
    spans = [90 if k % 6 == 4 else 3 for k in range(36)]
    columns = {"stripe_count": 1, **columns}
    return [file(0, end, **{"osts": [k % 6], "file": f"f{k}", **columns}) for k, end in enumerate(spans)]


NONE = {"mpiio_coll_writes": None, "mpiio_indep_writes": None, "mpiio_nb_writes": None}
UNALIGNED = {"ranks": 9, "unaligned": 100}
SIEVED = {"bytes_read": 10 << 20, "mpiio_bytes_read": 0, "mpiio_bytes_written": 99 << 20}
SHARED = independent(ranks=64, stripe_count=1)
SLOW = {"ranks": 10, "slowest_rank_time": 10.0, "slowest_rank_bytes": 50, "fastest_rank_bytes": 5, "write_time": 20.0}
TRIVIAL = file(0, 10, **small(**SHARED))
PENDING = {"mpiio_coll_writes": None, "mpiio_nb_writes": 100}
HARDLY = {"write_time": 0.5, **NONE}
CONFIG = file(0, 0.5, bytes_written=2000, file="/home/config")
MANY = independent(processes=2048, ranks=2048)
FAST = 198 * 10**9
CASES: dict[str, Case] = {
    # a rank's calls go to one file after the other: each is open all the time, and none is in calls for all of it
    **{
        f"{n} files in turn": case(*(file(k / 1000, 10, write_time=10 / n, **small()) for k in range(n)))
        for n in (2, 4, 20)
    },
    # ranks write at the same time: all of their files are named, the slowest first, with all of their requests
    "a file of each rank": case(*(file(k / 1000, 9 + k / 10, **small(**independent())) for k in (3, 0, 1, 2))),
    "a quiet job": case(file(0, 10), file(1, 9)),
    # the file with contention has 2 s for itself, and 1/65 of 3 s: a rank of it is in calls for 1/64 of its time
    "order is by share": case(file(0, 10, **small()), file(7, 12, **SHARED | {"mpiio_indep_writes": 9})),
    "order is by confidence": case(file(0, 10, **UNALIGNED), file(7, 12, **small())),
    **{
        f"small {way}s, {name}": case(file(0, 10, way, **small(way, **columns)))
        for way in ("read", "write")
        for name, columns in {
            "independent": independent(way, ranks=2),
            "POSIX": {f"mpiio_{kind}_{way}s": None for kind in ("coll", "indep", "nb")},
            "collective": {},
            "at random places": independent(way, ranks=2, **{f"seq_{way}s": 10}),
            "one behind the other": {f"consec_{way}s": 99, f"{way}_time": 0.01},
            "of many bytes": {"bytes_read": 1 << 40, "bytes_written": 1 << 40},
        }.items()
    },
    # sieved pieces are written alone where that gains: without gaps, or with wide ones; else the tuner measures, since
    # 2 times as many bytes took 3 times as long alone
    **{
        f"sieved, {stored} times as many bytes": case(file(0, 10, **SIEVED, bytes_written=(99 << 20) * stored))
        for stored in (1.05, 1.5, 2.9, 3.1)
    },
    "sieved": case(file(0, 10, **SIEVED)),
    "MPI-IO reads, too": case(file(0, 10, **{**SIEVED, "mpiio_bytes_read": 9 << 20})),
    "MPI-IO may read, too": case(file(0, 10, **{**SIEVED, "mpiio_bytes_read": None})),
    "MPI-IO writes nothing": case(file(0, 10, **{**SIEVED, "mpiio_bytes_written": 0})),
    "little is read": case(file(0, 10, **{**SIEVED, "bytes_read": 4 << 20})),
    "MPI-IO writes as much": case(file(0, 10, **{**SIEVED, "mpiio_bytes_written": 100 << 20})),
    "contention": case(file(0, 10, **SHARED)),
    "aggregators do not contend": case(file(0, 10, **{**SHARED, "mpiio_coll_writes": 900})),
    "contention below its limit": case(file(0, 10, **SHARED), limits=Limits(contention=65)),
    "contention of an unknown layout": case(file(0, 10, **{**SHARED, "stripe_count": None})),
    "contention of ranks that write nothing": case(file(0, 10, **SHARED, slowest_rank_bytes=0, fastest_rank_bytes=0)),
    "nothing is read from one OST": case(file(0, 10, "read", **{**SHARED, "bytes_read": 0})),
    "rank 0 writes": case(file(0, 10, root_bytes_written=100 << 20)),
    "rank 0 writes a quarter": case(file(0, 10, root_bytes_written=100 << 20), *(file(0, 10) for _ in range(3))),
    "serialised": case(file(0, 10), file(10, 20), file(20, 40)),
    "not serialised": case(file(0, 10), file(0, 11), file(0, 40)),
    "three programs in turn": case(*(file(10 * k, 10 * k + 10, log_id=k) for k in range(3))),
    # the program goes on while data are written
    "pending writes": case(file(0, 10, **PENDING), file(10, 20, **PENDING), file(20, 40, **PENDING)),
    # a rank then carries out what others have
    "stragglers of collective calls": case(file(0, 10, **SLOW, mpiio_coll_writes=100, mpiio_indep_writes=0)),
    "stragglers": case(file(0, 10, **SLOW, **independent())),
    "stragglers with as much to do": case(file(0, 10, **{**SLOW, **independent(fastest_rank_bytes=50)})),
    "metadata": case(file(0, 10, meta_time=30.0)),
    "metadata, 5 s of 6 s in calls, and 10 s of I/O": case(file(0, 10, meta_time=5.0, write_time=1.0)),
    "small files": case(*(file(k, k + 1, bytes_written=4096, file=f"f{k}") for k in range(120))),
    # a fast job has causes only where they are shown to cost time: 19.8 GB/s with unaligned requests are no cause; an
    # OST that is slower than the others still is one
    "unaligned, fast": case(file(0, 10, bytes_written=FAST, **UNALIGNED)),
    "unaligned, low": case(file(0, 10, **UNALIGNED)),
    "unaligned, low by another bound": case(file(0, 10, bytes_written=FAST, **UNALIGNED), limits=Limits(fast=20e9)),
    "unaligned, of small blocks": case(file(0, 10, **UNALIGNED, **small(alignment=4096))),
    "a slow OST, fast": case(*on_targets(bytes_written=10**10)),
    "a slow OST": case(*on_targets()),
    "slow files on unknown OSTs": case(*on_targets(osts=None)),
    # each is open for as long: without the slow one, the sweep would take as long
    "a slow file in step": case(
        *(file(k / 100, 90, file=f"s{k}", osts=None, write_time=60.0 if k == 1 else 2.0) for k in range(4))
    ),
    "one file takes the time": case(file(0, 95), file(90, 96)),
    "one file takes the time by its small requests": case(file(0, 95, **small()), file(90, 96)),
    "a file with the bytes does not dominate": case(file(0, 95), CONFIG),
    "a file with as many bytes dominates": case(file(0, 95), file(90, 96, bytes_written=100 << 20)),
    "files of unknown bytes": case(file(0, 95, bytes_written=None), file(90, 96, bytes_written=None)),
    "2 % of the run": case(TRIVIAL, job={**JOB, "run_time": 499.0}),
    "1 % of the run": case(TRIVIAL, job={**JOB, "run_time": 1000.0}),
    "1 % of the run, by another limit": case(TRIVIAL, job={**JOB, "run_time": 1000.0}, limits=Limits(trivial=0)),
    "an unknown part of the run": case(TRIVIAL, job={**JOB, "run_time": None}),
    # a file that is open all along and hardly used is not worth tuning, unless MPI-IO may wait beside its requests, or
    # the log has lost some
    "hardly used": case(file(0, 95, **HARDLY)),
    "hardly used, MPI-IO may wait": case(file(0, 95, **{**HARDLY, "mpiio_indep_writes": 9})),
    "hardly used, records are lost": case(file(0, 95, **HARDLY, partial=True)),
    "used": case(file(0, 95, **{**HARDLY, "write_time": 2.5})),
    "used for an unknown time": case(file(0, 95, **{**HARDLY, "write_time": None})),
    # advice names no more OSTs than there are: a store, or a job that met them all, tells how many; a few tell nothing
    "100 OSTs": case(file(0, 90, **MANY, stripe_count=100, osts=[*range(100, 200)])),
    "100 of 248 OSTs": case(file(0, 90, **MANY, stripe_count=100, osts=[*range(100, 200)]), osts=248),
    "all of 248 OSTs": case(file(0, 90, **MANY, stripe_count=248, osts=[*range(248)])),
    "248 unknown OSTs": case(file(0, 90, **MANY, stripe_count=248, osts=None), osts=248),
    "1 OST": case(file(0, 90, **MANY, stripe_count=1, osts=[0])),
    "a file that is hardly accessed takes no time from others": case(
        file(0, 10, write_time=0.2, bytes_written=50 << 20), file(0.5, 9.5, **small())
    ),
    "files that are open for long": case(file(0, 95, write_time=0.2), file(90, 96, write_time=0.1)),
    "no times": case({**file(0, 1), "write_start": None}),
}


@pytest.mark.parametrize("name", CASES)
def test_rules(name: str, expected: Expected) -> None:
    files, options = CASES[name]
    expected(summary(diagnose(**{"job": JOB, "files": files, **options})))


#: Logs of the data beside the project, and of PyDarshan: with their direction.
LOGS = {
    # the sample's README: OST 14 degrades the whole file system
    "badost": (("tokio", "samples", "sample-badost.darshan"), None),
    # 203 ms of 780 s
    "badost, reads": (("tokio", "samples", "sample-badost.darshan"), "read"),
    "goodost": (("tokio", "samples", "sample-goodost.darshan"), None),
    # the .h5 of the sample: no MPI-IO read, 25.9 GB of POSIX reads for 257.7 GB of MPI-IO writes
    "jlbez, reads": (("darshan", "jlbez*.darshan"), "read"),
    "jlbez, writes": (("darshan", "jlbez*.darshan"), "write"),
    "jlbez, writes, seen and not called a cause": (("darshan", "jlbez*.darshan"), "write fast"),
    "macsio": (("shane_macsio*",), None),
    "ior": (("ior_hdf5_example*",), None),
    "dxt": (("dxt.darshan",), None),
    # 100 % metadata and unaligned requests, while its critical file is open and hardly used
    "dxt, reads": (("dxt.darshan",), "read"),
    # 1 s of 39,213 s; a file written to now and then for all of these, some seconds in calls
    "noposix, reads": (("noposix.darshan",), "read"),
    "noposix, writes": (("noposix.darshan",), "write"),
}


@pytest.mark.parametrize("name", LOGS)
def test_real_logs(name: str, expected: Expected) -> None:
    (*folder, log), way = LOGS[name]
    place = darshan_rows.shared_data(*folder) if folder else darshan_rows.example("dxt.darshan").parent
    (path,) = place.glob(log)
    limits = Limits() if way is None or way.endswith("fast") else Limits(fast=1e12)
    found = diagnose(*darshan_rows.rows(path), way and way.split()[0], limits=limits)  # type: ignore[arg-type]
    json.dumps(found.to_dict(), allow_nan=False)
    expected(summary(found))


def test_facts_and_critical_files(expected: Expected) -> None:
    names = ("a quiet job", "order is by share", "unaligned, fast")
    expected({name: diagnose(JOB, CASES[name][0]).text() for name in names})
    assert [count_of_osts(met) for met in ([], range(8), range(248), range(0, 248, 2))] == [None, None, 248, None]


def test_sizes_of_a_diagnosis_are_of_one_family() -> None:
    """Powers of 1000 everywhere, as bandwidths have; blocks and bounds exactly."""
    found = diagnose(JOB, CASES["unaligned, of small blocks"][0]).text()
    assert not re.search(r"\b[KMGT]iB", found)


def test_what_is_unknown_is_said(expected: Expected) -> None:
    job = {**JOB, "modules": ["POSIX"], "partial": True, "uses_mpiio": False}
    nothing = {"stripe_count": None, "osts": None, "root_bytes_written": None, **NONE}
    stdio = {"consec_writes": None, "unaligned": None, **{f"write_size_{name}": None for name in SIZE_BINS}}
    four = [file(k, 10, file=f"f{k}", stripe_count=1, osts=[0]) for k in range(4)]
    expected(
        {
            "POSIX alone": diagnose(job, [file(0, 10, **nothing)]).unknown,
            "STDIO": diagnose(JOB, [file(0, 10, **stdio)]).unknown,
            "one file": diagnose(JOB, [file(0, 10)]).unknown,
            "four files on one OST": diagnose(JOB, four).unknown,
            "no file": diagnose(JOB, []).unknown,
        }
    )


def test_direction_is_the_longer_one() -> None:
    files = [file(0, 10), file(0, 30, "read")]
    assert diagnose(JOB, files).direction == "read"
    assert diagnose(JOB, files, "write").direction == "write"
    tables = [pa.Table.from_pylist([each]) for each in files]
    assert (
        diagnose(JOB, pa.concat_tables(tables, promote_options="default")).to_dict() == diagnose([JOB], files).to_dict()
    )
    with pytest.raises(ArgumentError, match="of one job, and these are rows of 2"):
        diagnose(JOB, [{**file(0, 1), "job_id": 5}])


def test_json_has_units() -> None:
    found = diagnose(JOB, [file(0, 10, **small())]).to_dict()
    again = json.loads(json.dumps(found, allow_nan=False))
    finding = again["findings"][0]
    assert finding["time"] == {"value": 10.0, "unit": "s"}
    assert {each["unit"] for each in finding["evidence"]} == {"share", "B", "count"}
    assert again["facts"][0] == {"meaning": "bytes written", "value": 102400.0, "unit": "B"}


def leaks(found: Diagnosis) -> str:
    return found.text() + json.dumps(found.to_dict())


def test_the_anonymous_form_leaks_nothing() -> None:
    """Neither names, nor ids, nor times to the second: of a job made for it, and of a real log."""
    files = [
        file(
            0.123456, 12.345678, **small(mpiio_coll_writes=0, mpiio_indep_writes=1), osts=[71], stripe_count=1, ranks=64
        ),
        file(12.0, 33.333333, root_bytes_written=104857600),
    ]
    text = leaks(diagnose(JOB, files, anonymous=True))
    secrets = (
        "4711",
        "31337",
        "alice",
        "secret",
        "solver",
        "scratch",
        "out.",
        "71",
        "1600000",
        "12.34",
        "33.2",
        "21.3",
    )
    assert [secret for secret in secrets if secret in text] == []
    assert "file 1" in text
    assert "4711" in leaks(diagnose(JOB, files))

    job, rows = darshan_rows.rows(darshan_rows.shared_data("tokio", "samples", "sample-badost.darshan"))
    text = leaks(diagnose(job, rows, anonymous=True))
    words = [str(job["job_id"]), str(job["uid"]), "glock", "scratch", "ior", "727.", "1507", "778"]
    assert [word for word in words if word in text] == []
    assert re.search(r"OST 14\b", text) is None
    assert "slow_ost" in text


def test_every_hint_in_advice_exists() -> None:
    """And every document that it names."""
    known = {spec.name for spec in hints.registry()}
    pieces = [
        advice.MEASURE,
        advice.DELEGATES,
        advice.align(collective=True),
        advice.align(collective=False),
        advice.BUNDLE,
        advice.metadata(again=True),
        advice.overlap(),
    ]
    pieces += [*advice.NO_SIEVING, *advice.contact(["1"]), *advice.stripes(64, 1, None)]
    pieces += [made(way) for way in ("read", "write") for made in (advice.use_collective, advice.collective_buffering)]
    pieces += [made for way in ("read", "write") for made in (advice.parallel_root(way), advice.aggregators(way, 4))]
    pieces += [advice.imbalance(by_bytes) for by_bytes in (True, False)]
    pieces += [
        advice.larger_requests(way, mpiio=mpiio, hdf5=hdf5)
        for way in ("read", "write")
        for mpiio, hdf5 in ((True, False), (False, True), (False, False))
    ]
    assert len(pieces) > 15
    named = {name for each in pieces for name in re.findall(r"(?:^|[ :])(\w+)=", each.command)}
    assert named
    assert named <= known
    for each in pieces:
        assert not each.see or (darshan_rows.cbuild.ROOT / each.see).exists()


def test_numbers_in_words() -> None:
    assert [worded(value, "share") for value in (0.0, 0.004, 0.5, 1.0)] == ["0 %", "0.4 %", "50 %", "100 %"]
    assert worded(7.06e8, "B/s") == "706 MB/s"
    assert worded(19.8e9, "B/s") == "19.8 GB/s"
    assert [worded(value, "B") for value in (100, 4096, 5000, 1 << 20, 3 << 20, 1 << 30, 999_950, 2.5e15)] == [
        "100 B",
        "4.1 kB",
        "5 kB",
        "1.05 MB",
        "3.15 MB",
        "1.07 GB",
        "1 MB",
        "2.5 PB",
    ]
    assert worded(39211.7, "s") == "39,212 s"
    assert [rounded(value, 2) for value in (0.0, 727.18, 0.0123, 2050, 1.0)] == [0.0, 730, 0.012, 2000, 1.0]
