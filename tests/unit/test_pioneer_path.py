"""Phase B of PIONEER: rank fields, differences, subgroups, the generic workload path and its files."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.errors import ArgumentError, FileSystemError
from mpiio_ext.pioneer.path import Template, WorkloadPath, compare, extract, find_groups, find_templates
from mpiio_ext.pioneer.path.extract import slack_of
from mpiio_ext.pioneer.path.names import LOOKED, MADE, OPENED, WRITTEN, templates_by_rank
from mpiio_ext.pioneer.table import SCHEMA
from support.expected import Expected, in_words
from support.pioneer_traces import saved_table

Call = tuple[str, str | None] | tuple[str, str | None, int]
#: Operation, file, number of the session, flags of an open.
Through = tuple[str, str, int] | tuple[str, str, int, int]


def trace_of_handles(rank: int, calls: Sequence[Through]) -> pa.Table:
    """Return the trace table of one rank, with its sessions."""
    table = trace(rank, [(operation, file) for operation, file, *_ in calls])
    extras = [None if len(call) < 4 else f'{{"flags": {call[3]}}}' for call in calls]
    table = table.set_column(table.schema.get_field_index("extra"), "extra", pa.array(extras, pa.string()))
    return table.append_column("session", pa.array([call[2] for call in calls], pa.int64()))


def trace(rank: int, calls: Sequence[Call], *, every_ns: int = 100, takes_ns: int = 30) -> pa.Table:
    """Return the trace table of one rank."""
    return pa.Table.from_pylist(
        [
            {
                "timestamp": 1000 + every_ns * i,
                "operation": call[0],
                "file": call[1],
                "duration": takes_ns,
                "rank": rank,
                "offset": call[2] if len(call) > 2 else None,
                "thread": 0,
                "layer": "posix",
                "line": i + 1,
            }
            for i, call in enumerate(calls)
        ],
        SCHEMA,
    )


# ---- rank fields -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "rank", "name"),
    [
        ("out.{rank}", 7, "out.7"),
        ("out_{rank:06}_0003.dat", 30, "out_000030_0003.dat"),
        ("/p/{rank}/part.{rank+1:03}", 9, "/p/9/part.010"),
        ("{{x}}{rank}", 3, "{x}3"),
        ("plain", 12, "plain"),
        ("n{rank:02}", 123, "n123"),
    ],
)
def test_templates(template: str, rank: int, name: str) -> None:
    assert Template(template).name(rank) == name
    assert Template(template).has_rank == ("{rank" in template)


@pytest.mark.parametrize("text", ["{", "a}b", "{rank", "{Rank}", "{rank-1}"])
def test_what_is_no_template(text: str) -> None:
    with pytest.raises(ValueError, match="no file name with rank fields"):
        Template(text).name(1)


def test_rank_anywhere_in_the_name() -> None:
    """In the middle, several times, from 1 on; a time step that equals the rank by chance is none."""
    names = {
        rank: {f"cm1out_{rank:06}_{step:06}_s.dat" for step in range(5)}
        | {f"/out/{rank}/part.{rank}", f"log.{rank + 1}", "shared.nc", f"step_{rank}_of_all"}
        | {f"step_{other}_of_all" for other in range(4)}
        for rank in range(4)
    }
    names[0].add("root_only_0.cfg")
    found = {name: template.text for name, template in find_templates(names).items()}
    for rank in range(4):
        assert found[f"cm1out_{rank:06}_000002_s.dat"] == "cm1out_{rank:06}_000002_s.dat"
        assert found[f"/out/{rank}/part.{rank}"] == "/out/{rank}/part.{rank}"
        assert found[f"log.{rank + 1}"] == "log.{rank+1}"
        assert found[f"step_{rank}_of_all"] == f"step_{rank}_of_all"
    assert found["shared.nc"] == "shared.nc"
    assert found["root_only_0.cfg"] == "root_only_0.cfg"


def test_two_ranks_are_enough_and_long_numbers_show_no_width() -> None:
    found = find_templates({0: {"a_000.x", "only_0"}, 1234: {"a_1234.x"}})
    assert found["a_000.x"].text == found["a_1234.x"].text == "a_{rank:03}.x"
    assert found["only_0"].text == "only_0"


def test_numbers_of_different_widths_are_no_template() -> None:
    found = find_templates({1: {"a_001"}, 2: {"a_02"}})
    assert {name: template.text for name, template in found.items()} == {"a_001": "a_001", "a_02": "a_02"}


@given(
    st.lists(st.integers(0, 99999), min_size=2, max_size=5, unique=True),
    st.lists(st.tuples(st.text("ab{}/._-", max_size=4), st.integers(0, 12)), max_size=3),
    st.sampled_from(["{rank}", "{rank+1}", "{rank:06}", "{rank+1:03}"]),
)
def test_templates_give_the_names_back(ranks: list[int], parts: list[tuple[str, int]], field: str) -> None:
    """Whatever else stands in the name."""
    fixed = "".join(f"{text}{number}x" for text, number in parts).replace("{", "{{").replace("}", "}}")
    template = Template(f"{fixed}-{field}.dat")
    names = {rank: {template.name(rank)} for rank in ranks}
    found = find_templates(names)
    for rank, (name,) in names.items():
        assert found[name].name(rank) == name
    if len({found[name].text for (name,) in names.values()}) == 1:
        assert next(iter(found.values())).has_rank


@pytest.mark.parametrize(
    ("template", "rank", "ranks", "name"),
    [
        ("p.{rank~1+1:03}", 3, 4, "p.001"),
        ("p.{rank~-1}", 0, 8, "p.7"),
        ("p.{rank=5}", 0, 4, "p.1"),
        ("p.{rank=5}", 2, None, "p.5"),
        ("p.{rank~1}", 3, None, "p.4"),
        ("p.{rank}", 3, 2, "p.3"),
        ("p.{rank=3}", 0, 4, "p.3"),
        ("p.{rank=3}", 0, 5, "p.3"),
        ("p.{rank=3}", 9, 400, "p.3"),
    ],
)
def test_references(template: str, rank: int, ranks: int | None, name: str) -> None:
    assert Template(template).name(rank, ranks) == name
    assert Template(template).refers == ("~" in template or "=" in template)
    assert Template(template).has_rank == ("=" not in template)
    assert Template(template).own.text in ("p.{rank}", "p.{rank+1:03}")


def test_files_that_others_look_at(expected: Expected) -> None:
    """The root looks at all, neighbours read, children read the root's; whose file it is, is who has written it."""
    ranks = range(6)
    names: dict[int, dict[str, int]] = {rank: {f"part.{rank}": WRITTEN, f"ring_{rank + 1:02}": MADE} for rank in ranks}
    for rank in ranks:
        names[0].setdefault(f"part.{rank}", LOOKED)
        names[rank].setdefault(f"ring_{(rank + 1) % 6 + 1:02}", OPENED)
        names[rank].setdefault(f"ring_{(rank - 1) % 6 + 1:02}", OPENED)
        names[rank] |= {"both.0": WRITTEN if rank < 2 else OPENED}
        names[rank].setdefault("own.0", WRITTEN if rank == 0 else OPENED)
        names[rank].setdefault(f"own.{rank}", WRITTEN)
    found = {
        rank: {name: template.text for name, template in own.items()}
        for rank, own in templates_by_rank(names, 6).items()
    }
    expected({f"rank {rank}": dict(sorted(found[rank].items())) for rank in (0, 4)})


# ---- differences -----------------------------------------------------------------------------------------------------


def longest_common(first: Sequence[int], second: Sequence[int]) -> int:
    lengths = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            lengths[i + 1][j + 1] = lengths[i][j] + 1 if one == other else max(lengths[i][j + 1], lengths[i + 1][j])
    return lengths[-1][-1]


sequences = st.lists(st.integers(0, 4), max_size=40)


@given(sequences, sequences, st.sampled_from([0, 1, 2, 2048]))
def test_differences_are_the_fewest(first: list[int], second: list[int], effort: int) -> None:
    a, b = np.array(first, np.int32), np.array(second, np.int32)
    found = compare(a, b, effort=effort)
    assert (a[found.common_first] == b[found.common_second]).all()
    least = len(first) + len(second) - 2 * longest_common(first, second)
    assert found.distance == least if found.minimal else found.distance >= least
    assert found.minimal or effort != 0
    again = compare(a, b, effort=effort)
    assert (again.common_first == found.common_first).all()
    assert (again.common_second == found.common_second).all()


def test_a_comparison_that_is_cut_short_does_not_say_the_fewest() -> None:
    a, b = (np.random.default_rng(seed).integers(0, 4, 100).astype(np.int32) for seed in (1, 2))
    whole, cut = compare(a, b, effort=0), compare(a, b, effort=1)
    assert cut.distance > whole.distance and (whole.minimal, cut.minimal) == (True, False)


def test_large_sequences() -> None:
    """A million operations, one in eleven of the root alone, and a few changes."""
    random = np.random.default_rng(3)
    child = random.integers(0, 200, 1_000_000).astype(np.int32)
    root = np.insert(child, np.arange(0, child.size, 10), random.integers(200, 300, 100_000))
    found = compare(root.astype(np.int32), child)
    assert (found.distance, found.minimal) == (100_000, True)
    changed = np.delete(child, np.arange(0, child.size, 1000))
    found = compare(root.astype(np.int32), changed)
    assert (found.distance, found.minimal) == (101_000, True)


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="numbers from 0 on"):
        compare(np.array([-1], np.int32), np.array([1], np.int32))


# ---- subgroups -------------------------------------------------------------------------------------------------------


def test_subgroups() -> None:
    """By what they do and by the distances at which they repeat it; a slip of a few operations makes no group."""
    random = np.random.default_rng(5)
    writers = np.tile(np.array([0, 1, 1, 1, 1, 2], np.int32), 700)
    readers = np.tile(np.array([0, 3, 3, 3, 3, 2], np.int32), 700)
    bursts = np.repeat(np.array([0, 1, 2], np.int32), [700, 2800, 700])
    operations = {0: np.concatenate([writers, readers])}
    operations |= {rank: writers[: 4000 + rank] for rank in (1, 3, 5)}
    operations |= dict.fromkeys((2, 6), readers)
    operations |= {4: bursts[random.permutation(bursts.size)]}
    assert find_groups(operations) == ((0,), (1, 3, 5), (2, 6), (4,))
    assert find_groups({0: writers}) == ((0,),)
    assert find_groups({}) == ((0,),)


# ---- the path --------------------------------------------------------------------------------------------------------


def paths_of(path: WorkloadPath) -> list[tuple[str, str | None, int]]:
    rows = path.table.to_pylist()
    assert [row["id"] for row in rows] == list(range(len(rows)))
    return [(row["operation"], row["file"], row["groups"]) for row in rows]


def test_path_of_root_and_child(expected: Expected) -> None:
    """What the root does alone stays in its place, what the child does alone comes behind what precedes it."""
    root = trace(
        0,
        [
            ("open", "cfg"),
            ("read", "cfg"),
            ("close", "cfg"),
            ("open", "d.0"),
            ("write", "d.0", 0),
            ("stat", "all"),
            ("close", "d.0"),
            ("unlink", "cfg"),
        ],
    )
    child = trace(3, [("open", "d.3"), ("write", "d.3", 4096), ("access", "mine"), ("stat", "all"), ("close", "d.3")])
    path = extract({0: root, 3: child}, ((0,), (3,)), ranks=4)
    expected([in_words(row) for row in path.table.to_pylist()])
    assert path.info.representatives == (0, 3)


def test_the_root_looks_at_all_files(expected: Expected) -> None:
    """Each rank's own file stays one file of the path; a rename of all names both."""
    write = [("open", "part.{}"), ("write", "part.{}", 0), ("close", "part.{}")]
    tables = {}
    for rank in range(4):
        calls: list[Call] = [(call[0], call[1].format(rank), *call[2:]) for call in write]  # type: ignore[misc]
        tables[rank] = trace(rank, [*calls, *([("stat", f"part.{other}") for other in range(4)] if rank == 0 else [])])
    renamed = [f'{{"file2":"final.{other}"}}' for other in range(4)]
    extras = pa.array([*[None] * 3, *renamed], pa.string())
    tables[0] = tables[0].set_column(tables[0].schema.get_field_index("extra"), "extra", extras)
    path = extract(tables, ((0,), (1, 2, 3)), ranks=4)
    expected([in_words(row) for row in path.table.to_pylist()])


def test_path_of_several_subgroups() -> None:
    root = trace(0, [("open", "a"), ("write", "a"), ("close", "a")])
    readers = trace(1, [("open", "a"), ("read", "a"), ("close", "a")])
    writers = trace(2, [("open", "a"), ("write", "a"), ("fsync", "a"), ("close", "a")])
    path = extract({0: root, 1: readers, 2: writers}, ((0,), (1,), (2,)))
    open_, write, read, fsync, close = (
        ("open", "a", 7),
        ("write", "a", 5),
        ("read", "a", 2),
        ("fsync", "a", 4),
        ("close", "a", 7),
    )
    assert paths_of(path) in ([open_, write, read, fsync, close], [open_, read, write, fsync, close])


def test_handles_of_one_file() -> None:
    """The root has opened its reading handle first, the child its writing one, and no others correspond."""
    root = trace_of_handles(
        0,
        [
            ("open", "a", 5, 0),
            ("open", "a", 6, 1),
            ("write", "a", 6),
            ("read", "a", 5),
            ("fsync", "a", 6),
            ("close", "a", 5),
            ("close", "a", 6),
        ],
    )
    child = trace_of_handles(1, [("open", "a", 0, 1), ("write", "a", 0), ("fsync", "a", 0), ("close", "a", 0)])
    rows = extract({0: root, 1: child}, ((0,), (1,))).table.to_pylist()
    assert [(row["operation"], row["session"], row["groups"]) for row in rows] == [
        ("open", 0, 1),
        ("open", 1, 3),
        ("write", 1, 3),
        ("read", 0, 1),
        ("fsync", 1, 3),
        ("close", 0, 1),
        ("close", 1, 3),
    ]


def test_what_corresponds_is_in_one_session() -> None:
    """The root closes and opens again in between: its second session is its own, up to the close."""
    root = trace_of_handles(
        0,
        [
            ("open", "a", 0),
            ("write", "a", 0),
            ("close", "a", 0),
            ("open", "a", 1),
            ("fsync", "a", 1),
            ("close", "a", 1),
        ],
    )
    child = trace_of_handles(1, [("open", "a", 0), ("write", "a", 0), ("fsync", "a", 0), ("close", "a", 0)])
    path = extract({0: root, 1: child}, ((0,), (1,)))
    rows = path.table.to_pylist()
    for group, own in ((0, root), (1, child)):
        made = [row for row in rows if row["groups"] >> group & 1]
        assert [row["operation"] for row in made] == own["operation"].to_pylist()
        pairs = set(zip([row["session"] for row in made], own["session"].to_pylist(), strict=True))
        assert len({one for one, _ in pairs}) == len({other for _, other in pairs}) == len(pairs)
    assert not path.info.minimal  # as few differences as there are would tear the child's session


def test_each_group_opens_by_its_own_call() -> None:
    root = trace_of_handles(0, [("creat", "a", 0), *[("write", "a", 0)] * 3, ("close", "a", 0)])
    child = trace_of_handles(1, [("open", "a", 4), *[("write", "a", 4)] * 3, ("close", "a", 4)])
    rows = extract({0: root, 1: child}, ((0,), (1,))).table.to_pylist()
    assert [(row["operation"], row["session"], row["groups"]) for row in rows] == [
        ("open", 0, 2),
        ("creat", 0, 1),
        *[("write", 0, 3)] * 3,
        ("close", 0, 3),
    ]


def test_slack_is_what_lies_between() -> None:
    table = trace(0, [("a", None), ("b", None), ("c", None)], every_ns=100, takes_ns=150)
    assert slack_of(table).tolist() == [0, 0, 0]
    assert slack_of(trace(0, [("a", None), ("b", None)], every_ns=100, takes_ns=40)).tolist() == [0, 60]


def later(table: pa.Table, ns: int) -> pa.Table:
    """Return a trace whose clock is so much ahead."""
    column = table.schema.get_field_index("timestamp")
    return table.set_column(column, "timestamp", pc.add(table["timestamp"], ns).cast(table.schema.field(column).type))


def test_groups_begin_when_their_representatives_do() -> None:
    """After the first operation of any rank, whether or not that rank is a representative."""
    calls = [("open", "a"), ("write", "a"), ("close", "a")]
    tables = {0: later(trace(0, calls), 10), 1: later(trace(1, calls), 35), 2: trace(2, calls)}
    assert extract(tables, ((0,), (1, 2))).info.starts == (10, 35)
    found = extract({rank: tables[rank] for rank in (0, 1)}, ((0,), (1,)))
    assert found.info.starts == (0, 25)
    assert [found.table[f"slack_{group}"].to_pylist()[0] for group in (0, 1)] == [0, 0]


def test_clocks_that_cannot_be_compared_tell_no_beginnings() -> None:
    calls = [("open", "a"), ("close", "a")]
    found = extract({0: trace(0, calls), 1: later(trace(1, calls), 10**12)}, ((0,), (1,)))
    assert found.info.starts == ()
    assert found.info.start(1) == 0


@pytest.mark.parametrize("name", ["run.json", "run.parquet"])
def test_beginnings_are_kept_in_files(tmp_path: pathlib.Path, name: str) -> None:
    calls = [("open", "a"), ("close", "a")]
    path = extract({0: trace(0, calls), 1: later(trace(1, calls), 7)}, ((0,), (1,)))
    path.save(tmp_path / name)
    assert WorkloadPath.load(tmp_path / name).info == path.info


def test_a_group_without_a_trace() -> None:
    with pytest.raises(ValueError, match="not each has a rank that was traced"):
        extract({0: trace(0, [("open", "a")])}, ((0,), (1, 2)))


operations = st.sampled_from(["open", "read", "write", "close"])
calls = st.lists(st.tuples(operations, st.sampled_from(["a", "p.{}", None])), max_size=30)


@given(calls, calls, calls)
def test_leaving_out_gives_each_trace_back(root: list[Call], one: list[Call], two: list[Call]) -> None:
    """Of every group, in order, with its own numbers."""

    def filled(rank: int, several: list[Call]) -> list[Call]:
        return [
            (operation, None if file is None else str(file).format(rank), i)
            for i, (operation, file, *_) in enumerate(several)
        ]

    given_calls = {0: filled(0, root), 1: filled(1, one), 2: filled(2, two)}
    path = extract({rank: trace(rank, list(several)) for rank, several in given_calls.items()}, ((0,), (1,), (2,)))
    rows = path.table.to_pylist()
    for group, several in given_calls.items():
        own = [row for row in rows if row["groups"] >> group & 1]
        names = [None if row["file"] is None else Template(row["file"]).name(group) for row in own]
        seen = [(row["operation"], name, row[f"offset_{group}"]) for row, name in zip(own, names, strict=True)]
        assert seen == several
        assert all(row[f"offset_{group}"] is None for row in rows if not row["groups"] >> group & 1)


def test_patterns_that_match_nothing(tmp_path: pathlib.Path) -> None:
    """An error that names what there is; one that matches something is none."""
    table, path = saved_table(tmp_path), tmp_path / "path.parquet"
    words = ["path", str(table), "-o", str(path), "--only"]
    found = CliRunner().invoke(main, ["pioneer", *words, "TYPO"])
    assert found.exit_code == 2
    assert "leave no operation on a file; the trace has /scratch/log, /scratch/own.000" in found.output
    assert not path.exists()
    assert CliRunner().invoke(main, ["pioneer", *words, "*/log"]).exit_code == 0
    assert WorkloadPath.load(path).table.num_rows == 22
    assert CliRunner().invoke(main, ["pioneer", *words, "log"]).exit_code == 0  # in any folder, as of the tracer
    assert WorkloadPath.load(path).table.num_rows == 22


def test_files(tmp_path: pathlib.Path) -> None:
    path = extract({0: trace(0, [("open", "a.0")]), 1: trace(1, [("open", "a.1")])}, ((0,), (1,)), ranks=2)
    path.save(tmp_path / "path.parquet")
    again = WorkloadPath.load(tmp_path / "path.parquet")
    assert again.info == path.info
    assert again.table.equals(path.table)
    assert [item.name for item in tmp_path.iterdir()] == ["path.parquet"]
    pa.parquet.write_table(pa.table({"id": [1]}), tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="no workload path"):
        WorkloadPath.load(tmp_path / "other.parquet")
    about = {b"pioneer-path": json.dumps(path.info.to_json())}
    older = path.table.drop_columns("session")
    pa.parquet.write_table(older.replace_schema_metadata(about), tmp_path / "older.parquet")
    with pytest.raises(ValueError, match=r"older\.parquet is no workload path: .*session"):
        WorkloadPath.load(tmp_path / "older.parquet")
    with pytest.raises(FileSystemError, match="nothing: cannot be read: No such file"):
        WorkloadPath.load(str(tmp_path / "nothing"))
    with pytest.raises(FileSystemError, match="a folder, not a workload path"):
        WorkloadPath.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere/a cannot be written: there is no folder"):
        again.save(tmp_path / "nowhere" / "a")
