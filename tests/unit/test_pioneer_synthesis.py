"""Synthetic paths: units, allocation, multisets, hard dependencies, Algorithm 1, the shapes in a profile."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections import Counter
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.common.documents import DocumentError
from mpiio_ext.pioneer.compare import compare_paths
from mpiio_ext.pioneer.fidelity import CONTROLS
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from mpiio_ext.pioneer.profile import ClassProfile, Distribution, Profile, characterize
from mpiio_ext.pioneer.profile.document import load, save
from mpiio_ext.pioneer.synthesis import MODES, Scale, find_violations, synthesize, with_shapes
from mpiio_ext.pioneer.synthesis.document import fits, model_from_json, model_to_json
from mpiio_ext.pioneer.synthesis.model import model_of
from mpiio_ext.pioneer.synthesis.stratified import stratified
from mpiio_ext.pioneer.synthesis.units import find_units
from support import pioneer_paths

Row = dict[str, Any]


def made(rows: list[Row], groups: int = 2) -> WorkloadPath:
    """Return a path of rows; what is missing in them: posix, shared where there is a file, all groups, nothing."""
    filled = []
    for row in rows:
        owner = None if row.get("file") is None else "shared"
        filled.append({"layer": "posix", "groups": (1 << groups) - 1, "owner": owner} | row)
    return pioneer_paths.path_of(filled, groups)


def op(name: str, file: str | None = None, **values: Any) -> Row:
    return {"operation": name, "file": file} | values


def multiset(path: WorkloadPath, *names: str) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(path.table[name].to_pylist() for name in names), strict=True))


# ---- units -----------------------------------------------------------------------------------------------------------


def test_units_keep_together_what_belongs_together() -> None:
    path = made(
        [
            op("stat", "a"),
            op("open", "a"),
            op("write", "a"),
            op("stat", "b"),
            op("open", "b"),
            op("write", "a"),
            op("stat", "a"),
            op("close", "a"),
            op("mkdir", "d"),
            op("mkdir", "d"),
            op("umask"),
            op("close", "b"),
            op("MPI_File_iwrite_at", "m", layer="mpiio"),
            op("MPI_Wait", layer="mpi"),
        ]
    )
    found = [(unit.file, unit.session, unit.rows.tolist(), unit.first, unit.last) for unit in find_units(path)]
    assert found == [
        ("a", True, [0, 1, 2, 5, 6, 7], 1, 5),
        ("b", True, [3, 4, 11], 1, 2),
        ("d", False, [8, 9], 0, 1),
        (None, False, [10], 0, 0),
        ("m", True, [12, 13], 0, 0),
    ]


def test_every_operation_is_in_one_unit() -> None:
    path = made(
        [
            op("open", "a"),
            op("open", "a"),
            op("write", "a"),
            op("close", "a"),
            op("read", "a"),
            op("close", "a"),
            op("MPI_Wait", layer="mpi"),
            op("write", "x"),
        ]
    )
    rows = np.concatenate([unit.rows for unit in find_units(path)])
    assert sorted(rows.tolist()) == list(range(path.table.num_rows))


# ---- random paths ----------------------------------------------------------------------------------------------------


@st.composite
def paths(draw: st.DrawFn) -> WorkloadPath:
    """Draw a path of some files whose sessions are mixed at random, with operations outside of sessions."""
    random = draw(st.randoms(use_true_random=False))
    pending = []
    for file in range(draw(st.integers(1, 5))):
        name = f"f{file % 3}.{file}" if file % 2 else f"private.{{rank}}.{file}"
        owner = ("shared", "private", "root")[file % 3]
        about = {"owner": owner, "groups": 1 if owner == "root" else 3}
        rows = []
        for _ in range(draw(st.integers(1, 3))):
            rows.append(op("open", name, extra='{"flags": "O_RDWR"}', **about))
            rows += [
                op(
                    random.choice(["pwrite", "pread", "fsync"]),
                    name,
                    offset_0=512 * random.randrange(9),
                    size_0=random.choice([1, 512]),
                    slack_0=random.randrange(10**6),
                    duration_0=at,
                    **about,
                )
                for at in range(draw(st.integers(0, 5)))
            ]
            rows.append(op("close", name, **about))
            rows += [op("stat", name, **about)] * random.randrange(2)
        pending.append(rows)
    pending.append([op("umask")] * random.randrange(3))
    mixed = []
    while any(pending):
        rows = random.choice([several for several in pending if several])
        count = random.randrange(1, 4)
        mixed += rows[:count]
        del rows[:count]
    return made(mixed)


@given(path=paths(), seed=st.integers(0, 1000), mode=st.sampled_from(["quota", "sampled"]))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_drawn_has_the_multisets_of_its_path(path: WorkloadPath, seed: int, mode: str) -> None:
    found = synthesize(path, mode=mode, seed=seed)
    assert found.table["id"].to_pylist() == list(range(path.table.num_rows))
    assert find_violations(found) == []
    for columns in (
        ("operation", "owner", "groups"),
        ("offset_0", "size_0", "operation"),
        ("slack_0",),
        ("file", "operation"),
        ("extra",),
    ):
        if columns[0] != "file" or mode == "quota":
            assert multiset(found, *columns) == multiset(path, *columns)
    values = compare_paths(path, found).values
    assert all(values[name] == 0 for name in values if name.rpartition(".")[2] in ("duration", "opened", "counts"))


@given(path=paths(), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_multiplied_paths_keep_the_dependencies(path: WorkloadPath, seed: int) -> None:
    found = synthesize(path, mode="tuned", seed=seed, scale=Scale(files=2, opens=3, sizes=0.5, slack=0))
    assert find_violations(found) == []
    assert found.table.num_rows > path.table.num_rows
    assert len(multiset(found, "file")) >= 2 * len(multiset(path, "file")) - 1
    assert set(found.table["slack_0"].to_pylist()) <= {0, None}


@given(path=paths(), seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_profiles_without_shapes_keep_the_dependencies(path: WorkloadPath, seed: int) -> None:
    found = synthesize(characterize(path), seed=seed)
    assert find_violations(found) == []
    assert found.table["id"].to_pylist() == list(range(found.table.num_rows))
    opened = multiset(path, "operation")["open",]
    assert multiset(found, "operation")["open",] == opened == multiset(found, "operation")["close",]


# ---- modes -----------------------------------------------------------------------------------------------------------


def periodic() -> WorkloadPath:
    """Return a path of two files in turn, with a third one after every fifth turn, and long pauses."""
    random = np.random.default_rng(5)
    rows = []
    for turn in range(40):
        for file, count in (("a", 3), ("b", 2), *((("c.{rank}", 20),) if turn % 5 == 4 else ())):
            owner = "private" if file.startswith("c") else "shared"
            rows.append(op("stat", file, owner=owner, slack_0=int(random.integers(1000, 2000))))
            pause = int(random.integers(10**8, 2 * 10**8)) if file == "a" else 1000
            rows.append(op("open", file, owner=owner, slack_0=pause))
            rows += [
                op("pwrite", file, owner=owner, offset_0=4096 * at, size_0=4096 + at % 2, slack_0=500 + at)
                for at in range(count)
            ]
            rows.append(op("close", file, owner=owner, slack_0=300))
    return made(rows)


@pytest.mark.parametrize("mode", ["quota", "sampled"])
def test_a_periodic_path_stays_periodic(mode: str) -> None:
    path = periodic()
    for seed in range(5):
        found = compare_paths(path, synthesize(path, mode=mode, seed=seed))
        assert found.failed == {}
        assert found.values["shared.session_gap"] == 0


def test_the_same_seed_gives_the_same_path() -> None:
    path = periodic()
    first, again, other = (synthesize(path, seed=seed) for seed in (7, 7, 8))
    assert first.table.equals(again.table)
    assert not first.table.equals(other.table)


def test_faithful_is_the_path_itself() -> None:
    path = periodic()
    assert synthesize(path, mode="faithful").table.equals(path.table)


def test_modes_and_scales_that_are_none() -> None:
    path, profile = periodic(), characterize(periodic())
    with pytest.raises(ValueError, match=r"mode 'other': there are faithful, quota, sampled, tuned"):
        synthesize(path, mode="other")
    with pytest.raises(ValueError, match="mode quota needs the workload path"):
        synthesize(profile, mode="quota")
    with pytest.raises(ValueError, match="mode sampled multiplies nothing"):
        synthesize(path, mode="sampled", scale=Scale(files=2))
    for wrong in ({"files": 0}, {"sizes": -1}, {"slack": float("nan")}, {"opens": 1e9}):
        with pytest.raises(ValueError, match=f"scale of {next(iter(wrong))}"):
            Scale(**wrong)
    assert MODES == ("faithful", "quota", "sampled", "tuned")


def test_an_empty_path() -> None:
    path = made([])
    for mode in MODES:
        assert synthesize(path, mode=mode).table.num_rows == 0
    assert synthesize(characterize(path)).table.num_rows == 0


# ---- stratified draws ------------------------------------------------------------------------------------------------


@given(counts=st.lists(st.integers(1, 50), min_size=1, max_size=9), number=st.integers(0, 300), seed=st.integers(0, 99))
def test_stratified_draws_are_as_often_as_they_count(counts: list[int], number: int, seed: int) -> None:
    weights = np.array(counts, np.int64)
    drawn = np.bincount(stratified(weights, number, np.random.default_rng(seed)), minlength=weights.size)
    assert drawn.sum() == number
    assert (np.abs(drawn - number * weights / weights.sum()) < 1 + 1e-9).all()
    exact = stratified(weights, int(weights.sum()), np.random.default_rng(seed))
    assert np.bincount(exact, minlength=weights.size).tolist() == counts


# ---- Algorithm 1 -----------------------------------------------------------------------------------------------------


def exactly(*values: int) -> Distribution:
    return Distribution.of(values)


def by_hand() -> Profile:
    """Return a profile as a person writes it: ten private files written once, a shared one that is read."""
    none: Distribution = Distribution.of([])
    private = ClassProfile(
        files=10,
        opened=exactly(1),
        first=exactly(5, 100),
        session_gap=none,
        request_gap=exactly(1, 1, 1, 8),
        duration=exactly(12),
        file_size=exactly(40960),
        inside={"write0": 90, "write1": 5, "fsync": 5},
        outside={"stat": 20, "unlink": 10},
        offset=exactly(0, 8192),
        size=exactly(4096),
        sequentiality=exactly(900),
        access_mode={"write": 10},
        slack=exactly(1000, 2000),
    )
    shared = ClassProfile(
        files=1,
        opened=exactly(2),
        first=exactly(0),
        session_gap=exactly(50),
        request_gap=exactly(3),
        duration=exactly(7),
        file_size=exactly(1 << 20),
        inside={
            "MPI_File_read_at_all": 6,
            "MPI_File_iread_at1": 2,
            "MPI_File_write_all_begin": 4,
            "MPI_File_write_all_end": 4,
        },
        outside={},
        offset=none,
        size=exactly(1 << 16),
        sequentiality=exactly(500),
        access_mode={"read": 2},
        slack=none,
    )
    return Profile(operations=0, span=0, ranks=8, classes={"private": private, "shared": shared})


def test_a_profile_by_hand() -> None:
    path = synthesize(by_hand(), seed=3)
    assert find_violations(path) == []
    operations = multiset(path, "operation")
    assert operations["open",] == operations["close",] == 10
    assert operations["MPI_File_open",] == operations["MPI_File_close",] == 2
    assert operations["stat",] == 20
    assert operations["unlink",] == 10
    assert operations["write",] > 80
    assert operations["MPI_Wait",] == operations["MPI_File_iread_at",]
    assert not any("begin" in name for (name,) in operations)  # the shared file is read only
    assert set(path.table["size_0"].drop_null().to_pylist()) == {4096, 1 << 16}
    assert len({name for name in path.table["file"].to_pylist() if name and name.startswith("private.{rank}.")}) == 10
    assert path.info.ranks == 8


def test_nothing_is_removed_before_its_last_close() -> None:
    path = synthesize(by_hand(), seed=1)
    rows = list(zip(path.table["operation"].to_pylist(), path.table["file"].to_pylist(), strict=True))
    for at, (operation, file) in enumerate(rows):
        if operation == "unlink":
            assert ("close", file) not in rows[at:]


def test_holes_are_filled_by_what_is_outside_of_sessions() -> None:
    """Figure 4: sessions leave IDs free, and operations of column 1 take them."""
    none: Distribution = Distribution.of([])
    item = ClassProfile(
        files=1,
        opened=exactly(1),
        first=exactly(0),
        session_gap=none,
        request_gap=exactly(1, 1, 3, 3),
        duration=exactly(9),
        file_size=none,
        inside={"write0": 7},
        outside={"stat": 8},
        offset=none,
        size=exactly(1),
        sequentiality=none,
        access_mode={"write": 1},
        slack=none,
    )
    found = synthesize(Profile(operations=17, span=17, ranks=1, classes={"root": item}), seed=0)
    words = found.table["operation"].to_pylist()
    assert words[0] == "open"
    assert words[-1] == "close"
    assert len(words) == 17
    between = [group for group in "".join("." if word == "stat" else "x" for word in words).split("x") if group]
    assert between == [".."] * 4


def test_holes_of_figure_4() -> None:
    """The merged stream [1, 2, 3, 6, 7, 8, 12, 13, 14, 15] lacks [4, 5] and [9, 10, 11]: column 1 gets these."""
    none: Distribution = Distribution.of([])
    item = ClassProfile(
        files=1,
        opened=exactly(1),
        first=exactly(0),
        session_gap=none,
        request_gap=exactly(1, 1, 3, 1, 1, 4, 1, 1, 1),
        duration=exactly(10),
        file_size=none,
        inside={"read0": 8},
        outside={"stat": 5},
        offset=none,
        size=exactly(1),
        sequentiality=none,
        access_mode={"read": 1},
        slack=none,
    )
    for seed in range(20):
        found = synthesize(Profile(operations=15, span=15, ranks=1, classes={"root": item}), seed=seed)
        words = found.table["operation"].to_pylist()
        holes = [len(group) for group in "".join("." if word == "stat" else "x" for word in words).split("x") if group]
        assert sorted(holes) == [2, 3]
        assert found.table["id"].to_pylist() == list(range(15))


def test_ranks_write_parts_of_their_own() -> None:
    """Of shared files: as far apart as the profile says, else behind each other."""
    path = made(
        [
            op("open", "a"),
            *[op("pwrite", "a", offset_0=100 * at, size_0=100, offset_1=400 + 100 * at, size_1=100) for at in range(4)],
            op("close", "a"),
        ]
    )
    profile = characterize(path)
    assert profile.classes["shared"].rank_step == 400
    for step, wanted in ((400, 400), (50, 50), (None, 400)):
        shared = dataclasses.replace(profile.classes["shared"], rank_step=step)
        found = synthesize(dataclasses.replace(profile, classes={"shared": shared}))
        offsets = [
            [value for value in found.table[f"offset_{group}"].to_pylist() if value is not None] for group in (0, 1)
        ]
        assert len(offsets[0]) == 4
        assert [two - one for one, two in zip(*offsets, strict=True)] == [wanted] * 4
    twice = synthesize(dataclasses.replace(profile, shapes=None), mode="tuned", scale=Scale(sizes=2.0))
    apart = [
        two - one
        for one, two in zip(twice.table["offset_0"].to_pylist(), twice.table["offset_1"].to_pylist(), strict=True)
        if one is not None
    ]
    assert apart == [800] * 4


# ---- shapes in profiles ----------------------------------------------------------------------------------------------


def test_a_profile_with_shapes_is_as_close_as_its_path(tmp_path: pathlib.Path) -> None:
    path = periodic()
    save(with_shapes(characterize(path), path), tmp_path / "profile.json")
    profile = load(tmp_path / "profile.json")
    assert fits(profile)
    found = synthesize(profile, seed=2)
    assert compare_paths(path, found).failed == {}
    assert find_violations(found) == []


@pytest.mark.parametrize("mode", MODES)
def test_groups_begin_when_they_did(mode: str) -> None:
    path = periodic()
    starts = tuple(range(0, 10 * path.group_count, 10))
    path = dataclasses.replace(path, info=dataclasses.replace(path.info, starts=starts))
    found = synthesize(path, mode=mode, scale=Scale(slack=2) if mode == "tuned" else None)
    assert found.info.starts == tuple(start * (1 + (mode == "tuned")) for start in path.info.starts)
    from_json = synthesize(with_shapes(characterize(path), path), mode="sampled")
    assert from_json.info.starts == path.info.starts


@given(path=paths())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_shapes_read_back_are_what_was_written(path: WorkloadPath) -> None:
    model = model_of(path)
    document = json.loads(json.dumps(model_to_json(model, "")))
    again = model_from_json(document)
    assert model_to_json(again, "") == document
    assert again.kinds == model.kinds
    assert again.archetypes == model.archetypes
    for one, other in zip(model.shapes, again.shapes, strict=True):
        assert (one.session, one.first, one.last) == (other.session, other.first, other.last)
        assert np.array_equal(one.kinds, other.kinds)
        assert np.array_equal(one.places, other.places)
        assert all(map(np.array_equal, one.accesses, other.accesses))


def test_edited_characteristics_are_drawn_independently(tmp_path: pathlib.Path) -> None:
    path = periodic()
    save(with_shapes(characterize(path), path), tmp_path / "profile.json")
    document = json.loads((tmp_path / "profile.json").read_text("utf-8"))
    document["classes"]["shared"]["size"] = {"values": [77], "counts": [1]}
    (tmp_path / "edited.json").write_text(json.dumps(document), "utf-8")
    profile = load(tmp_path / "edited.json")
    assert not fits(profile)
    found = synthesize(profile)
    shared = [
        size
        for size, owner in zip(found.table["size_0"].to_pylist(), found.table["owner"].to_pylist(), strict=True)
        if owner == "shared" and size is not None
    ]
    assert set(shared) == {77}


def places_of(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places of all values in a document."""
    found = [place] if place else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        found += places_of(item, (*place, name))
    return found


DOCUMENT = json.dumps(model_to_json(model_of(periodic()), ""))
PLACES = places_of(json.loads(DOCUMENT))


@given(st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_spoilt_shapes_are_refused_or_still_give_a_path(data: st.DataObject) -> None:
    document = json.loads(DOCUMENT)
    place = data.draw(st.sampled_from(PLACES))
    parent = document
    for name in place[:-1]:
        parent = parent[name]
    wrong = st.sampled_from([None, -1, 0, 1, 3, 2**70, "x", [], {}, [[1, 2, 3]], [1], 1.5, True])
    if data.draw(st.booleans()):
        parent[place[-1]] = data.draw(wrong)
    else:
        del parent[place[-1]]
    try:
        model = model_from_json(document)
    except DocumentError as error:
        assert error.problems
        assert error.problems[0].startswith("/shapes")
        return
    assert model.operations >= 0
    profile = dataclasses.replace(characterize(periodic()), shapes=document)
    assert not fits(profile)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("kinds", 0, 2), 4, "/kinds/0/2: not a whole number from 1 to 3"),
        (("shapes", 0, "kinds", 0, 0), 9, "/shapes/0/kinds: there are 4 kinds"),
        (("shapes", 0, "places"), [[1, 1, 6]], "/shapes/0: kinds and places: none, not equally many, or places do not"),
        (("shapes", 0, "session"), [0, 6], "/shapes/0/session: there are 6 operations"),
        (("shapes", 0, "accesses", 0, "columns", 1), [[-1, 0, 5]], "/shapes/0/accesses/0/columns/1: 5 numbers, not 6"),
        (("archetypes", 0, "track", "overlapping"), [[0, 0, 1]], "/archetypes/0/track/overlapping: not from 1 to"),
        (
            ("archetypes", 0, "track", "shapes", 0, 2),
            1 << 40,
            "/archetypes/0/track/shapes/0/2: 1099511627776 is not less",
        ),
        (("archetypes", 0, "gaps"), [], "/archetypes/0/gaps: there is none for the shapes"),
        (("archetypes", 0, "owner"), "me", '/archetypes/0/owner: "me" is not one of "root", "shared"'),
        (("times", 0, "slices", 0), [], "/times/0/slices/0: the distributions have no values"),
        (("operations",), None, "/operations: null is not a whole number"),
    ],
)
def test_spoilt_shapes_are_told_with_their_place(place: tuple[Any, ...], value: object, said: str) -> None:
    document = parent = json.loads(DOCUMENT)
    for name in place[:-1]:
        parent = parent[name]
    parent[place[-1]] = value
    with pytest.raises(DocumentError) as caught:
        model_from_json(document)
    assert caught.value.problems[0].startswith(f"/shapes{said}")


# ---- commands --------------------------------------------------------------------------------------------------------


def run(*words: Any) -> Any:
    return CliRunner().invoke(main, ["pioneer", *map(str, words)])


def test_commands(tmp_path: pathlib.Path) -> None:
    path = periodic()
    path.save(tmp_path / "path.parquet")
    assert run("profile", tmp_path / "path.parquet", "-o", tmp_path / "profile.json").exit_code == 0
    assert run("check", tmp_path / "profile.json").output.endswith("fine\n")
    for source in ("path.parquet", "profile.json"):
        done = run("synthesize", tmp_path / source, "-o", tmp_path / "made.parquet", "--seed", 4)
        assert done.exit_code == 0, done.output
        assert "hard dependencies that do not hold: 0" in done.output
        assert WorkloadPath.load(tmp_path / "made.parquet").table.num_rows == path.table.num_rows
        assert run("compare", tmp_path / "path.parquet", tmp_path / "made.parquet").exit_code == 0
    done = run("profile", tmp_path / "path.parquet", "-o", tmp_path / "plain.json", "--plain")
    assert done.exit_code == 0
    done = run("synthesize", tmp_path / "plain.json", "-o", tmp_path / "made.parquet")
    assert "it has no shapes: all characteristics are drawn independently" in done.output
    words = ("synthesize", tmp_path / "path.parquet", "-o", tmp_path / "made.parquet", "--mode", "tuned")
    done = run(*words, "--multiply", "files=0")
    assert done.exit_code == 2
    assert "scale of files" in done.output


def test_the_fidelity_command_sees_what_is_spoilt(tmp_path: pathlib.Path) -> None:
    periodic().save(tmp_path / "periodic.parquet")
    done = run("fidelity", tmp_path / "periodic.parquet", "--seeds", 2, "--json", "-o", tmp_path / "table.json")
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "table.json").read_text("utf-8"))["rows"]
    assert {row["mode"] for row in rows if not row["control"]} == {"faithful", "quota", "sampled", "profile"}
    assert all(row["failed"] for row in rows if row["control"])
    # the path is of one group: there are no children to be spoilt
    assert {row["mode"] for row in rows if row["control"]} == {*CONTROLS} - {"children elsewhere"}
