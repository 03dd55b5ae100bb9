"""Curves: from tables, estimated, learnt from logs, stored; and what bad files are told."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from mpiio_ext.cli import main
from mpiio_ext.delegates.arbitration import Curve, CurveError, Point
from mpiio_ext.delegates.arbitration.estimate import anchored, estimate, joined
from mpiio_ext.delegates.arbitration.learn import learn, patterns_of_log
from mpiio_ext.delegates.arbitration.pattern import Pattern, distance
from mpiio_ext.delegates.arbitration.program import program_name
from mpiio_ext.delegates.arbitration.store import KEPT, Store
from mpiio_ext.delegates.arbitration.tables import read_bench, read_forge, read_jobs
from mpiio_ext.errors import ArgumentError
from support import cbuild
from support.expected import Expected

DATA = Path(os.environ.get("MPIOX_TEST_DATA", cbuild.ROOT.parent / "shared" / "data"))
HEAD = (
    "forwarders;clients;processes;layout;spatiality;odirect;stonewall;request;total;operation;time;transfered;bandwidth"
)


def forge(path: Path, *rows: str, head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def row(count: object = 1, bandwidth: object = 10.0, layout: int = 0, request: int = 1024) -> str:
    return f"{count};8;96;{layout};0;1;60;{request};131072;write;1.0;10.0;{bandwidth}"


def test_repetitions_of_several_files_become_points(tmp_path: Path) -> None:
    one = forge(tmp_path / "a.csv", row(1, 10), row(1, 14), row(2, 30))
    two = forge(tmp_path / "b.csv", row(0, 5), row(0, 7, layout=1))
    curves = read_forge([one, two])
    assert [pattern.layout for pattern in curves] == ["file-per-process", "shared"]
    curve = next(iter(curves.values()))
    assert curve.counts == (0, 1, 2)
    point = curve.points[1]
    assert (point.mean, point.best, point.repetitions) == (12.0, 14.0, 2) and point.deviation == pytest.approx(8**0.5)
    assert curve.points[2].deviation is None
    assert next(iter(curves)).request_bytes == 1 << 20


def test_only_repetitions_are_joined(tmp_path: Path) -> None:
    """Past the page cache is another pattern; another total or stonewall is no repetition, and not another pattern."""

    def of(bandwidth: float, odirect: int, stonewall: int, total: int) -> str:
        return row(1, bandwidth).replace(";1;60;1024;131072;", f";{odirect};{stonewall};1024;{total};")

    both = forge(tmp_path / "both.csv", of(10, 0, 60, 128), of(20, 1, 60, 128))
    curves = read_forge([both])
    assert [(pattern.direct, curve.points[1].mean) for pattern, curve in curves.items()] == [(False, 10), (True, 20)]
    buffered, direct = (pattern.name for pattern in curves)
    assert direct == f"{buffered}-direct" and not buffered.endswith("direct")
    other = forge(tmp_path / "other.csv", of(30, 1, 60, 256))
    with pytest.raises(CurveError, match=r"other.csv:2: .*-direct with 1 I/O nodes: total '256' and stonewall '60'"):
        read_forge([both, other])
    shorter = forge(tmp_path / "shorter.csv", of(30, 0, 5, 128))
    with pytest.raises(CurveError, match="'5', and '128' and '60' in an earlier line"):
        read_forge([both, shorter])


def test_estimates_keep_to_one_way_past_the_cache() -> None:
    """Those through the page cache are not mixed with others; only where there are no others they stand in."""

    def pattern(kib: int, *, direct: bool) -> Pattern:
        return Pattern(
            layout="shared", spatiality="strided", request_bytes=kib << 10, compute_nodes=1, processes=8, direct=direct
        )

    buffered, direct = Curve.of({0: 100.0}), Curve.of({0: 7.0})
    base = {pattern(4, direct=False): buffered, pattern(64, direct=True): direct}
    assert estimate(pattern(64, direct=False), base).points[0].mean == pytest.approx(100)
    assert estimate(pattern(4, direct=True), base).points[0].mean == pytest.approx(7)
    only = {pattern(64, direct=True): direct}
    found = estimate(pattern(64, direct=False), only)
    assert found.points == direct.points and found.source.endswith(pattern(64, direct=True).name)
    assert estimate(pattern(32, direct=False), only).points[0].mean == pytest.approx(7)


@pytest.mark.parametrize(
    ("rows", "head", "told"),
    [
        ([row(), row(1, "nan")], HEAD, r"bad.csv:3: bandwidth is not a number"),
        ([row(1, -3)], HEAD, r"bad.csv:2: bandwidth must be a finite number >= 0, not -3"),
        ([row(), row(), row(1, "much")], HEAD, r"bad.csv:4: bandwidth must be a number, not 'much'"),
        ([row(1.5)], HEAD, r"bad.csv:2: forwarders must be a whole number"),
        ([row(1, "inf")], HEAD, r"bad.csv:2: bandwidth must be a finite"),
        ([row(layout=2)], HEAD, r"bad.csv:2: layout must be a whole number from 0 to 1"),
        (["1;8;96"], HEAD, r"bad.csv:2: the number of its fields"),
        ([row().replace("write", "scan")], HEAD, r"bad.csv:2: operation must be write or read, not 'scan'"),
        (
            [],
            HEAD.replace("bandwidth", "speed").replace("clients;", ""),
            r"bad.csv:1: missing columns: clients, bandwidth",
        ),
        ([], "", r"bad.csv:1: is empty"),
        ([], HEAD, r"bad.csv: no measurement"),
    ],
)
def test_bad_tables_are_told_file_and_line(tmp_path: Path, rows: list[str], head: str, told: str) -> None:
    with pytest.raises(CurveError, match=told):
        read_forge([forge(tmp_path / "bad.csv", *rows, head=head)])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CurveError, match=r"none.csv: cannot be read"):
        read_forge([tmp_path / "none.csv"])


def test_table_of_jobs(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(
        "job,compute_nodes,processes,io_nodes,bandwidth\na,8,64,0,100\na,8,64,2,300\na,8,64,2,310\nnew,16,16,,\n",
        encoding="utf-8",
    )
    known, unknown = read_jobs(path)
    assert known.curve is not None and known.curve.points[2].mean == 305 and known.compute_nodes == 8
    assert unknown.name == "new" and unknown.curve is None
    path.write_text("job,compute_nodes,processes,io_nodes,bandwidth\na,8,64,0,100\na,9,64,2,300\n", encoding="utf-8")
    with pytest.raises(CurveError, match=r"jobs.csv:3: job a has other sizes.*: 9 compute"):
        read_jobs(path)


def bench_rows() -> list[dict[str, object]]:
    common = {"variant": "contiguous", "interface": "mpiio", "operation": "write", "phase": ""}
    return [
        {**common, "strategy": "auto", "delegates": None, "delegated_accesses": None, "bandwidth_mb_per_s": 100.0},
        {**common, "strategy": "native", "delegates": None, "delegated_accesses": None, "bandwidth_mb_per_s": 90.0},
        {**common, "strategy": "delegates", "delegates": 2, "delegated_accesses": 8, "bandwidth_mb_per_s": 200.0},
        {**common, "strategy": "delegates", "delegates": 2, "delegated_accesses": 8, "bandwidth_mb_per_s": 220.0},
        {**common, "strategy": "delegates", "delegates": 4, "delegated_accesses": 0, "bandwidth_mb_per_s": 1.0},
    ]


def test_results_of_the_bench(tmp_path: Path) -> None:
    written, table = tmp_path / "results.json", tmp_path / "results.parquet"
    written.write_text(json.dumps({"runs": bench_rows()}), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(bench_rows()), table)
    for path in (written, table):
        curve = read_bench([path])["contiguous [mpiio] write"]
        assert {count: point.mean for count, point in curve.points.items()} == {0: 100.0, 2: 210.0}
    assert read_bench([written], direct="native")["contiguous [mpiio] write"].points[0].mean == 90.0
    broken = bench_rows()
    del broken[2]["bandwidth_mb_per_s"]
    written.write_text(json.dumps({"runs": broken}), encoding="utf-8")
    with pytest.raises(CurveError, match=r'results.json: .*: /runs/2: "bandwidth_mb_per_s" is missing$'):
        read_bench([written])
    written.write_text("{", encoding="utf-8")
    with pytest.raises(CurveError, match=r"results.json: is not JSON"):
        read_bench([written])


def pattern(request: int = 1 << 20, layout: str = "shared", spatiality: str = "contiguous", **more: object) -> Pattern:
    return Pattern(
        layout=layout,
        spatiality=spatiality,
        request_bytes=request,  # type: ignore[arg-type]
        **({"compute_nodes": 8, "processes": 96} | more),
    )  # type: ignore[arg-type]


BASE = {
    pattern(): Curve.of({0: 100.0, 1: 50.0, 2: 200.0}),
    pattern(4 << 20): Curve.of({0: 400.0, 1: 200.0, 2: 800.0}),
    pattern(layout="file-per-process"): Curve.of({0: 1000.0, 1: 100.0, 2: 150.0}),
}


def test_estimates() -> None:
    assert estimate(pattern(), BASE) is BASE[pattern()]
    between = estimate(pattern(2 << 20), BASE, nearest=2)
    assert between.points[0].mean == pytest.approx(200.0)  # one doubling from both: their geometric mean
    assert between.points[2].mean == pytest.approx(400.0)
    assert between.points[0].repetitions == 0 and between.points[0].deviation == pytest.approx(200 * 0.693147, rel=1e-4)
    assert "estimated from" in between.source
    assert distance(pattern(), pattern(layout="file-per-process")) > distance(pattern(), pattern(8 << 20))
    with pytest.raises(CurveError, match="no measured base pattern"):
        estimate(pattern(), {})


def test_patterns_are_joined_by_time() -> None:
    curve = joined([(100.0, Curve.of({0: 10.0, 1: 20.0})), (100.0, Curve.of({0: 30.0, 2: 1.0}))])
    assert curve.counts == (0,)
    assert curve.points[0].mean == pytest.approx(200 / (100 / 10 + 100 / 30))
    scaled = anchored(Curve.of({0: 10.0, 1: 20.0, 2: 40.0}), {1: 60.0}, source="x")
    assert {count: point.mean for count, point in scaled.points.items()} == pytest.approx({0: 30.0, 1: 60.0, 2: 120.0})


def test_learnt_from_logs() -> None:
    job = {"processes": 96, "log_file": "a.darshan"}
    files = [
        {"ranks": 96, "bytes_written": 96 << 20, "writes": 96, "consec_writes": 90, "bytes_read": None, "reads": None},
        {"ranks": 1, "bytes_written": 0, "writes": 0, "bytes_read": 10 << 20, "reads": 40, "consec_reads": 2},
        {"ranks": 1, "bytes_written": 8 << 20, "writes": 8, "consec_writes": None},
    ]
    found = patterns_of_log(job, files, compute_nodes=8)
    assert found == {
        pattern(): 96 << 20,
        pattern(1 << 18, "file-per-process", "strided", operation="read"): 10 << 20,
        pattern(layout="file-per-process"): 8 << 20,
    }
    curve = learn({each: volume for each, volume in found.items() if each.operation == "write"}, BASE)
    assert curve.points[0].mean == pytest.approx((96 + 8) / (96 / 100 + 8 / 1000))
    with pytest.raises(CurveError, match=r"a\.darshan: the number of processes is not known"):
        patterns_of_log({"log_file": "a.darshan"}, files)


def test_uncertainty() -> None:
    curve = Curve({0: Point.of([100, 110, 90]), 1: Point.of([200])})
    assert curve.relative_spread() == pytest.approx(0.1)
    # One repetition: the spread of the others.
    assert curve.columns().errors.tolist() == pytest.approx([10 / 3**0.5, 20])
    assert curve.columns().freedom.tolist() == [2, 2]
    assert curve.bandwidth(1) == 200 and Curve.of({0: 1.0, 4: 5.0}).bandwidth(1) == 2.0
    with pytest.raises(ArgumentError, match="no point at 2"):
        curve.bandwidth(2)
    with pytest.raises(ArgumentError, match="mean"):
        Point(mean=float("nan"), best=1.0)


def test_store_keeps_versions(tmp_path: Path) -> None:
    store = Store(tmp_path / "curves.json")
    assert store.names() == []
    curve = Curve({0: Point.of([1, 2]), 4: Point(mean=9, best=9)}, source="measured")
    for number in range(KEPT + 2):
        store.save({"a": Curve.of({0: float(number)}), "b": curve})
    assert store.names() == ["a", "b"]
    assert store.load("b") == curve
    assert store.load("a").points[0].mean == KEPT + 1
    assert store.versions("a") == list(range(3, KEPT + 3))
    assert store.load("a", 3).points[0].mean == 2
    with pytest.raises(CurveError, match=r"curves.json: has no curve 'c'"):
        store.load("c")
    store.path.write_text('{"format": 99, "curves": {}}', encoding="utf-8")
    with pytest.raises(CurveError, match="format 99"):
        store.save({"a": curve})
    assert json.loads(store.path.read_text(encoding="utf-8"))["format"] == 99


def test_a_broken_store_is_refused_with_the_places(tmp_path: Path) -> None:
    store = Store(tmp_path / "curves.json")
    store.save({"a": Curve.of({0: 1.0, 4: 2.0})})
    document = json.loads(store.path.read_text(encoding="utf-8"))
    document["curves"]["a"][0]["points"][1].update(io_nodes=-1, mean_mb_per_s="fast")
    store.path.write_text(text := json.dumps(document), encoding="utf-8")
    for call in (store.names, lambda: store.load("a"), lambda: store.save({"b": Curve.of({0: 1.0})})):
        with pytest.raises(CurveError) as caught:
            call()
        assert str(caught.value).splitlines() == [
            f"{store.path}: /curves/a/0/points/1/io_nodes: -1 is less than 0",
            f'{store.path}: /curves/a/0/points/1/mean_mb_per_s: "fast" is not a number',
        ]
    assert store.path.read_text(encoding="utf-8") == text


def test_a_bad_measurement_is_undone(tmp_path: Path) -> None:
    """Undo goes back one version each time, deletes nothing, and what is saved afterwards is newer than all."""
    store = Store(tmp_path / "curves.json")
    for number in (1.0, 2.0, 3.0):
        store.save({"a": Curve.of({0: number})})
    assert store.undo("a") == 2 and store.load("a").points[0].mean == 2
    assert store.undo("a") == 1 and store.load("a").points[0].mean == 1
    with pytest.raises(CurveError, match="no version before 1"):
        store.undo("a")
    with pytest.raises(CurveError, match="has no curve 'b'"):
        store.undo("b")
    store.save({"a": Curve.of({0: 4.0})})
    assert [(each.version, each.restored, each.curve.points[0].mean) for each in store.history("a")] == [
        (1, None, 1),
        (2, None, 2),
        (3, None, 3),
        (4, 2, 2),
        (5, 1, 1),
        (6, None, 4),
    ]
    assert store.undo("a") == 3


def arbitrate(*words: object) -> Result:
    return CliRunner().invoke(main, ["delegates", "arbitrate", *map(str, words)])


@pytest.mark.parametrize("option", ["--forge", "--bench"])
def test_files_of_several_options_are_all_read(option: str, tmp_path: Path) -> None:
    one, two, three = (forge(tmp_path / f"{at}.csv", row(at, 5 + at)) for at in range(3))
    if option == "--bench":
        refused = arbitrate("curves", option, tmp_path / "none.json", option, one)
        assert refused.exit_code == 2 and "none.json" in refused.output  # the first one
        return
    wanted = json.loads(arbitrate("curves", option, f"{one},{two},{three}", "--json").output)
    (curve,) = wanted["curves"].values()
    assert len(curve["points"]) == 3
    for words in ((option, one, option, two, option, three), (option, one, option, f"{two},{three}")):
        assert json.loads(arbitrate("curves", *words, "--json").output) == wanted


def test_the_store_on_the_command_line(tmp_path: Path, expected: Expected) -> None:
    store = tmp_path / "c.json"
    first = forge(tmp_path / "a.csv", row(0, 5), row(1, 10))
    assert arbitrate("curves", "--forge", first, "--as", "app", "--store", store).exit_code == 0
    second = forge(tmp_path / "b.csv", row(0, 5), row(1, 99999))
    assert arbitrate("curves", "--forge", second, "--as", "app", "--store", store).exit_code == 0
    several = forge(tmp_path / "c.csv", row(0, 5), row(0, 5, layout=1))
    found = {}
    for words in (
        ("--store", store, "--versions"),
        ("--store", store, "--undo", "app"),
        ("--store", store, "--json", "--versions"),
        (),
        ("--store", tmp_path / "none.json"),
        ("--forge", first, "--undo", "a"),
        ("--darshan-log", first),
        ("--forge", first, "--bench", first),
        ("--store", store, "--match", "zzz"),
        ("--forge", several, "--as", "app"),
    ):
        done = arbitrate("curves", *words)
        usage, _, error = done.output.partition("Error: ")
        found[" ".join(map(str, words))] = f"{done.exit_code}: {error or usage}"
    expected(found, hide={r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?": "TIME", r'"time_s": [\d.]+': "TIME"})


SETTINGS = (
    (),
    ("--most", "2"),
    ("--weight", "slow=20"),
    ("--hysteresis", "9"),
    ("--migration-cost", "600"),
    ("--counts", "0,3"),
    ("--counts", "0,3", "--no-divisible"),
    ("--floor", "0.4"),
)


def test_solve_with_a_store_and_every_setting(tmp_path: Path, expected: Expected) -> None:
    store, table = tmp_path / "c.json", tmp_path / "jobs.csv"
    Store(store).save(
        {
            "fast": Curve.of({0: 0.0, 1: 100.0, 2: 200.0, 4: 420.0}),
            "slow": Curve.of({0: 0.0, 1: 50.0, 2: 60.0, 4: 70.0}),
        }
    )
    table.write_text(
        "job,compute_nodes,processes,program,current,weight\na,8,8,fast,,\nslow,8,8,,4,\nz,6,8,other,,\n",
        encoding="utf-8",
    )

    given = ("solve", "--jobs", table, "--store", store, "--io-nodes", 5)
    found = {}
    for words in SETTINGS:
        done = arbitrate(*given, "--compute-nodes", 64, "--json", *words)
        assert done.exit_code == 0, done.output
        jobs = json.loads(done.output)["jobs"]
        found[" ".join(words)] = ", ".join(f"{name} {grant['io_nodes']}" for name, grant in jobs.items())
    wrong = [arbitrate(*given, *words) for words in (("--weight", "b=1"), ("--policy", "size", "--hysteresis", 1))]
    refused = [f"{done.exit_code}: {done.output.rpartition('Error: ')[2]}" for done in wrong]
    expected({"I/O nodes": found, "refused": refused})


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("/opt/bin/flash4 -i x", "flash4"),
        ("python3 run.py 4", "run"),
        ("/usr/bin/python3.11 -u -X dev /a/b.c/go.py", "go"),
        ("python -m mpiio_ext.bench -n 4", "mpiio_ext.bench"),
        ("python3 -c pass", "python3"),
        ("python3", "python3"),
        ("python3 -W ignore -", "python3"),
        ("python3 -m mpi4py run.py 4", "run"),
        ("python3.13t -m mpi4py.run -m codes.run", "codes.run"),
        ("pythonic a.py", "pythonic"),
        ("./a$b", "a_b"),
        ("python3 -m", "python3"),
        ("x" * 80, "x" * 63),
        ("/", "unknown"),
    ],
)
def test_names_of_programs(words: str, name: str) -> None:
    """The library, which announces jobs, and those who read logs have one rule."""
    assert program_name(words.split()) == name
    program = cbuild.program("arbiter/test_program.c", "arbiter", "common")
    assert cbuild.check(program, *words.split()).strip() == name


def test_the_name_of_this_program() -> None:
    program = cbuild.program("arbiter/test_program.c", "arbiter", "common")
    assert cbuild.check(program).strip() == "test_program"


def test_learnt_on_the_command_line(tmp_path: Path) -> None:
    """Darshan logs: by the names of programs, with what was estimated from what; a bad log is named."""
    logs = sorted(DATA.glob("tokio/samples/sample-*.darshan"))
    if not logs or not (DATA / "marenostrum4_forge").is_dir():
        pytest.skip(f"no Darshan logs or no measurements of MareNostrum 4 at hand ({DATA})")
    bad = tmp_path / "bad.darshan"
    bad.write_bytes(b"no log")
    base = ",".join(str(DATA / "marenostrum4_forge" / name) for name in ("forwarding.csv", "direct.csv"))
    found = arbitrate("curves", "--darshan-log", ",".join(map(str, [*logs, bad])), "--base", base, "--json")
    assert found.exit_code == 0, found.output
    assert "bad.darshan: skipped" in found.stderr
    document = json.loads(found.stdout)
    assert list(document["curves"]) == ["ior"] and len(document["left_out"]) == 1
    curve = document["curves"]["ior"]
    assert [point["io_nodes"] for point in curve["points"]] == [0, 1, 2, 4, 8]
    assert "estimated" in curve["source"] and all(point["repetitions"] == 0 for point in curve["points"])


def test_learnt_from_a_store(tmp_path: Path) -> None:
    """The rows of the analytics' store, with the compute nodes that the scheduler says."""
    from mpiio_ext.analytics.learnt import _joined

    jobs = [
        {"log_id": 1, "job_id": 7, "exe": "python3 /x/flow.py", "app": "python3", "processes": 96, "log_file": "a"},
        {"log_id": 2, "job_id": 8, "exe": None, "app": "solver", "processes": 96, "log_file": "b"},
        {"log_id": 3, "job_id": 9, "exe": None, "app": None, "processes": 96, "log_file": "c"},
        {"log_id": 4, "job_id": 9, "exe": None, "app": "solver", "processes": None, "log_file": "d"},
    ]
    files = [
        {
            "log_id": log,
            "ranks": 96,
            "bytes_written": 96 << 20,
            "writes": 96,
            "consec_writes": 90,
            "bytes_read": None,
            "reads": None,
            "consec_reads": None,
        }
        for log in (1, 1, 2, 3, 4)
    ]
    found, notes = _joined(jobs, files, {1: 8})
    assert found == {"flow": {pattern(): 2 * 96 << 20}, "solver": {pattern(compute_nodes=2): 96 << 20}}
    assert len(notes) == 2 and notes[0].startswith("c: the program is not known") and notes[1].startswith("log d")


def test_an_estimate_says_that_reads_were_not_measured() -> None:
    assert "reads by writes" in estimate(pattern(operation="read"), BASE).source
    assert "by" not in estimate(pattern(2 << 20), BASE).source.split(" from ")[0]
