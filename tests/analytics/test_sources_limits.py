"""Logs that are larger than the limit when they are unpacked: every source refuses them, and reads the others."""

from __future__ import annotations

import gzip
import importlib
import pathlib
import tracemalloc

import pytest
from click.testing import CliRunner

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.errors import HistoryError
from mpiio_ext.analytics.jobs import files
from mpiio_ext.analytics.sources import SourceError, opener, registry
from mpiio_ext.cli import main
from mpiio_ext.common import limits
from support import source_texts as texts
from support.traces import shared_data

DUMP = """CREATE TABLE `OST_INFO` (
  `OST_ID` int,
  `OSS_ID` int,
  `OST_NAME` varchar(128),
  PRIMARY KEY (`OST_ID`)
);
INSERT INTO `OST_INFO` VALUES (1,1,'snx-OST0000');
CREATE TABLE `TIMESTAMP_INFO` (
  `TS_ID` int,
  `TIMESTAMP` datetime
);
INSERT INTO `TIMESTAMP_INFO` VALUES (1,'2018-01-28 00:00:00'),(2,'2018-01-28 00:00:05'),(3,'2018-01-28 00:00:10');
CREATE TABLE `OST_DATA` (
  `OST_ID` int,
  `TS_ID` int,
  `READ_BYTES` bigint,
  `WRITE_BYTES` bigint
);
INSERT INTO `OST_DATA` VALUES (1,1,0,0),(1,2,100,200),(1,3,300,400);
"""
STATISTICS = '{"kind": "run", "run": "r1", "start": 1.0, "time": 2.0}\n'
#: Source -> texts in its forms.
FORMS = {
    "mmperfmon": [texts.USAGE],
    "mmdf": [texts.MMDF, texts.MMDF_Y],
    "mmlsdisk": [texts.MMLSDISK, texts.MMLSDISK_L],
    "lfs-df": [texts.LFS_DF],
    "lctl-dl": [texts.LCTL_DL],
    "ggiostat": [texts.GGIOSTAT],
    "csv": [texts.SERIES],
    "slurm": [texts.SACCT, texts.TOKIO_JOBS],
    "cobalt": [texts.COBALT, texts.COBALT_RECORDS, texts.COBALT_QSTAT, texts.COBALT_LONG],
    "lmt": [DUMP],
    "results": [STATISTICS],
    "xtdb2proc": [texts.XTDB2PROC],
}
CASES = [(source, text) for source, found in FORMS.items() for text in found]


def packed(folder: pathlib.Path, source: str, text: str | bytes) -> pathlib.Path:
    """Return a file of gzip with a text."""
    path = folder / f"log.{'jsonl' if source == 'results' else 'gz'}"
    path.write_bytes(gzip.compress(text if isinstance(text, bytes) else text.encode()))
    return path


def limit(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setenv(limits.VARIABLE, str(most))


@pytest.mark.parametrize(("source", "text"), CASES)
def test_a_file_is_read_up_to_the_limit(
    source: str, text: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(tmp_path, source, text)
    whole = sources.read(path, source)
    limit(monkeypatch, len(text.encode()))
    assert sources.read(path, source).equals(whole)
    limit(monkeypatch, len(text.encode()) - 1)
    with pytest.raises(SourceError) as caught:
        sources.read(path, source)
    size = path.stat().st_size
    assert caught.value.what == (
        f"more than {len(text.encode()) - 1:,} bytes, unpacked from {size:,}; `mpiio-ext analyze --log-limit SIZE` or "
        "MPIIO_EXT_LOG_LIMIT=SIZE raises this limit"
    )


def test_every_source_of_texts_is_tried() -> None:
    assert set(FORMS) == set(registry.BUILT_IN) - {"darshan", "jobsdb"}  # binary: neither is gzip


@pytest.mark.parametrize("kind", ["slurm", "cobalt", "lmt", "results"])
def test_the_rest_of_the_folder_goes_on(kind: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = FORMS[kind][0].encode()
    ending = "jsonl" if kind == "results" else "csv.gz" if kind != "lmt" else "sql.gz"
    names = [f"{name}.{ending}" for name in ("a", "b", "c")]
    for name in names:
        (tmp_path / name).write_bytes(gzip.compress(text + (b"\n" * len(text) if name.startswith("b") else b"")))
    limit(monkeypatch, len(text))
    found = importlib.import_module(registry.BUILT_IN[kind]).convert(names, str(tmp_path))
    assert [outcome.status for outcome in found.outcomes] == ["whole", "skipped", "whole"], found.outcomes
    assert "--log-limit SIZE" in found.outcomes[1].reason


@pytest.mark.parametrize(
    ("piece", "raised", "why"),
    [
        (b"7|COMPLETED\n", False, r": more than [\d,]+ bytes, unpacked from "),
        (bytes(12), True, ":2: a line of more than 16,777,216"),
    ],
)
def test_a_ratio_of_hundreds_is_refused_without_the_memory(
    piece: bytes, raised: bool, why: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In rows by default, and in one line also with a higher limit."""
    (tmp_path / "log.gz").write_bytes(gzip.compress(b"JobIDRaw|State\n" + 4_000_000 * piece))
    if raised:
        limit(monkeypatch, 1 << 30)
    tracemalloc.start()
    try:
        with opener.open_log(tmp_path / "log.gz") as log, pytest.raises(SourceError, match=f"log.gz{why}"):
            for _ in log.lines():
                pass
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


def test_plain_files_have_the_limit_too(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.txt").write_text(texts.SACCT, encoding="utf-8")
    limit(monkeypatch, 8)
    with pytest.raises(SourceError, match=r"log\.txt: more than 8 bytes; `mpiio-ext analyze --log-limit"):
        sources.read(tmp_path / "log.txt")


def test_files_in_an_archive_count_together(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [(f"{name}.out", texts.USAGE) for name in "abc"]
    path = packed(tmp_path, "mmperfmon", texts.archive(*parts))
    assert sources.read(path).tables["samples"].num_rows
    limit(monkeypatch, len(gzip.decompress(path.read_bytes())) - 1)
    with pytest.raises(SourceError, match="--log-limit"):
        sources.read(path)


def test_saved_records_and_tables_of_jobs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.txt").write_text(texts.SACCT, encoding="utf-8")
    saved, table = tmp_path / "r.json.gz", tmp_path / "t.csv.gz"
    sources.read(tmp_path / "log.txt").save(saved)
    table.write_bytes(gzip.compress(b"_jobid,runtime\n" + b"1,2.5\n" * 100))
    assert sources.load(saved).source == "slurm" and len(files.read(table).table) == 100
    limit(monkeypatch, 100)
    with pytest.raises(SourceError, match=r"r\.json\.gz: more than 100 bytes"):
        sources.load(saved)
    with pytest.raises(HistoryError, match=r"^[^ ]*t\.csv\.gz: more than 100 bytes, unpacked from .*--log-limit"):
        files.read(table)


def test_matrices_of_hdf5(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file of them can have a shape of any size: HDF5 stores no chunk of zeros that nobody wrote."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "t.hdf5"
    with h5py.File(path, "w") as file:
        group = file.create_group("datatargets")
        group["timestamps"] = [5.0 * step for step in range(1000)]
        data = group.create_dataset("readbytes", shape=(1000, 16), chunks=(100, 16), dtype="f8", compression="gzip")
        data[:] = 0.0
        data.attrs["columns"] = [f"snx-OST{ost:04x}".encode() for ost in range(16)]
    assert sources.read(path).tables["lmt"].num_rows == 16_000
    limit(monkeypatch, 100_000)
    with pytest.raises(SourceError, match=r"matrices of more than 100,000 bytes; .*--log-limit"):
        sources.read(path)


def test_the_option_raises_the_limit(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path, "slurm", texts.SACCT)
    limit(monkeypatch, 8)
    words = ["analyze", "connector", "show", str(path), "--time-zone", "UTC"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2 and "more than 8 bytes, unpacked from" in done.stderr, done.output
    done = CliRunner().invoke(main, [words[0], "--log-limit", "1MiB", *words[1:]])
    assert done.exit_code == 0 and "slurm, whole" in done.stdout, done.output


def test_real_logs_are_far_below_the_ratio() -> None:
    found = sorted(shared_data("tokio/samples").glob("*gz"))
    assert found
    for path in found:
        with opener.open_log(path) as log:
            assert len(log.read()) < 50 * path.stat().st_size and not log.wrong
