"""Filling a store: what is new, changed, gone, twice, bad or deadly; and what the manifest says of it."""

from __future__ import annotations

import fcntl
import os
import pathlib
import subprocess
import sys
from typing import Any

import pyarrow.parquet as pq
import pytest

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.sources.base import Converted, Outcome
from mpiio_ext.analytics.store.catalog import Catalog
from mpiio_ext.analytics.store.fill import Report, fill
from mpiio_ext.analytics.store.lock import locked
from mpiio_ext.analytics.store.logtable import read_logs
from support import fake_logs

FAKE = {"darshan": fake_logs.convert}


def run(folder: pathlib.Path, *period: Any, **fields: Any) -> Report:
    return fill(fake_logs.set_up(folder, **fields), *period, connectors=FAKE)


def rows(folder: pathlib.Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table, file by file in the catalog's order, each file checked to be sorted."""
    out: list[dict[str, Any]] = []
    for path in Catalog(folder / "store").files(table):
        found = pq.read_table(path).to_pylist()
        assert [row["job_id"] for row in found] == sorted(row["job_id"] for row in found)
        out += found
    return out


def logs(folder: pathlib.Path) -> dict[str, dict[str, Any]]:
    catalog = Catalog(folder / "store")
    found = read_logs(catalog.folder, catalog.manifest.logs).to_pylist()
    assert len({row["path"] for row in found}) == len(found)
    return {row["path"].removesuffix(".darshan"): row for row in found}


def jobs(folder: pathlib.Path) -> list[int]:
    return sorted(row["job_id"] for row in rows(folder, "darshan_job"))


def test_logs_become_sorted_tables(tmp_path: pathlib.Path) -> None:
    for number in range(30):
        fake_logs.write(tmp_path / "logs", f"2018/1/{number}", f"job {100 - number} {number % 4} {number}")
    report = run(tmp_path)
    assert (report.whole, report.rows) == (30, {"darshan_job": 30, "darshan_file": sum(k % 4 for k in range(30))})
    assert jobs(tmp_path) == list(range(71, 101))
    found = rows(tmp_path, "darshan_file")
    assert len(found) == report.rows["darshan_file"]
    assert all(row["osts"] == [100 - row["job_id"]] for row in found)
    assert all(row["ost_word_0"] == 1 << (100 - row["job_id"]) for row in found)
    assert all(row["bytes_read"] is None for row in found)
    entry = Catalog(tmp_path / "store").entries("darshan_job")[0]
    assert (entry.low, entry.high, entry.rows) == (71, 100, 30)


def test_a_second_fill_converts_nothing(tmp_path: pathlib.Path) -> None:
    fake_logs.write(tmp_path / "logs", "a", "job 1 1")
    run(tmp_path)
    before = Catalog(tmp_path / "store").manifest
    again = fill(fake_logs.set_up(tmp_path), connectors={"darshan": None})  # type: ignore[dict-item] # is not called
    assert (again.known, again.whole, again.rows) == (1, 0, {})
    assert Catalog(tmp_path / "store").manifest == before


def test_a_changed_log_replaces_its_rows(tmp_path: pathlib.Path) -> None:
    for number in range(5):
        fake_logs.write(tmp_path / "logs", f"a{number}", f"job {number} 2")
    run(tmp_path)
    fake_logs.write(tmp_path / "logs", "a3", "job 77 5")
    assert (run(tmp_path).whole, jobs(tmp_path)) == (1, [0, 1, 2, 4, 77])
    assert [row["job_id"] for row in rows(tmp_path, "darshan_file")] == [0, 0, 1, 1, 2, 2, 4, 4, *[77] * 5]
    fake_logs.write(tmp_path / "logs", "a3", "skip it is damaged now")
    assert (run(tmp_path).skipped, jobs(tmp_path)) == (1, [0, 1, 2, 4])
    assert logs(tmp_path)["a3"]["reason"] == "it is damaged now"


def test_a_log_that_is_gone_keeps_its_rows_and_is_told(tmp_path: pathlib.Path) -> None:
    path = fake_logs.write(tmp_path / "logs", "a", "job 1 1")
    fake_logs.write(tmp_path / "logs", "b", "job 2 1")
    run(tmp_path)
    status = path.stat()
    path.unlink()
    assert "1 vanished" in str(run(tmp_path))
    assert (jobs(tmp_path), logs(tmp_path)["a"]["vanished"]) == ([1, 2], True)
    assert run(tmp_path).vanished == 0, "it is told once"
    fake_logs.write(tmp_path / "logs", "a", "job 1 1")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (run(tmp_path).known, logs(tmp_path)["a"]["vanished"]) == (2, False)


def test_the_same_log_twice_counts_once_until_the_first_changes(tmp_path: pathlib.Path) -> None:
    fake_logs.write(tmp_path / "logs", "a", "job 1 1")
    fake_logs.write(tmp_path / "logs", "b", "job 1 1")
    assert (run(tmp_path).duplicate, jobs(tmp_path)) == (1, [1])
    assert logs(tmp_path)["b"]["same_as"] == str(tmp_path / "logs" / "a.darshan")
    fake_logs.write(tmp_path / "logs", "c", "job 1 1")
    assert (run(tmp_path).duplicate, jobs(tmp_path)) == (1, [1])
    fake_logs.write(tmp_path / "logs", "a", "job 22 1")
    run(tmp_path)
    assert (jobs(tmp_path), logs(tmp_path)["b"]["status"], logs(tmp_path)["c"]["status"]) == (
        [1, 22],
        "whole",
        "duplicate",
    )


def test_one_job_may_have_several_logs(tmp_path: pathlib.Path) -> None:
    fake_logs.write(tmp_path / "logs", "a", "job 1 1")
    fake_logs.write(tmp_path / "logs", "b", "job 1 2")
    run(tmp_path)
    found = rows(tmp_path, "darshan_file")
    assert [row["job_id"] for row in found] == [1, 1, 1]
    assert len({row["log_id"] for row in found}) == 2
    assert {row["log_id"] for row in found} == {row["log_id"] for row in rows(tmp_path, "darshan_job")}
    assert all(row["log_id"] > 0 for row in found)


@pytest.mark.parametrize("word", ["kill", "exit", "raise"])
def test_a_deadly_log_costs_itself_alone(tmp_path: pathlib.Path, word: str) -> None:
    for number in range(6):
        fake_logs.write(tmp_path / "logs", f"a{number}", f"job {number} 1")
    fake_logs.write(tmp_path / "logs", "a3x", word)
    report = run(tmp_path, workers=1)
    assert (report.whole, report.skipped, jobs(tmp_path)) == (6, 1, list(range(6)))
    reason = logs(tmp_path)["a3x"]["reason"]
    assert {"kill": "signal 9", "exit": "status 7", "raise": "cannot stand"}[word] in reason
    assert run(tmp_path, workers=1).known == 7, "it is not tried again while it stays as it is"


def test_a_log_that_takes_for_ever_is_skipped(tmp_path: pathlib.Path) -> None:
    fake_logs.write(tmp_path / "logs", "a", "sleep")
    report = run(tmp_path, workers=1, timeout_s=4)
    assert (report.skipped, logs(tmp_path)["a"]["reason"]) == (1, "took longer than 4 s")


def test_a_log_that_cannot_be_read_keeps_its_rows_and_is_tried_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_logs.write(tmp_path / "logs", "a", "job 1 1")
    run(tmp_path)
    fake_logs.write(tmp_path / "logs", "a", "job 22 1")
    with monkeypatch.context() as patch:
        patch.setattr("mpiio_ext.analytics.store.fill.digests", lambda _, paths: ["!no permission"] * len(paths))
        report = run(tmp_path)
    assert (report.unreadable, jobs(tmp_path)) == (1, [1])
    assert (logs(tmp_path)["a"]["status"], logs(tmp_path)["a"]["reason"]) == ("unreadable", "no permission")
    assert (run(tmp_path).whole, jobs(tmp_path)) == (1, [22])


def test_two_fills_at_once_are_refused(tmp_path: pathlib.Path) -> None:
    with locked(tmp_path / "store"), pytest.raises(AnalyticsError, match=f"filled by process {os.getpid()} on"):
        run(tmp_path)
    assert run(tmp_path).known == 0


def test_the_bitmap_grows(tmp_path: pathlib.Path) -> None:
    fake_logs.write(tmp_path / "logs", "a", "job 1 1 5")
    fake_logs.write(tmp_path / "logs", "none", "job 3 1")
    run(tmp_path, osts=7)
    assert Catalog(tmp_path / "store").osts == 7
    for number in range(4):
        fake_logs.write(tmp_path / "logs", f"b{number}", f"job 2 1 61 62 {200 + number} 999999")
    report = run(tmp_path)
    catalog = Catalog(tmp_path / "store")
    assert (catalog.osts, report.partial, report.whole) == (204, 4, 0)
    assert "beyond" in logs(tmp_path)["b0"]["reason"]
    found = {row["job_id"]: row for row in pq.read_table(catalog.files("darshan_file")).to_pylist()}
    assert found[2]["ost_word_0"] == 1 << 61
    assert (found[2]["ost_word_1"], found[2]["osts"][-1]) == (1, 999999)
    assert [found[1][f"ost_word_{word}"] or 0 for word in range(4)] == [32, 0, 0, 0]
    assert found[3]["osts"] is None
    assert found[3]["ost_word_0"] is None


def test_a_period_takes_its_logs_alone(tmp_path: pathlib.Path) -> None:
    for day in (1, 2, 3):
        fake_logs.write(tmp_path / "logs", f"2018/1/{day}/x", f"job {day} 0")
    inputs = {"inputs": {"darshan": ["logs"]}, "period": "day"}
    report = run(tmp_path, "2018-01-02", "2018-01-02", **inputs)
    assert (report.whole, report.outside, jobs(tmp_path)) == (1, 2, [2])
    assert [entry.period for entry in Catalog(tmp_path / "store").entries("darshan_job")] == ["2018-01-02"]
    report = run(tmp_path, None, "2018-01-31", **inputs)
    assert (report.whole, report.known, jobs(tmp_path)) == (2, 1, [1, 2, 3])
    with pytest.raises(AnalyticsError, match="before it begins"):
        run(tmp_path, "2018-02-01", "2018-01-01", **inputs)
    with pytest.raises(AnalyticsError, match="a date as"):
        run(tmp_path, "January", **inputs)


def test_many_fills_leave_few_files(tmp_path: pathlib.Path) -> None:
    for number in range(25):
        fake_logs.write(tmp_path / "logs", f"a{number}", f"job {number} 3")
        run(tmp_path)
    catalog = Catalog(tmp_path / "store")
    assert len(catalog.files("darshan_file")) < 8
    assert len(catalog.manifest.logs) <= 8
    assert jobs(tmp_path) == list(range(25))
    on_disk = set((tmp_path / "store" / "tables").rglob("*.parquet"))
    valid = {pathlib.Path(path) for table in ("darshan_job", "darshan_file") for path in catalog.files(table)}
    assert valid <= on_disk
    run(tmp_path)
    assert set((tmp_path / "store" / "tables").rglob("*")) >= valid
    on_disk = set((tmp_path / "store" / "tables").rglob("*.parquet"))
    assert on_disk == valid, "the next fill removes the others"


def broken(kind: str) -> Any:
    def convert(names: Any, root: str) -> Converted:
        good = fake_logs.convert(names, root)
        jobs_ = good.tables["darshan_job"]
        return {
            "outcome": Converted(tables=good.tables, outcomes=good.outcomes[:-1]),
            "foreign": Converted(
                tables={"darshan_job": jobs_.append_column("wrong", jobs_["job_id"])}, outcomes=good.outcomes
            ),
            "key": Converted(tables={"darshan_job": jobs_.drop_columns(["job_id"])}, outcomes=good.outcomes),
            "log": Converted(tables={"darshan_job": jobs_}, outcomes=[Outcome(names[0], "whole", "", 99)]),
        }[kind]

    return convert


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("outcome", "one outcome"),
        ("foreign", "unknown column wrong"),
        ("key", "without job_id"),
        ("log", "does not name"),
    ],
)
def test_a_connector_that_breaks_its_promise_costs_its_logs(tmp_path: pathlib.Path, kind: str, text: str) -> None:
    fake_logs.write(tmp_path / "logs", "a", "job 1 1")
    report = fill(fake_logs.set_up(tmp_path), connectors={"darshan": broken(kind)})
    assert report.skipped == 1
    assert text in logs(tmp_path)["a"]["reason"]


def test_other_options_need_another_store(tmp_path: pathlib.Path) -> None:
    run(tmp_path)
    with pytest.raises(AnalyticsError, match="filled with time_zone 'UTC'"):
        run(tmp_path, site={"time_zone": "Europe/Berlin"})


def test_a_damaged_manifest_is_told(tmp_path: pathlib.Path) -> None:
    run(tmp_path)
    (tmp_path / "store" / "manifest.json").write_text("{")
    with pytest.raises(AnalyticsError, match=r"manifest\.json: is not JSON: .*; it is the store's manifest"):
        Catalog(tmp_path / "store")
    with pytest.raises(AnalyticsError, match="there is no store"):
        Catalog(tmp_path)


def test_a_fill_that_fails_at_once_leaves_nothing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mine").mkdir()
    for store in ("new/store", "mine"):
        with pytest.raises(AnalyticsError, match="no such folder or file"), locked(tmp_path / store):
            raise AnalyticsError("no such folder or file")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["mine"]
    with pytest.raises(AnalyticsError, match="no such folder or file"):
        run(tmp_path, inputs={"darshan": ["nowhere"]})
    assert not (tmp_path / "store").exists()

    fake_logs.write(tmp_path / "logs", "a", "job 1 0 0")
    run(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RuntimeError), locked(tmp_path / "store"):
        raise RuntimeError
    assert sorted(tmp_path.rglob("*")) == before  # a store stays as it is


def test_a_lock_whose_file_was_removed_meanwhile_is_not_taken_for_the_store_s(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the file and locking it, its holder may fail and remove it."""
    plain = fcntl.flock
    calls: list[int] = []

    def flock(stream: Any, operation: int) -> None:
        if not calls:
            (tmp_path / "store" / "lock").unlink()
        calls.append(operation)
        plain(stream, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    refused = pytest.raises(AnalyticsError, match="is being filled by process")
    with locked(tmp_path / "store"), refused, locked(tmp_path / "store"):
        pytest.fail("two fills hold the store")
    assert len(calls) == 3


def test_a_missing_input_is_an_error_and_a_pattern_without_match_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(AnalyticsError, match="no such folder or file; the set-up names it under /inputs/darshan"):
        run(tmp_path, inputs={"darshan": ["nowhere"]})
    assert "no file matches" in str(run(tmp_path, inputs={"darshan": ["logs/*.darshan"]}))


def test_a_plain_script_may_fill(tmp_path: pathlib.Path) -> None:
    """Workers do not run the user's program again, which has no guard around its main part."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "results.json").write_text("{")
    (tmp_path / "setup.json").write_text('{"store": "store", "inputs": {"results": ["logs"]}, "workers": 2}')
    script = tmp_path / "analysis.py"
    script.write_text(
        "from mpiio_ext.analytics import IOMiner\nminer = IOMiner('setup.json')\n"
        "print(miner.init_stores('2018-01-01', '2018-01-31'))\n"
    )
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "logs: 1 skipped\n"


def test_a_connector_that_workers_cannot_import_ends_the_fill(tmp_path: pathlib.Path) -> None:
    fake_logs.write(tmp_path / "logs", "a", "job 1 1")
    script = tmp_path / "analysis.py"
    script.write_text(
        "from mpiio_ext.analytics.setup import load_setup\n"
        "from mpiio_ext.analytics.store.fill import fill\n"
        "def convert(logs, root): ...\n"
        "fill(load_setup({'store': 's', 'inputs': {'darshan': ['logs']}, 'workers': 1}),\n"
        "     connectors={'darshan': convert})\n"
    )
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "AnalyticsError: a connector cannot be imported" in done.stderr
    assert not (tmp_path / "s" / "manifest.json").exists()
