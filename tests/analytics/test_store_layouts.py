"""Files with uncommon layouts are set aside while a store is filled, and a filter about layouts reads them alone."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.analytics.query.language import ExpressionError
from mpiio_ext.analytics.query.layoutrange import may_meet
from mpiio_ext.analytics.store import layouts
from mpiio_ext.analytics.store.catalog import Catalog
from mpiio_ext.analytics.store.commit import clean, relative, write_files
from mpiio_ext.analytics.store.layouts import Split, with_layouts
from mpiio_ext.analytics.store.manifest import FileEntry, Manifest, read_manifest, write_manifest
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, LAYOUT
from support import analytics_query

MIB = 1 << 20
DEFAULT = (MIB, 1, 0, 1)
CONDITION = "stripe_size != 1MiB or stripe_count != 1 or components > 1"


def rows_of(found: list[tuple[int | None, ...]], first: int = 0) -> pa.Table:
    """Return rows of ``darshan_file`` with these layouts, ten a job."""
    rows = [
        {"job_id": first + k // 10, "log_id": 1, "file_id": k, **dict(zip(LAYOUT, layout, strict=True))}
        for k, layout in enumerate(found)
    ]
    return pa.Table.from_pylist(rows, schema=DARSHAN_FILE.schema())


def store_of(folder: pathlib.Path, tables: list[pa.Table], *, looked: bool = True) -> Catalog:
    """Write a store with a file a table; without `looked` as it was before files were set aside."""
    entries: list[FileEntry] = []
    for number, rows in enumerate(tables):
        model = FileEntry(table="darshan_file", path="", rows=0, bytes=0, low=0, high=0, commits=(1,))
        place = folder / "tables" / "darshan_file" / "all"
        made = write_files(iter([rows]), rows.schema, place, f"{number:06d}", model)
        entries += [relative(entry, folder) for entry in made]
    if not looked:
        entries = [FileEntry(**{**vars(entry), "layouts": None, "uncommon": ""}) for entry in entries]
    write_manifest(folder, Manifest(commit=1, files=tuple(entries)))
    return Catalog(folder)


def ids(tuples: Any) -> list[int]:
    return sorted(row["file_id"] for row in tuples.project("job_id", "file_id"))


MOST = [DEFAULT] * 700 + [(None,) * 4] * 200 + [(4 * MIB, 8, 0, 1)] * 40
FEW = [(MIB, 4, 0, 1), (4 * MIB, 1, 0, 1), (None, 3, 0, None), (MIB, 1, 0, 2), (MIB, 1, 7, 1)]
CONDITIONS = [
    CONDITION,
    "stripe_count > 100",
    "stripe_count = 8",
    "stripe_count in (3, 4)",
    "stripe_count is null",
    "not (stripe_count = 1)",
    "stripe_offset between 1 and 10",
    "components * 2 > 2",
    "stripe_size = 4MiB and job_id < 40",
    "job_id = 3 or stripe_count = 4",
    "stripe_count is not null and stripe_size is null",
    "1 < stripe_count",
]


@pytest.mark.parametrize("engine", analytics_query.ENGINES)
def test_a_filter_finds_the_same_rows(engine: str, tmp_path: pathlib.Path) -> None:
    from mpiio_ext.analytics.query import Tuples, load

    found = analytics_query.engine(engine)
    second = rows_of([DEFAULT] * 300 + [(MIB, 4, 0, 1)] * 2, 100)
    tables = [rows_of(MOST + FEW), second, rows_of([(None,) * 4] * 50, 200)]
    catalog = store_of(tmp_path, tables)
    whole = load(found, catalog, "darshan_file")
    for condition in CONDITIONS if engine == "duckdb" else CONDITIONS[:2]:
        scanned = Tuples(found, whole.expression, "darshan_file").filter(condition)
        expected = ids(scanned)
        assert ids(whole.filter(condition)) == expected, condition
        assert ids(whole.project("job_id", "file_id", *LAYOUT).filter(condition)) == expected, condition
    # What the condition means is that of the columns under their own names.
    renamed = whole.project("job_id", "file_id", stripe_count="stripe_count + 1").filter("stripe_count != 2")
    assert len(renamed) == 40 + 2 + 2
    assert len(whole.filter("stripe_count != 1").filter("stripe_count = 4")) == 3


def test_only_the_files_set_aside_are_read(tmp_path: pathlib.Path) -> None:
    from mpiio_ext.analytics.query import load

    found = analytics_query.engine("duckdb")
    catalog = store_of(tmp_path, [rows_of([DEFAULT] * 900 + FEW), rows_of([DEFAULT] * 50, 100)])
    files = load(found, catalog, "darshan_file")
    reads = files.filter(CONDITION).project("job_id", "file_id").reads()
    assert [pathlib.Path(read.path).parts[-4:-1] for read in reads] == [("tables", "darshan_file-uncommon", "all")]
    assert len(files.filter("stripe_count >= 1").reads()) == 2
    assert files.filter("stripe_count > 1000").rows() == []


LAYOUTS = st.tuples(
    st.sampled_from([MIB, 2 * MIB, None]),
    st.sampled_from([1, 2, 3, 4, None]),
    st.sampled_from([0, 1]),
    st.sampled_from([1, 2]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(LAYOUTS, max_size=60), min_size=1, max_size=6), st.integers(1, 20), st.integers(1, 6))
def test_every_row_is_common_or_set_aside(groups: list[list[Any]], most: int, common: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layouts, "_MOST", most)
        patch.setattr(layouts, "_COMMON", common)
        split, whole = Split(), rows_of([layout for group in groups for layout in group])
        at = 0
        for group in groups:
            split.take(whole.slice(at, len(group)))
            at += len(group)
            assert split._aside is None or split._aside.num_rows <= most
        aside = split.finish(whole.num_rows)
    if aside is None:
        assert whole.num_rows == 0
    elif split.common or aside.num_rows:
        assert len(split.common) <= common and aside.num_rows <= whole.num_rows // 20
        left = [row for row in whole.to_pylist() if tuple(row[name] for name in LAYOUT) not in split.common]
        assert aside.to_pylist() == left
    else:
        assert len({tuple(row[name] for name in LAYOUT) for row in whole.to_pylist()}) > common, "given up"


def test_layouts_that_are_all_different_are_not_set_aside(tmp_path: pathlib.Path) -> None:
    catalog = store_of(tmp_path, [rows_of([(MIB, 1, offset, 1) for offset in range(100)])])
    [entry] = catalog.manifest.files
    assert entry.layouts == () and not entry.uncommon
    assert catalog.files("darshan_file", layouts=lambda _layout: False) == [str(tmp_path / entry.path)]


def test_a_store_of_before_is_completed_once(tmp_path: pathlib.Path) -> None:
    store_of(tmp_path, [rows_of([DEFAULT] * 400 + FEW)], looked=False)
    document = json.loads((tmp_path / "manifest.json").read_text())
    for entry in document["files"]:
        del entry["layouts"], entry["uncommon"]
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    catalog = Catalog(tmp_path)
    clean(tmp_path, catalog.manifest)
    assert not list(tmp_path.rglob("darshan_file-uncommon/**/*.parquet"))
    whole = str(tmp_path / catalog.manifest.files[0].path)
    assert catalog.files("darshan_file", layouts=lambda _layout: False) == [whole]
    found = with_layouts(tmp_path, catalog.manifest)
    write_manifest(tmp_path, found)
    known = read_manifest(tmp_path)
    assert known == found and with_layouts(tmp_path, found) is found
    [entry] = found.files
    assert entry.layouts == (DEFAULT,) and not pathlib.Path(entry.uncommon).is_absolute()
    assert pq.read_table(tmp_path / entry.uncommon).num_rows == len(FEW)
    assert clean(tmp_path, found) == 0, "what the manifest names is no leftover"


NUMBERS = st.sampled_from(["1", "2", "0", "1MiB", "null", "stripe_count", "components", "job_id"])
COMPARISONS = st.builds("{} {} {}".format, NUMBERS, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), NUMBERS)
TESTS = (
    COMPARISONS
    | st.builds("{} in ({}, {})".format, NUMBERS, NUMBERS, NUMBERS)
    | st.builds("{} between {} and {}".format, NUMBERS, NUMBERS, NUMBERS)
    | st.builds("{} is null".format, NUMBERS)
)
TEXTS = st.recursive(
    TESTS,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner)
        | st.builds("not ({})".format, inner)
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, 1, 2]), st.sampled_from([0, 1, MIB]))
def test_what_a_layout_cannot_meet_no_row_meets(text: str, count: Any, components: Any, job: int) -> None:
    """DuckDB says of one row whether it meets the condition."""
    duckdb = pytest.importorskip("duckdb")
    layout = {"stripe_size": MIB, "stripe_count": count, "stripe_offset": 0, "components": components}
    values = ", ".join(
        f"{'NULL' if value is None else value}::BIGINT AS {name}" for name, value in {**layout, "job_id": job}.items()
    )
    sql = text.replace("1MiB", str(MIB)).replace("null", "NULL")
    meets = duckdb.sql(f"SELECT 1 FROM (SELECT {values}) WHERE {sql}").fetchall()
    assert may_meet(text, layout) or not meets


def test_what_is_not_about_layouts_may_be_anything() -> None:
    layout = dict(zip(LAYOUT, DEFAULT, strict=True))
    assert not may_meet(CONDITION, layout)
    for text in ("app like 'vasp%'", "stripe_count + 0 = 2", "bytes_written > 1GB", "true", "abs(stripe_count) = 9"):
        assert may_meet(text, layout)
    assert not may_meet("bytes_written > 1GB and stripe_count > 1", layout)
    with pytest.raises(ExpressionError):
        may_meet("stripe_count >", layout)
