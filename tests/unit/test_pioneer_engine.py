"""Phase E of PIONEER without MPI: places of files, groups of ranks, plans."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
from typing import Any

import numpy as np
import pytest

from mpiio_ext.pioneer.engine.beside import PRIVATE, mapping_flags
from mpiio_ext.pioneer.engine.coverage import LEFT_OUT, OPERATIONS, STAND_INS, engine_name
from mpiio_ext.pioneer.engine.expected import expected_path
from mpiio_ext.pioneer.engine.flags import TRACED, open_flags
from mpiio_ext.pioneer.engine.opens import with_opens
from mpiio_ext.pioneer.engine.places import PlaceError, Places
from mpiio_ext.pioneer.engine.plan import make_plan
from mpiio_ext.pioneer.engine.run import are_free, needed_files, waits
from mpiio_ext.pioneer.operations import operation_of
from mpiio_ext.pioneer.path.groups_of_ranks import group_of_rank
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from support.scripts import load
from support.small_paths import grouped

Row = dict[str, Any]


# ---- mappings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extra", "flags"),
    [
        ({}, 1),
        ({"protection": 3, "flags": 1}, 3),
        ({"protection": 3, "flags": 2}, 3 | PRIVATE),
        ({"protection": "PROT_READ", "flags": "MAP_PRIVATE"}, 1 | PRIVATE),
        ({"protection": "PROT_READ|PROT_WRITE", "flags": "MAP_SHARED"}, 3),
        ({"protection": "0x3", "flags": "01"}, 3),
        ({"protection": "PROT_NONE", "flags": "MAP_SHARED_VALIDATE|MAP_SYNC"}, 0),
        ({"protection": 1, "flags": 3}, 1),
    ],
)
def test_protections_as_tracers_print_them(extra: dict[str, Any], flags: int) -> None:
    assert mapping_flags(extra) == flags


# ---- handles ---------------------------------------------------------------------------------------------------------


def test_each_session_has_a_handle(tmp_path: pathlib.Path) -> None:
    """Of one file; a duplicate's close is left out, and the last one closes."""
    rows = [
        {"operation": name, "file": "a", "owner": "root", "session": session}
        for name, session in (
            ("open", 0),
            ("open", 1),
            ("write", 0),
            ("read", 1),
            ("dup", 0),
            ("close", 0),
            ("write", 0),
            ("close", 1),
            ("close", 0),
        )
    ]
    plan = make_plan(grouped(rows), 0, 1, Places(tmp_path))
    assert plan.ids.tolist() == [0, 1, 2, 3, 6, 7, 8]
    assert plan.slot.tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert dict(plan.unknown) == {"dup": 1, "close": 1}


def test_the_handle_of_a_duplicate_that_nobody_closes(tmp_path: pathlib.Path) -> None:
    """As `os.scandir` of a descriptor: the C library closes the duplicate inside closedir, and no tracer sees that."""
    rows = [{"operation": name, "file": "a", "owner": "root", "session": 0} for name in ("open", "dup", "close")]
    plan = make_plan(grouped([*rows, {"operation": "rmdir", "file": "a", "owner": "root"}]), 0, 1, Places(tmp_path))
    assert plan.ids.tolist() == [0, 2, 3]
    assert dict(plan.unknown) == {"dup": 1}


def test_a_rank_begins_when_its_group_does(tmp_path: pathlib.Path) -> None:
    """Beside the slack time of its first call, which is the path's."""
    path = grouped([{"operation": "stat", "file": "a", "owner": "shared", "g1": (None, None, 5)}] * 2)
    path = dataclasses.replace(path, info=dataclasses.replace(path.info, starts=(0, 70)))
    plans = [make_plan(path, rank, 4, Places(tmp_path)) for rank in (0, 1)]
    assert [plan.start_ns for plan in plans] == [0, 70]
    assert [plan.slack.tolist() for plan in plans] == [[0, 0], [5, 5]]
    assert [waits(plan).tolist() for plan in plans] == [[0, 0], [75, 5]]


# ---- places ----------------------------------------------------------------------------------------------------------


def test_places_are_below_the_folder(tmp_path: pathlib.Path) -> None:
    places = Places(tmp_path)
    assert places.of("/scratch/u/out.nc") == tmp_path / "scratch/u/out.nc"
    assert places.of("run/./out.nc") == tmp_path / "run/out.nc"
    assert places.of("/opt/lib/../etc/x.conf") == tmp_path / "opt/etc/x.conf"
    assert places.of("//x") == tmp_path / "x"


@pytest.mark.parametrize("name", ["", "/", "../x", "a/../../x", "a/..", "x\0y", "out/file", "link"])
def test_names_that_lead_out(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "out").symlink_to(tmp_path)
    (tmp_path / "inside" / "link").symlink_to("/etc/passwd")
    with pytest.raises(PlaceError):
        Places(tmp_path / "inside").of(name)


# ---- ranks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "members", "expected"),
    [
        (4, ((0,),), [0, 0, 0, 0]),
        (4, ((0,), (1, 2, 3)), [0, 1, 1, 1]),
        (1, ((0,), (1, 2, 3)), [0]),
        (7, ((0,), (1, 2), (3,)), [0, 1, 1, 1, 1, 2, 2]),
        (4, ((0,), (1,), (2,), (3,)), [0, 1, 2, 3]),
        (4, ((0,), (1, 3), (2,)), [0, 1, 2, 1]),
        (8, ((0,), (1, 3), (2,)), [0, 1, 2, 1, 2, 1, 2, 1]),
        (8, ((0,), (1,), (2, 3)), [0, 1, 2, 2, 1, 1, 2, 2]),
        (6, ((0,), (1, 2)), [0, 1, 1, 1, 1, 1]),
        (4, ((0,), (3, 1), (9,)), [0, 1, 1, 2]),
        (3, ((0,), (1,), (2,)), [0, 1, 2]),
    ],
)
def test_groups_are_scaled(ranks: int, members: tuple[tuple[int, ...], ...], expected: list[int]) -> None:
    assert [group_of_rank(rank, ranks, members) for rank in range(ranks)] == expected


# ---- flags -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "name", "extra", "reads", "writes", "flags"),
    [
        ("posix", "open", {"flags": os.O_RDWR | os.O_CREAT | os.O_EXCL}, True, True, os.O_RDWR | os.O_CREAT),
        ("posix", "open", {"flags": "O_WRONLY|O_CREAT|O_EXCL"}, False, True, os.O_WRONLY | os.O_CREAT),
        ("posix", "open", {"flags": "{flags=O_RDWR|O_CREAT, resolve=0}"}, True, True, os.O_RDWR | os.O_CREAT),
        ("posix", "open", {}, True, False, os.O_RDONLY),
        ("posix", "open", {}, True, True, os.O_RDWR | os.O_CREAT),
        ("posix", "creat", {}, False, True, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ("stdio", "fopen", {"mode": "r+"}, True, True, 3),
        ("stdio", "fopen", {"mode": "wb"}, False, True, 6),
        ("stdio", "fopen", {"flags": os.O_WRONLY | os.O_CREAT | os.O_APPEND}, False, True, 10),
        ("stdio", "fopen", {"flags": os.O_WRONLY | os.O_CREAT | os.O_TRUNC}, False, False, 6),
        ("stdio", "fopen", {"flags": os.O_RDWR}, False, True, 3),
        ("stdio", "fopen", {"flags": 0}, True, False, 1),
        ("stdio", "fopen", {"flags": os.O_RDWR | os.O_CREAT | os.O_APPEND}, True, True, 11),
        ("stdio", "fdopen", {"flags": os.O_WRONLY | os.O_CREAT | os.O_TRUNC}, False, True, 2),
        ("stdio", "fopen", {}, True, False, 1),
        ("stdio", "fopen", {"mode": "a"}, False, True, 8),
        ("mpiio", "MPI_File_open", {"amode": 73}, True, True, 9),
        ("mpiio", "MPI_File_open", {"amode": "MPI_MODE_WRONLY|MPI_MODE_CREATE"}, False, True, 5),
        ("mpiio", "MPI_File_open", {}, True, False, 2),
    ],
)
def test_flags_of_opens(layer: str, name: str, extra: Row, reads: bool, writes: bool, flags: int) -> None:
    assert open_flags(operation_of(layer, name), extra, reads=reads, writes=writes) == flags


def test_flags_of_another_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces have x86-64's numbers, opens those of the machine: Arm has the same four bits in another order."""
    arm = {"O_DIRECT": 1 << 16, "O_LARGEFILE": 1 << 17, "O_DIRECTORY": 1 << 14, "O_NOFOLLOW": 1 << 15}
    for name, bit in arm.items():
        monkeypatch.setattr(os, name, bit)
    for name, bit in arm.items():
        extra = {"flags": TRACED[name] | os.O_RDWR | os.O_CLOEXEC}
        found = open_flags(operation_of("posix", "open"), extra, reads=True, writes=True)
        assert found == bit | os.O_RDWR | os.O_CLOEXEC, name


# ---- plans -----------------------------------------------------------------------------------------------------------


def rows_of_plan(path: WorkloadPath, rank: int, ranks: int, folder: pathlib.Path) -> list[tuple[Any, ...]]:
    plan = make_plan(path, rank, ranks, Places(folder))
    names = [None if file < 0 else str(pathlib.Path(plan.paths[file]).relative_to(folder)) for file in plan.file]
    return list(
        zip(
            plan.ids.tolist(),
            names,
            plan.slot.tolist(),
            plan.offset.tolist(),
            plan.size.tolist(),
            plan.slack.tolist(),
            strict=True,
        )
    )


def test_each_rank_has_its_names_and_offsets(tmp_path: pathlib.Path) -> None:
    path = grouped(
        [
            {"operation": "open", "file": "cfg", "owner": "root", "groups": 1, "g0": (None, None, 5)},
            {
                "operation": "open",
                "file": "p.{rank:03}",
                "owner": "private",
                "g0": (None, None, 7),
                "g1": (None, None, 9),
            },
            {"operation": "strange", "file": "all", "owner": "shared", "g0": (None, None, 2), "g1": (None, None, 3)},
            {"operation": "open", "file": "all", "owner": "shared", "g0": (None, None, 1), "g1": (None, None, 1)},
            {"operation": "pwrite", "file": "all", "owner": "shared", "g0": (1000, 10, 4), "g1": (1010, 20, 4)},
            {"operation": "pwrite", "file": "p.{rank:03}", "owner": "private", "g0": (0, 8, 4), "g1": (64, 8, 4)},
            {"operation": "close", "file": "all", "owner": "shared"},
            {"operation": "close", "file": "cfg", "owner": "root", "groups": 1},
            {"operation": "open", "file": "all", "owner": "shared"},
        ]
    )
    assert rows_of_plan(path, 0, 2, tmp_path) == [
        (0, "cfg", 0, -1, 0, 5),
        (1, "p.000", 1, -1, 0, 7),
        (3, "all", 2, -1, 0, 3),
        (4, "all", 2, 1000, 10, 4),
        (5, "p.000", 1, 0, 8, 4),
        (6, "all", 2, -1, 0, 0),
        (7, "cfg", 0, -1, 0, 0),
        (8, "all", 0, -1, 0, 0),
    ]
    assert rows_of_plan(path, 5, 8, tmp_path) == [
        (1, "p.005", 0, -1, 0, 9),
        (3, "all", 1, -1, 0, 4),
        (4, "all", 1, 1050, 20, 4),
        (5, "p.005", 0, 64, 8, 4),
        (6, "all", 1, -1, 0, 0),
        (8, "all", 1, -1, 0, 0),
    ]
    plan = make_plan(path, 5, 8, Places(tmp_path))
    assert plan.unknown == {"strange": 1}
    assert set(plan.communicator.tolist()) == {-1}  # none of them is an open of MPI-IO
    assert plan.communicators == []
    assert plan.bytes_written == 28


def test_offsets_that_are_no_multiple_stay(tmp_path: pathlib.Path) -> None:
    path = grouped(
        [
            {"operation": "open", "file": "all", "owner": "shared"},
            {"operation": "pwrite", "file": "all", "owner": "shared", "g0": (0, 4, 0), "g1": (5, 4, 0)},
        ],
        members=((0,), (2, 3)),
    )
    assert [row[3] for row in rows_of_plan(path, 3, 4, tmp_path)] == [-1, 5]


def test_operations_without_an_open_are_left_out(tmp_path: pathlib.Path) -> None:
    """Where no data is moved: what is known of the file is not enough to open it for."""
    path = grouped(
        [
            {"operation": "fstat", "file": "a", "owner": "shared", "g0": (0, 4, 6)},
            {"operation": "stat", "file": "a", "owner": "shared", "g0": (None, None, 1)},
        ]
    )
    plan = make_plan(path, 0, 1, Places(tmp_path))
    assert (plan.unknown, plan.slack.tolist()) == ({"fstat": 1}, [7])
    assert plan.reasons == {"fstat": "its file is not opened in the path"}


def test_opens_that_the_trace_lacks(tmp_path: pathlib.Path) -> None:
    """Sessions that move data get one, of those who use it, and a close; accesses are made at their offsets."""
    path = grouped(
        [
            {"operation": "write", "file": "a", "owner": "shared", "g0": (8, 4, 6), "g1": (16, 4, 6)},
            {"operation": "read", "file": "b", "owner": "root", "groups": 1, "g0": (3, 4, 5)},
            {"operation": "MPI_File_write_all", "layer": "mpiio", "file": "c", "owner": "shared"},
            {"operation": "write", "file": "a", "owner": "shared", "g0": (None, 4, 0), "g1": (30, 4, 6)},
            {"operation": "close", "file": "a", "owner": "shared"},
        ]
    )
    whole = with_opens(path)
    assert [(row["operation"], row["file"], row["groups"]) for row in whole.table.to_pylist()] == [
        ("open", "a", 3),
        ("write", "a", 3),
        ("open", "b", 1),
        ("read", "b", 1),
        ("close", "b", 1),
        ("MPI_File_open", "c", 3),
        ("MPI_File_write_all", "c", 3),
        ("MPI_File_close", "c", 3),
        ("write", "a", 3),
        ("close", "a", 3),
    ]
    assert whole.table["id"].to_pylist() == list(range(10))
    assert with_opens(whole) is whole
    plan = make_plan(path, 0, 4, Places(tmp_path))
    assert not plan.unknown
    assert [engine_name(number) for number in plan.operation] == [
        "open",
        "pwrite",
        "open",
        "pread",
        "close",
        "MPI_File_open",
        "MPI_File_write_all",
        "MPI_File_close",
        "write",
        "close",
    ]
    assert (plan.offset[1], plan.offset[3], plan.slack.sum()) == (8, 3, 11)
    assert plan.flags[0] & os.O_CREAT
    assert plan.flags[0] & os.O_ACCMODE == os.O_WRONLY


def test_input_that_was_open_before_the_trace_is_as_long_as_it_was(tmp_path: pathlib.Path) -> None:
    """Its offsets are not known; reads ask for blocks, the last of which are short."""
    path = grouped(
        [
            {"operation": "read", "file": "a", "owner": "root", "groups": 1, "g0": (None, 4096, 0), **more}
            for more in ({}, {"extra": {"moved": 100}}, {"extra": {"moved": 0}})
        ]
    )
    assert needed_files(make_plan(path, 0, 4, Places(tmp_path))) == {str(tmp_path / "a"): 4196}


def test_a_path_that_leads_out(tmp_path: pathlib.Path) -> None:
    path = grouped([{"operation": "stat", "file": "../a", "owner": "shared"}])
    with pytest.raises(PlaceError, match=r"'\.\./a' has no place below"):
        make_plan(path, 0, 1, Places(tmp_path))


# ---- coverage --------------------------------------------------------------------------------------------------------


def test_all_that_the_tracer_records() -> None:
    """Is issued, or declared to be left out; nothing is both, and no stand-in is missing."""
    text = load("csrc/tools/trace/generate.py").outputs()["mpiox_trace_operation_names.h"]
    names = set(re.findall(r"^ +X\((\w+)\)", text, re.MULTILINE))
    assert {"open", "fopen", "MPI_File_open", "MPI_Testsome", "readdir", "vfprintf"} <= names
    plain = {name.removesuffix("_c") for name in names}
    issued = {name for name in plain if OPERATIONS.get(name) is not None}
    assert plain - issued - set(LEFT_OUT) == set()
    assert issued & set(LEFT_OUT) == set()
    assert [name for name in STAND_INS if OPERATIONS.get(name) is None] == []


# ---- requests, views, second names -----------------------------------------------------------------------------------


def mpiio(operation: str, **values: Any) -> Row:
    return {"operation": f"MPI_File_{operation}", "file": "all", "owner": "shared", "layer": "mpiio", **values}


def wait(**values: Any) -> Row:
    return {"operation": "MPI_Waitall", "file": "all", "owner": "shared", "layer": "mpi", **values}


def test_each_wait_has_its_request(tmp_path: pathlib.Path) -> None:
    """Three at a time need three places, which later ones use again; one that is complete at once has no wait."""
    data = {"g0": (0, 4, 0), "g1": (0, 4, 0)}
    starts = [mpiio("iwrite_at", extra={"request": number}, **data) for number in (1, 2, 3)]
    path = grouped(
        [
            mpiio("open"),
            *starts,
            wait(extra={"request": 2}),
            mpiio("iwrite_at", extra={"request": 4}, **data),
            wait(extra={"request": 3}),
            wait(extra={"request": 1}),
            mpiio("iread_at", extra={"complete": 1}, **data),
            wait(extra={"request": 9}),
            wait(),
            mpiio("close"),
        ]
    )
    plan = make_plan(path, 0, 1, Places(tmp_path))
    assert plan.request.tolist() == [-1, 0, 1, 2, 1, 1, 2, 0, 0, -1, -1]
    assert (plan.requests, plan.unknown) == (3, {"MPI_Waitall": 1})


def test_views_move_with_the_rank(tmp_path: pathlib.Path) -> None:
    """By the distance of their first bytes; what is read beyond the end of a file is known through them."""
    views = [{"displacement": 64, "filetype": "V(4;1;40;10)"}, {"displacement": 84, "filetype": "V(4;1;40;10)"}]
    path = grouped(
        [
            mpiio("open"),
            mpiio("set_view", extra={**views[0], "groups": views}),
            mpiio("read_at", g0=(30, 20, 0), g1=(30, 20, 0)),
            mpiio("write_at", g0=(0, 1, 0), g1=(0, 1, 0)),
            mpiio("close"),
        ],
        members=((0,), (2, 3)),
    )
    plans = [make_plan(path, rank, 4, Places(tmp_path)) for rank in (0, 2, 3)]
    assert [plan.offset.tolist()[1] for plan in plans] == [64, 84, 94]
    assert [plan.place.tolist()[3] for plan in plans] == [64, 84, 94]
    assert [plan.end.tolist()[2] for plan in plans] == [64 + 260, 84 + 260, 94 + 260]
    assert plans[0].views == ["V(4;1;40;10)"]


def bt_view(rank: int) -> Row:
    """Return the view of one of 4 ranks of NAS BT: tiles `rank` and 7 - `rank` of 2 x 2 x 2, of 3 x 3 x 3 elements."""
    first, second = ((3 * (t // 4), 3 * (t // 2 % 2), 3 * (t % 2)) for t in (rank, 7 - rank))
    parts = [f"A(6,6,6;3,3,3;{','.join(map(str, starts))};0;8)" for starts in (first, second)]
    return {"displacement": 40, "filetype": f"S(1,1;0,0;{';'.join(parts)})"}


@pytest.mark.parametrize(
    "members", [((0,), (1,), (2, 3)), ((0,), (1, 2, 3)), ((0,), (1,), (2,), (3,)), ((0,), (3, 1, 2))]
)
@pytest.mark.parametrize("ranks", [4, 16, 18])
def test_ranks_beyond_the_traced_ones_have_copies_of_the_file(
    tmp_path: pathlib.Path, ranks: int, members: tuple[tuple[int, ...], ...]
) -> None:
    """Views that MPI takes, no byte in two of them, and each copy whole: of 4 ranks that make two steps."""
    views = [bt_view(group[0]) for group in members]
    steps = [mpiio("write_at_all", **{f"g{group}": (at, 432, 0) for group in range(len(members))}) for at in (0, 432)]
    path = grouped(
        [mpiio("open"), mpiio("set_view", extra={**views[0], "groups": views}), *steps, mpiio("close")], members
    )
    written = []
    for rank in range(ranks):
        plan = make_plan(path, rank, ranks, Places(tmp_path))
        (view,) = plan.in_force
        offsets, lengths = view.pieces(0, 864)
        assert (offsets[1:] >= (offsets + lengths)[:-1]).all(), view.text
        assert plan.offset.tolist()[1] == 40 + rank // 4 * 2**20
        written.append(offsets)
    every = np.sort(np.concatenate(written))
    assert len(set(every.tolist())) == every.size == ranks * 108
    for copy in range(ranks // 4):
        begin = 40 + copy * 2**20
        assert every[copy * 432 : (copy + 1) * 432].tolist() == list(range(begin, begin + 2 * 1728, 8))


def test_views_with_gaps_have_copies_and_plain_ones_move(tmp_path: pathlib.Path) -> None:
    """Blocks dealt to 2 ranks would overlap on 4; what lies behind one another goes on so; files of a rank stay."""
    strided = [{"displacement": at, "filetype": "V(4;1;20;10)"} for at in (0, 10)]
    plain = [{"displacement": at, "filetype": "10"} for at in (0, 10)]
    own = {"owner": "private", "file": "p.{rank}"}
    for views, values, expected in (
        (strided, {}, [0, 10, 2**20, 2**20 + 10]),
        (plain, {}, [0, 10, 20, 30]),
        (strided, own, [0, 10, 0, 10]),
    ):
        size = 10 if views is plain else 40
        data = {"g0": (0, size, 0), "g1": (0, size, 0)}
        rows = [mpiio("open"), mpiio("set_view", extra={**views[0], "groups": views}), mpiio("write_at", **data)]
        path = grouped([{**row, **values} for row in (*rows, mpiio("close"))], members=((0,), (1,)))
        plans = [make_plan(path, rank, 4, Places(tmp_path)) for rank in range(4)]
        assert [plan.offset.tolist()[1] for plan in plans] == expected


def test_a_view_that_is_not_told_is_left_out_by_all(tmp_path: pathlib.Path) -> None:
    """Also by ranks whose own view is known: the call is a collective."""
    views = [{"displacement": 0, "filetype": "8"}, {"displacement": 8, "filetype_size": 4, "filetype_extent": 8}]
    path = grouped([mpiio("open"), mpiio("set_view", extra={**views[0], "groups": views}), mpiio("close")])
    for rank in (0, 1):
        plan = make_plan(path, rank, 2, Places(tmp_path))
        assert plan.unknown == {"MPI_File_set_view": 1}
        assert "does not have the file type" in plan.reasons["MPI_File_set_view"]


def test_seeks_and_second_names(tmp_path: pathlib.Path) -> None:
    """A seek goes where it has led to; where that is not known, as the program has said; names have their rank."""
    end = {"extra": {"whence": "SEEK_END"}, "owner": "private", "file": "p.{rank}"}
    path = grouped(
        [
            {"operation": "open", "owner": "private", "file": "p.{rank}"},
            {"operation": "lseek", **end, "g0": (70, 0, 0)},
            {"operation": "lseek", **end},
            {"operation": "close", "owner": "private", "file": "p.{rank}"},
            {"operation": "rename", "owner": "private", "file": "p.{rank}", "extra": {"file2": "q.{rank}"}},
        ]
    )
    plan = make_plan(path, 0, 1, Places(tmp_path))
    assert (plan.offset.tolist()[1:3], plan.flags.tolist()[1:3]) == ([70, 0], [0, 2])
    assert [pathlib.Path(plan.paths[at]).name for at in plan.second if at >= 0] == ["q.0"]


def test_a_folder_that_is_read_through_a_descriptor(tmp_path: pathlib.Path) -> None:
    """As `os.scandir` of a descriptor has it under ltrace: left out and said so; what `opendir` has opened is read."""
    path = grouped(
        [
            {"operation": "open", "file": "d", "owner": "shared"},
            {"operation": "dup", "file": "d", "owner": "shared"},
            {"operation": "getdents", "file": "d", "owner": "shared"},
            {"operation": "close", "file": "d", "owner": "shared"},
            {"operation": "opendir", "file": "e", "owner": "shared"},
            {"operation": "readdir", "file": "e", "owner": "shared"},
            {"operation": "closedir", "file": "e", "owner": "shared"},
        ]
    )
    plan = make_plan(path, 0, 2, Places(tmp_path))
    made = [engine_name(int(number)) for number in plan.operation]
    assert made == ["open", "close", "opendir", "readdir", "closedir"]
    assert plan.reasons["getdents"] == "a folder is read through a descriptor"


@pytest.mark.parametrize(
    ("ranks", "looked_at"), [(2, [1, 0, 1]), (3, [1, 2, 0]), (4, [1, 2, 3]), (8, [1, 2, 3]), (64, [1, 2, 3])]
)
def test_the_root_looks_at_the_files_that_it_looked_at(
    tmp_path: pathlib.Path, ranks: int, looked_at: list[int]
) -> None:
    """With more ranks at those of the same ranks, by as many calls; with fewer at ones that are there."""
    path = grouped(
        [{"operation": "unlink", "file": f"p.{{rank={other}}}", "owner": "private", "groups": 1} for other in (1, 2, 3)]
    )
    plan = make_plan(path, 0, ranks, Places(tmp_path))
    assert [int(pathlib.Path(plan.paths[at]).suffix[1:]) for at in plan.file.tolist()] == looked_at


# ---- cores -----------------------------------------------------------------------------------------------------------


def test_calls_beside_their_handle(tmp_path: pathlib.Path) -> None:
    """Mappings last longer than their descriptors, two of one; a copy goes to the handle of its target."""

    def own(name: str, session: int, size: int | None = None, at: int | None = None, **extra: Any) -> Row:
        return {
            "operation": name,
            "file": f"f{session}",
            "owner": "root",
            "session": session,
            "extra": extra,
            "g0": (at, size, 0),
        }

    path = grouped(
        [
            own("open", 0, flags=os.O_RDWR | os.O_CREAT),
            own("mmap", 0, 8, 0, address=4096),
            own("mmap", 0, 8, 8, address=8192),
            own("close", 0),
            own("open", 1, flags=0),
            own("mmap", 1, 8, 0),
            own("munmap", 0, 8, address=4096),
            own("mmap", 1, 6, 0),
            own("msync", 0, 8, address=8192),
            own("munmap", 1, 6),
            own("munmap", 0, 8, address=8192),
            own("munmap", 1, 8),
            own("munmap", 1, 8),
            own("open", 2, flags=os.O_WRONLY | os.O_CREAT),
            own("sendfile", 1, 1 << 28, file2="f2", moved=500),
            own("close", 2),
            own("copy_file_range", 1, 9, file2="f2"),
        ],
        members=((0,),),
    )
    plan = make_plan(path, 0, 1, Places(tmp_path))
    names = ("mmap", "msync", "munmap", "sendfile")
    rows = [(engine_name(int(number)), int(other)) for number, other in zip(plan.operation, plan.other, strict=True)]
    assert [row for row in rows if row[0] in names] == [
        ("mmap", 0),
        ("mmap", 1),
        ("mmap", 2),
        ("munmap", 0),
        ("mmap", 0),
        ("msync", 1),
        ("munmap", 0),
        ("munmap", 1),
        ("munmap", 2),
        ("munmap", -1),
        ("sendfile", 1),
    ]
    assert (plan.mappings, int(plan.size[plan.ids == 14][0]), plan.bytes_written) == (3, 500, 500)
    assert plan.unknown == {"copy_file_range": 1} and "copies to" in plan.reasons["copy_file_range"]


def test_lines_are_read_by_what_they_have_moved(tmp_path: pathlib.Path) -> None:
    """In the plan, and in what a trace of the replay is to show; other reads ask for what the program has asked for."""
    path = grouped(
        [
            {"operation": name, "file": "a", "owner": "root", "layer": "stdio", "g0": (0, 99, 0), "extra": {"moved": 7}}
            for name in ("fopen", "fgets", "fread", "fclose")
        ],
        members=((0,),),
    )
    assert make_plan(path, 0, 1, Places(tmp_path)).size.tolist()[1:3] == [7, 99]
    assert expected_path(path, 1).table["size_0"].to_pylist()[1:3] == [7, 99]


def existing(folder: pathlib.Path, *rows: tuple[Any, ...]) -> dict[str, int]:
    """Return the files that were there before these operations: name, file, layer, extra, offset."""
    path = grouped(
        [
            {"operation": name, "file": file, "owner": "root", "layer": layer, "g0": (at, None, 0), "extra": extra}
            for name, file, layer, extra, at in rows
        ],
        members=((0,),),
    )
    found = make_plan(path, 0, 1, Places(folder)).existing
    return {pathlib.Path(name).name: size for name, size in found.items()}


def test_files_that_were_there(tmp_path: pathlib.Path) -> None:
    """Their first use needs them; what the path makes, renames to or has failed on was not."""
    new, old = {"flags": os.O_WRONLY | os.O_CREAT}, {"flags": os.O_RDWR}
    added = {"flags": os.O_WRONLY | os.O_CREAT | os.O_APPEND}
    assert existing(
        tmp_path,
        ("open", "updated", "posix", old, None),
        ("pwrite", "updated", "posix", {}, 700),
        ("MPI_File_open", "restart", "mpiio", {"amode": 8}, None),
        ("fopen", "r", "stdio", {"mode": "r+"}, None),
        ("open", "made", "posix", new, None),
        ("close", "made", "posix", {}, None),
        ("open", "made", "posix", old, None),
        ("rename", "made", "posix", {"file2": "other"}, None),
        ("open", "other", "posix", old, None),
        ("rename", "from", "posix", {"file2": "to"}, None),
        ("unlink", "gone", "posix", {}, None),
        ("unlink", "missing", "posix", {"errno": 2}, None),
        ("open", "untold", "posix", {}, None),
        ("open", "log", "posix", added, None),
        ("write", "log", "posix", {}, 300),
        ("write", "log", "posix", {}, 400),
        ("open", "fresh", "posix", added, None),
        ("write", "fresh", "posix", {}, 0),
        ("write", "fresh", "posix", {}, 9),
        ("open", "sought", "posix", old, None),
        ("lseek", "sought", "posix", {"whence": 2}, 80),
        ("fopen", "w", "stdio", {"flags": 577}, None),
        ("mkdir", "folder", "posix", {}, None),
        ("stat", "looked at", "posix", {}, None),
        ("fopen", "a", "stdio", {"mode": "a"}, None),
    ) == {"updated": 0, "restart": 0, "r": 0, "from": 0, "gone": 0, "log": 300, "sought": 80}


def test_whether_cores_are_free() -> None:
    assert are_free([[0, 1], [0, 1]])
    assert are_free([[0], [1]])
    assert not are_free([[0, 1]] * 3)
    assert not are_free([[0], [0], [1, 2, 3]])
