"""Phase C of PIONEER: operations, open sessions, distributions, characteristics, the profile as a document."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.common.documents import DocumentError
from mpiio_ext.pioneer.operations import CATALOG, Role, normal_name, operation_of
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from mpiio_ext.pioneer.profile import Distribution, Profile, characterize, find_sessions
from mpiio_ext.pioneer.profile.document import load, parse, save, to_json
from support import pioneer_paths
from support.expected import Expected

Row = dict[str, Any]


def path_of(rows: list[Row]) -> WorkloadPath:
    """Return a path of one group; what a row does not say is null, the layer is posix."""
    return pioneer_paths.path_of([{"layer": "posix", "groups": 1, **row} for row in rows], groups=1)


def op(operation: str, file: str | None = None, owner: str | None = "shared", **values: Any) -> Row:
    """Return a row; offset, size and slack are the root's."""
    numbers = {f"{name}_0": value for name, value in values.items() if name in ("offset", "size", "slack")}
    rest = {name: value for name, value in values.items() if name in ("layer", "session")}
    return {"operation": operation, "file": file, "owner": owner if file else None, **numbers, **rest}


def told(path: WorkloadPath) -> dict[str, Any]:
    """Return the sessions and the profile of a path as an expected text: what is empty is left out."""
    found = find_sessions(path)
    sessions = [
        f"{item.layer} {item.file}: {item.members}, opened: {item.has_open}, closed: {item.has_close}"
        for item in found.sessions
    ]
    classes: dict[str, dict[str, Any]] = {}
    for name, item in characterize(path).classes.items():
        values = {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
        lists = {key: list(each.multiset()) if isinstance(each, Distribution) else each for key, each in values.items()}
        classes[name] = {key: each for key, each in lists.items() if each}
    return {"sessions": sessions, "session of each row": found.of, "classes": classes}


# ---- operations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("SYS_open", "open"),
        ("fopen64", "fopen"),
        ("pwrite64", "pwrite"),
        ("__fxstat64", "fstat"),
        ("__xstat", "stat"),
        ("PMPI_File_open", "MPI_File_open"),
        ("MPI_File_write_at_c", "MPI_File_write_at"),
        ("__open64_2", "open"),
        ("__read_chk", "read"),
        ("MPIO_Wait", "MPI_Wait"),
        ("newfstatat", "fstatat"),
        ("SYS_newstat", "stat"),
        ("fadvise64", "posix_fadvise"),
        ("mmap2", "mmap"),
        ("SYS_332", "statx"),
        ("dup2", "dup2"),
    ],
)
def test_names_of_operations(raw: str, name: str) -> None:
    assert normal_name(raw) == name


def test_catalogue() -> None:
    assert len({(item.layer, item.name) for item in CATALOG.values()}) == len(CATALOG) > 150
    assert all(normal_name(item.name) == item.name for item in CATALOG.values())
    iread = operation_of("mpiio", "MPI_File_iread_at_all")
    assert (iread.role, iread.nonblocking, iread.collective, iread.explicit_offset) == (Role.READ, True, True, True)
    assert not operation_of("posix", "stat").in_session
    assert operation_of("posix", "something new").role is Role.META
    assert operation_of("mpiio", "MPI_File_write_ordered_begin").role is Role.BEGIN


# ---- sessions --------------------------------------------------------------------------------------------------------


def test_sessions_and_gaps(expected: Expected) -> None:
    """Two files, as in the paper's Figure 2: what is done to the other one shows in the gaps."""
    path = path_of(
        [
            op("stat", "A"),  # 0, outside
            op("open", "A"),
            op("open", "B"),
            op("write", "A"),  # 1 2 3
            op("read", "B"),
            op("close", "A"),
            op("read", "B"),  # 4 5 6
            op("close", "B"),
            op("unlink", "A"),
            op("open", "A"),  # 7 8 9
            op("write", "A"),
            op("close", "A"),  # 10 11
        ]
    )
    expected(told(path))


def test_sessions_of_figure_2(expected: Expected) -> None:
    """A and B are private, C and D shared; 3 requests to each of A and B, to A in a more compact manner than to B.

    A's second request has the ID 4: two requests, 2 and 3, are made to other files before it (section V-C).
    """
    order = {"A": (1, 4, 5), "B": (2, 7, 11), "C": (3, 6, 8, 12), "D": (9, 10, 13)}
    rows: dict[int, dict[str, Any]] = {0: op("stat", "D", owner="shared")}
    for file, ids in order.items():
        owner = "private" if file in "AB" else "shared"
        names = ["open", *["write"] * (len(ids) - 2), "close"]
        rows |= {number: op(name, file, owner=owner) for number, name in zip(ids, names, strict=True)}
    path = path_of([rows[number] for number in sorted(rows)])
    expected(told(path))


def test_sessions_without_opens_and_several_at_once(expected: Expected) -> None:
    path = path_of(
        [
            op("pwrite", "X"),
            op("open", "X"),
            op("open", "X"),
            op("read", "X"),
            op("close", "X"),
            op("read", "X"),
            op("close", "X"),
            op("fread", "X", layer="stdio"),
            op("read", None),
        ]
    )
    expected(told(path))


def test_sessions_by_their_numbers(expected: Expected) -> None:
    """Handles of one file that are open at a time; what has no number belongs to what was opened last."""
    path = path_of(
        [
            op("open", "X", session=7),
            op("open", "X", session=3),
            op("write", "X", session=7),
            op("read", "X", session=3),
            op("munmap", "X"),
            op("close", "X", session=3),
            op("dup", "X", session=7),
            op("close", "X", session=7),
            op("write", "X", session=7),
            op("close", "X", session=7),
            op("munmap", "X"),
            op("fopen", "X", layer="stdio"),
            op("fread", "X", layer="stdio"),
            op("open", "Y", session=7),
            op("open", "Y", session=2),
            op("close", "Y", session=7),
            op("close", "Y", session=2),
        ]
    )
    expected(told(path))


def test_soft_dependencies(expected: Expected) -> None:
    """A seek makes read1 of a read, a wait MPI_File_iread01; a seek that nothing follows stays."""
    path = path_of(
        [
            op("open", "a"),
            op("lseek", "a"),
            op("read", "a"),
            op("read", "a"),
            op("pread", "a"),
            op("lseek", "a"),
            op("close", "a"),
            op("MPI_File_open", "b", layer="mpiio"),
            op("MPI_File_seek", "b", layer="mpiio"),
            op("MPI_File_iread", "b", layer="mpiio"),
            op("MPI_File_iwrite_at", "b", layer="mpiio"),
            op("MPI_Waitall", layer="mpi"),
            op("MPI_File_iread", "b", layer="mpiio"),
            op("MPI_File_close", "b", layer="mpiio"),
        ]
    )
    expected(told(path))


def test_sizes_offsets_and_sequentiality(expected: Expected) -> None:
    path = path_of(
        [
            op("open", "a", "private"),
            op("pwrite", "a", "private", offset=0, size=10, slack=5),
            op("pwrite", "a", "private", offset=10, size=10, slack=7),
            op("pwrite", "a", "private", offset=50, size=4),
            op("close", "a", "private"),
            op("open", "c", "root"),
            op("close", "c", "root"),
        ]
    )
    expected(told(path))


def test_empty_path() -> None:
    profile = characterize(path_of([]))
    assert (profile.operations, profile.span, dict(profile.classes)) == (0, 0, {})


names = st.sampled_from(["open", "read", "pwrite", "lseek", "close", "stat"])


@given(st.lists(st.tuples(names, st.sampled_from(["a", "b", None])), max_size=60))
def test_every_operation_is_in_one_place(several: list[tuple[str, str | None]]) -> None:
    """In one session, or outside; and is counted once in the profile."""
    path = path_of([op(operation, file) for operation, file in several])
    found = find_sessions(path)
    members = sorted(row for session in found.sessions for row in session.members)
    assert members == np.flatnonzero(found.of >= 0).tolist()
    for (operation, file), session in zip(several, found.of, strict=True):
        assert (session >= 0) == (file is not None and operation != "stat")
    profile = characterize(path)
    counted = sum(sum(item.inside.values()) + sum(item.outside.values()) for item in profile.classes.values())
    opens = sum(operation in ("open", "close") and file is not None for operation, file in several)
    hidden = counted + opens
    assert len(several) - sum(operation == "lseek" for operation, _ in several) <= hidden <= len(several)
    assert sum(item.duration.multiset().sum() for item in profile.classes.values()) == len(members)
    assert to_json(parse(json.loads(json.dumps(to_json(profile))))) == to_json(profile)


# ---- distributions ---------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-(2**62), 2**62), max_size=200), st.integers(1, 50))
def test_distributions_are_close(samples: list[int], most: int) -> None:
    """Exact when there are few values; else no point of the cumulative distribution is far away."""
    exact, reduced = Distribution.of(samples), Distribution.of(samples, most)
    assert exact.multiset().tolist() == sorted(samples)
    assert reduced.total == len(samples)
    assert reduced.values.size <= most
    assert reduced.exact == (len(set(samples)) <= most)
    if samples:
        heaviest = exact.counts.max() / len(samples)
        assert reduced.distance(exact) <= 2 / most + heaviest
        drawn = reduced.draw(100, np.random.default_rng(1))
        assert set(drawn.tolist()) <= set(reduced.values.tolist())
    else:
        with pytest.raises(ValueError, match="nothing can be drawn"):
            reduced.draw(1, np.random.default_rng(1))


def test_distance() -> None:
    assert Distribution.of([1, 2, 3, 4]).distance(Distribution.of([1, 2, 30, 40])) == 0.5
    assert Distribution.of([]).distance(Distribution.of([])) == 0
    assert Distribution.of([1]).distance(Distribution.of([])) == 1


# ---- the document ----------------------------------------------------------------------------------------------------


@pytest.fixture()
def profile() -> Profile:
    return characterize(path_of([op("open", "a"), op("pwrite", "a", offset=0, size=8, slack=3), op("close", "a")]))


def test_profile_as_a_file(profile: Profile, tmp_path: pathlib.Path) -> None:
    save(profile, tmp_path / "profile.json")
    assert to_json(load(tmp_path / "profile.json")) == to_json(profile)
    assert [item.name for item in tmp_path.iterdir()] == ["profile.json"]
    lines = (tmp_path / "profile.json").read_text(encoding="utf-8").splitlines()
    assert '    "values": [8],' in lines


def test_everything_that_is_wrong_is_said(profile: Profile, tmp_path: pathlib.Path) -> None:
    document = to_json(profile)
    shared = document["classes"]["shared"]
    shared["size"] = {"values": [8, 8], "counts": [1, 2]}
    shared["offset"]["counts"] = [0]
    shared["slack"] = [1, 2]
    shared["inside"]["pwrite"] = -1
    shared["access_mode"]["append"] = 1
    document["classes"]["secret"] = shared
    document["span"] = "long"
    (tmp_path / "profile.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DocumentError) as caught:
        load(tmp_path / "profile.json")
    said = [problem.removeprefix(f"{tmp_path / 'profile.json'}: ") for problem in caught.value.problems]
    assert said == [
        '/span: "long" is not a whole number',
        "/classes/shared/inside/pwrite: -1 is less than 0",
        "/classes/shared/offset/counts/0: 0 is less than 1",
        "/classes/shared/access_mode/append: there is no such name; there are none, read, read_write, write",
        "/classes/shared/slack: a list of 2 is not an object",
        "/classes/secret: there is no such name; there are root, shared, private, child, none",
    ]
    del document["classes"]["secret"]
    document["span"], shared["inside"], shared["access_mode"] = 3, {}, {}
    shared["offset"]["counts"], shared["slack"] = [1, 2], {"values": [1], "counts": [1]}
    with pytest.raises(DocumentError) as caught:
        parse(document)
    assert caught.value.problems == (
        "/classes/shared/offset: there are 1 values and 2 counts",
        "/classes/shared/size/values/1: the value 8 stands there twice",
    )


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pioneer_profile": 2}', "\xff", "[" * 100000, '{"span": NaN}'])
def test_what_is_no_profile(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "profile.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"profile\.json: "):
        load(tmp_path / "profile.json")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["classes", "shared", "size", "values", "counts", "span", "inside"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_any_document(document: Any) -> None:
    """It is a profile, or it is said what is wrong."""
    if isinstance(document, dict):
        document["pioneer_profile"] = 2
    try:
        parse(document)
    except DocumentError as error:
        assert error.problems
