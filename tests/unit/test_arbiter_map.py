"""The arbiter's map: its form, its reader in C, and which I/O nodes placement gives each job."""

from __future__ import annotations

import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.delegates.arbiter import mapfile
from mpiio_ext.delegates.arbiter.mapfile import Map, MapError, checksum
from mpiio_ext.delegates.arbiter.placement import place, place_beside_shared
from support import cbuild

NAMES = st.text("abcXYZ019._-", min_size=1, max_size=20).filter(lambda name: not name.startswith("."))
NODES = st.lists(st.integers(0, mapfile.MOST_NODES - 1), unique=True, max_size=12).map(tuple)
MAPS = st.builds(Map, st.integers(1, 2**62), st.dictionaries(NAMES, NODES, max_size=6))


@given(MAPS)
def test_a_map_comes_back(content: Map) -> None:
    assert mapfile.decode(content.encode()) == content


@given(MAPS, st.data())
def test_a_damaged_map_is_none(content: Map, data: st.DataObject) -> None:
    """Cut short anywhere, or with any byte changed: refused, whatever it says."""
    whole = content.encode()
    cut = data.draw(st.integers(0, len(whole) - 1))
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != whole[at]))
    for damaged in (whole[:cut], whole[:at] + bytes([byte]) + whole[at + 1 :], whole + b"job x 1\n"):
        with pytest.raises(MapError):
            mapfile.decode(damaged)


@pytest.mark.parametrize(("second", "stated"), [("b", 1), ("a", 1), ("a", 2)])
def test_a_map_with_a_wrong_number_of_jobs_is_none(second: str, stated: int) -> None:
    """A job that has two lines does not have the later one's I/O nodes."""
    body = f"mpiox-map 1\ngeneration 1\njob a 0\njob {second} 1\n".encode()
    with pytest.raises(MapError, match="the number of jobs"):
        mapfile.decode(body + f"end {stated} {checksum(body):016x}\n".encode())


def test_the_reader_in_c(tmp_path: pathlib.Path) -> None:
    """It takes what Python writes, refuses every damage, and is clean under the sanitizers."""
    program = cbuild.program("arbiter/test_map.c", "arbiter", "common")
    path = tmp_path / "map"
    path.write_bytes(Map(12, {"other": (), "job.1": (0, 5, 575), "job.10": (1,)}).encode())
    for job, expected in (("job.1", "12 0,5,575"), ("job.10", "12 1")):
        assert cbuild.passes(program, path, job).splitlines()[0] == expected


def test_following_in_c(tmp_path: pathlib.Path) -> None:
    """Another process of the job announces it when the first one is gone; a child that was forked changes nothing."""
    (tmp_path / "jobs").mkdir()
    program = cbuild.program("arbiter/test_follow.c", "arbiter", "common")
    cbuild.passes(program, tmp_path)
    assert not [entry.name for entry in (tmp_path / "jobs").iterdir()]  # no drafts are left


@given(
    st.dictionaries(NAMES, st.tuples(st.integers(0, 9), st.integers(1, 9), NODES), min_size=1, max_size=8),
    st.integers(1, 9),
)
def test_placement(jobs: dict[str, tuple[int, int, tuple[int, ...]]], io_nodes: int) -> None:
    counts = {job: count for job, (count, _, _) in jobs.items()}
    usable = {job: number for job, (_, number, _) in jobs.items()}
    before = {job: nodes for job, (_, _, nodes) in jobs.items()}
    found = place(counts, usable, before, io_nodes)
    assert found == place(dict(reversed(counts.items())), usable, before, io_nodes)
    for job, nodes in found.items():
        assert 1 <= len(nodes) <= max(1, counts[job]) and list(nodes) == sorted(set(nodes))
        assert nodes[-1] < min(usable[job], io_nodes)


def test_nobody_moves_without_need() -> None:
    before = {"a": (4, 5), "b": (0,)}
    assert place({"a": 2, "b": 2}, {"a": 8, "b": 8}, before, 8) == {"a": (4, 5), "b": (0, 7)}
    assert place({"a": 1, "b": 1}, {"a": 8, "b": 8}, before, 8) == {"a": (5,), "b": (0,)}


@given(
    st.dictionaries(
        NAMES, st.tuples(st.integers(0, 5), st.integers(1, 9), NODES, st.booleans()), min_size=1, max_size=8
    ),
    st.integers(1, 9),
)
def test_placement_beside_a_shared_node(jobs: dict[str, tuple[int, int, tuple[int, ...], bool]], io_nodes: int) -> None:
    found = place_beside_shared(
        {job: 0 if shares else max(count, 1) for job, (count, _, _, shares) in jobs.items()},
        {job for job, each in jobs.items() if each[3]},
        {job: each[1] for job, each in jobs.items()},
        {job: each[2] for job, each in jobs.items()},
        io_nodes,
    )
    assert sorted(found) == sorted(jobs)
    for job, (_, usable, _, shares) in jobs.items():
        alone = shares or usable == 1 or io_nodes == 1
        assert (
            found[job] == (0,) if alone else found[job] and 0 < found[job][0] <= found[job][-1] < min(usable, io_nodes)
        )
