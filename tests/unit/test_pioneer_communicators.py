"""Files that a part of the ranks open together: rules of communicators, from traces to plans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.pioneer.engine import Places, expected_path, make_plan
from mpiio_ext.pioneer.path import Template, WorkloadPath
from mpiio_ext.pioneer.path.communicators import (
    Communicators,
    find_communicators,
    members_of,
    opened_by_a_part,
    partly_words,
    with_numbers,
)
from mpiio_ext.pioneer.path.groups_of_ranks import group_of_rank
from mpiio_ext.pioneer.path.rules import FIRST, OTHER, OUTSIDE, Rule, refined
from mpiio_ext.pioneer.profile import characterize
from mpiio_ext.pioneer.sanitize.sanitize import SANITIZED
from mpiio_ext.pioneer.show import show
from mpiio_ext.pioneer.synthesis import find_violations, synthesize, with_shapes
from mpiio_ext.pioneer.table import SCHEMA, Source, TraceInfo, with_info
from mpiio_ext.pioneer.traces import communicators_missing, path_of

BLOCK = 100


def call(rank: int, operation: str, name: str, **values: Any) -> dict[str, Any]:
    extra = json.dumps(values.pop("extra")) if "extra" in values else None
    return {
        "operation": operation,
        "file": name,
        "duration": 1,
        "rank": rank,
        "thread": 0,
        "layer": "mpiio",
        "depth": 0,
        "result": 0,
        "handle": hash(name) % 1000,
        "line": 1,
        "extra": extra,
        **values,
    }


def opened(rank: int, name: str, size: int | None, members: str | None = None) -> dict[str, Any]:
    extra = {"amode": 9, "comm": "other"} | ({} if size is None else {"comm_size": size})
    return call(rank, "MPI_File_open", name, extra=extra | ({} if members is None else {"members": members}))


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"timestamp": 10 * at, **row} for at, row in enumerate(rows)], SCHEMA)


# ---- members ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("0-3,8", (0, 1, 2, 3, 8)),
        ("0-12:4", (0, 4, 8, 12)),
        ("3,2,1,0", (0, 1, 2, 3)),
        ("7", (7,)),
        ("", None),
        ("1-", None),
        ("4-2", None),
        ("0-8:0", None),
        ("0-99999999999", None),
        ("a", None),
        (None, None),
        (5, None),
    ],
)
def test_members(text: object, members: tuple[int, ...] | None) -> None:
    assert members_of(text) == members


# ---- rules -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sets", "ranks", "document"),
    [
        ([(0, 1), (2, 3)], 4, {"blocks": 2}),
        ([(0, 1, 2), (3, 4)], 5, {"blocks": 3}),
        ([(2, 3)], 8, {"blocks": 2, "which": [1]}),
        ([(0, 2), (1, 3)], 4, {"every": 2}),
        ([(0, 3), (1, 4), (2,)], 5, {"every": 3}),
        ([(0, 4, 8, 12)], 16, {"every": 4, "which": [0]}),
        ([(1, 2, 3)], 4, {"from": 1}),
        ([(0, 1, 5)], 8, {"ranks": [[0, 1, 5]]}),
        ([(0, 3), (1, 2)], 4, {"ranks": [[0, 3], [1, 2]]}),
    ],
)
def test_the_rule_of_communicators(sets: list[tuple[int, ...]], ranks: int, document: Mapping[str, Any]) -> None:
    rule = Rule.of(sets, ranks, range(ranks))
    assert rule.to_json() == document
    assert Rule.from_json(document) == rule
    for rank in range(ranks):
        mine = next((one for one in sets if rank in one), ())
        assert rule.members(rank, ranks, ranks) == mine
        assert rule.place(rank, ranks) == (mine.index(rank) if mine else -1)
        role = OUTSIDE if not mine else FIRST if mine[0] == rank else OTHER
        assert rule.role(rank, ranks) == role


def test_a_trace_of_some_ranks_does_not_tell_that_others_have_no_communicator() -> None:
    assert Rule.of([(0, 1)], 8, [0, 1]).to_json() == {"blocks": 2}


@given(st.sampled_from(["blocks", "every"]), st.integers(1, 9), st.integers(1, 40), st.integers(0, 39))
def test_members_agree_on_who_they_are(kind: str, size: int, ranks: int, rank: int) -> None:
    """Whoever reckons them, for any number of ranks."""
    rank %= ranks
    rule = Rule(kind=kind, size=size)
    mine = rule.members(rank, ranks, 4)
    assert rank in mine
    assert mine == tuple(other for other in range(ranks) if rule.number(other, 4) == rule.number(rank, 4))
    assert [rule.members(other, ranks, 4) for other in mine] == [mine] * len(mine)
    assert [rule.place(other, 4) for other in mine] == list(range(len(mine)))


@pytest.mark.parametrize(
    ("rule", "ranks", "members"),
    [
        (Rule(kind="blocks", size=2), 5, [(0, 1), (0, 1), (2, 3), (2, 3), (4,)]),
        (Rule(kind="every", size=2), 5, [(0, 2, 4), (1, 3), (0, 2, 4), (1, 3), (0, 2, 4)]),
        (Rule(kind="every", size=2, which=(1,)), 4, [(), (1, 3), (), (1, 3)]),
        (Rule(kind="from", size=1), 3, [(), (1, 2), (1, 2)]),
        (Rule(kind="ranks", ranks=((0, 3),)), 6, [(0, 3, 4), (), (), (0, 3, 4), (0, 3, 4), ()]),
    ],
)
def test_other_numbers_of_ranks(rule: Rule, ranks: int, members: list[tuple[int, ...]]) -> None:
    assert [rule.members(rank, ranks, 4) for rank in range(ranks)] == members


def test_subgroups_have_one_role() -> None:
    rules = (Rule(kind="blocks", size=2), Rule(kind="every", size=2))
    assert refined([(0,), (1, 2, 3, 4, 5)], rules, 6) == ((0,), (1,), (2, 4), (3, 5))
    listed = (Rule(kind="ranks", ranks=((0, 3), (1, 2))),)
    assert refined([(0,), (1, 2, 3, 4)], listed, 5) == ((0,), (1,), (2,), (3,), (4,))
    members = ((0,), (1,), (2,), (3,))
    assert [group_of_rank(rank, 8, members, rules) for rank in range(8)] == [0, 1, 2, 3, 2, 3, 2, 3]
    assert [group_of_rank(rank, 2, members, rules) for rank in range(2)] == [0, 1]
    # I/O ranks stay those equal to 0 modulo 2, however many there are
    io = (Rule(kind="every", size=2, which=(0,)),)
    assert [group_of_rank(rank, 6, ((0,), (1, 3), (2,)), io) for rank in range(6)] == [0, 1, 2, 1, 2, 1]


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({}, "it has none of blocks, every, from, ranks"),
        ({"blocks": 1, "every": 2}, "it has blocks, every of"),
        ({"blocks": 0}, "blocks of 0 ranks"),
        ({"ranks": []}, "there are no ranks"),
        ({"ranks": [[]]}, "there are no ranks"),
        ({"ranks": [[0, 1], [1]]}, "one is in two communicators"),
    ],
)
def test_what_is_no_rule(document: Mapping[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Rule.from_json(document)


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "rank", "name"),
    [
        ("h.{rank//2}", 5, "h.2"),
        ("h.{rank//2*2:03}", 5, "h.004"),
        ("p.{rank%3+1}", 5, "p.3"),
        ("h.{rank=5//2}", 0, "h.2"),
        ("h.{rank~1//2}", 1, "h.1"),
    ],
)
def test_names_of_communicators(template: str, rank: int, name: str) -> None:
    assert Template(template).name(rank) == name
    assert Template(template).of_part
    assert not Template(template).has_rank


@pytest.mark.parametrize("text", ["h.{rank//0}", "h.{rank%}", "h.{rank//2*3}", "h.{rank%2//2}"])
def test_what_is_no_field(text: str) -> None:
    with pytest.raises(ValueError, match="no file name with rank fields"):
        Template(text).name(1)


def halves(names: list[str], ranks: int = 4) -> Communicators:
    """Return what is found where rank r opens `names` of its half; {h}: number of the half, {f}: its first rank."""
    half = ranks // 2
    tables = {
        rank: table_of(
            [
                opened(
                    rank,
                    name.format(h=rank // half, f=rank // half * half),
                    half,
                    f"{rank // half * half}-{rank // half * half + half - 1}",
                )
                for name in names
            ]
        )
        for rank in range(ranks)
    }
    return find_communicators(tables, ranks)


@pytest.mark.parametrize(
    ("names", "templates"),
    [
        (["half.{h}"], {"half.{rank//2}"}),
        (["half.{f:03}.d"], {"half.{rank//2*2:03}.d"}),
        (["/run/{h}/t{h}.7"], {"/run/{rank//2}/t{rank//2}.7"}),
        (["h{h}.step0", "h{h}.step1"], {"h{rank//2}.step0", "h{rank//2}.step1"}),
    ],
)
def test_names_that_tell_the_communicator(names: list[str], templates: set[str]) -> None:
    found = halves(names)
    assert [rule.to_json() for rule in found.rules] == [{"blocks": 2}]
    assert {template.text for template in found.templates.values()} == templates
    for (name, members), number in found.of.items():
        assert number == 0
        assert all(found.templates[name].name(rank) == name for rank in members)


def test_one_file_of_several_communicators_has_no_field() -> None:
    found = halves(["all"])
    assert [rule.to_json() for rule in found.rules] == [{"blocks": 2}]
    assert not found.templates


def test_names_that_tell_nothing_have_rules_of_their_own() -> None:
    names = {0: "ocean", 1: "ocean", 2: "ice", 3: "ice"}
    tables = {rank: table_of([opened(rank, name, 2, "0-1" if rank < 2 else "2-3")]) for rank, name in names.items()}
    found = find_communicators(tables, 4)
    assert {name: found.rules[number].to_json() for (name, _), number in found.of.items()} == {
        "ocean": {"blocks": 2, "which": [0]},
        "ice": {"blocks": 2, "which": [1]},
    }


def test_communicators_that_overlap_have_rules_of_their_own() -> None:
    tables = {0: table_of([opened(0, "x", 2, "0-1"), opened(0, "x", 3, "0-2")])}
    found = find_communicators(tables, 4)
    assert len(found.rules) == 2


def test_members_become_the_number_of_a_rule() -> None:
    known = halves(["half.{h}"])
    table = table_of([opened(2, "half.1", 2, "2-3"), opened(2, "alone", 1, "2"), opened(2, "else", 3, "1-3")])
    extras = [json.loads(text) for text in with_numbers(table, known)["extra"].to_pylist()]
    assert [extra.get("communicator") for extra in extras] == [0, None, None]
    assert [extra.get("members") for extra in extras] == [None, None, "1-3"]
    assert [extra["comm"] for extra in extras] == ["other", "self", "other"]


# ---- the path --------------------------------------------------------------------------------------------------------


def program(rank: int, ranks: int) -> list[dict[str, Any]]:
    """Return what a rank does: a file of its half by collectives, then one of the ranks that are equal modulo 2."""
    half, place = divmod(rank, 2)
    rows = [opened(rank, f"/d/half.{half}", 2, f"{2 * half}-{2 * half + 1}")]
    rows += [
        call(rank, "MPI_File_write_at_all", f"/d/half.{half}", offset=(2 * step + place) * BLOCK, size=BLOCK, session=0)
        for step in range(3)
    ]
    rows += [call(rank, "MPI_File_close", f"/d/half.{half}", session=0)]
    own, apart = rank % 2, rank // 2
    rows += [opened(rank, f"/d/odd.{own}", ranks // 2, ",".join(map(str, range(own, ranks, 2))))]
    rows += [
        call(rank, "MPI_File_write_at_all", f"/d/odd.{own}", offset=apart * BLOCK, size=BLOCK),
        call(rank, "MPI_File_close", f"/d/odd.{own}"),
    ]
    for row in rows:
        row.pop("session", None)
    return rows


INFO = TraceInfo(format="test", ranks=4, sources=[Source(path="x")])


def traced(ranks: int = 4) -> dict[int, pa.Table]:
    return {rank: table_of(program(rank, ranks)) for rank in range(ranks)}


def test_the_path_knows_the_communicators() -> None:
    path = path_of(traced(), INFO)
    assert [rule.to_json() for rule in path.info.communicators] == [{"blocks": 2}, {"every": 2}]
    assert path.info.members == ((0,), (1,), (2,), (3,))
    assert path.words("file").tolist() == ["/d/half.{rank//2}"] * 5 + ["/d/odd.{rank%2}"] * 3
    assert set(path.words("owner")) == {"shared"}
    assert set(path.table["groups"].to_pylist()) == {15}
    assert find_violations(path) == []
    assert communicators_missing(traced(), INFO) == ""
    lines = list(show(path, "p"))
    assert "communicator 0   2 consecutive ranks each: rank // 2" in lines
    assert next(line for line in lines if line.startswith("op 0 ")).endswith("communicator=0")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6, 8])
def test_every_rank_opens_its_files_with_the_right_ones(tmp_path: Path, ranks: int) -> None:
    path = path_of(traced(), INFO)
    plans = [make_plan(path, rank, ranks, Places(tmp_path)) for rank in range(ranks)]
    for rank, plan in enumerate(plans):
        assert not plan.unknown
        opens = plan.communicator[[0, 5]].tolist()
        found = [(rank,) if number < 0 else plan.communicators[number] or tuple(range(ranks)) for number in opens]
        assert found == [tuple(range(rank // 2 * 2, min(ranks, rank // 2 * 2 + 2))), tuple(range(rank % 2, ranks, 2))]
        names = [plan.paths[plan.file[row]].removeprefix(f"{tmp_path}/d/") for row in (0, 5)]
        assert names == [f"half.{rank // 2}", f"odd.{rank % 2}"]
        offsets = [(2 * step + rank % 2) * BLOCK for step in range(3)]
        assert plan.offset[1:4].tolist() == offsets
        assert plan.offset[6] == rank // 2 * BLOCK
        assert not plan.meets.any()


def test_with_few_ranks_a_file_of_a_part_is_one_ranks_own() -> None:
    found = expected_path(path_of(traced(), INFO), 2)
    assert dict(zip(found.words("file"), found.words("owner"), strict=True)) == {
        "/d/half.{rank//2}": "shared",
        "/d/odd.{rank%2}": "private",
    }
    assert set(expected_path(path_of(traced(), INFO), 1).words("owner")) == {"root"}


def test_files_of_others_are_references(tmp_path: Path) -> None:
    """The root removes all of them: before it all ranks meet."""
    tables = traced()
    tables[0] = table_of(program(0, 4) + [call(0, "unlink", f"/d/half.{half}", layer="posix") for half in range(2)])
    path = path_of(tables, INFO)
    assert path.words("file").tolist()[8:] == ["/d/half.{rank//2}", "/d/half.{rank=2//2}"]
    plan = make_plan(path, 0, 4, Places(tmp_path))
    assert [Path(plan.paths[number]).name for number in plan.file[8:].tolist()] == ["half.0", "half.1"]
    assert plan.meets[8:].sum() >= 1


def test_a_path_in_a_file_keeps_them(tmp_path: Path) -> None:
    path = path_of(traced(), INFO)
    for name in ("path.parquet", "path.json"):
        path.save(tmp_path / name)
        assert WorkloadPath.load(tmp_path / name).info == path.info
    plain = path_of({0: table_of([call(0, "MPI_File_delete", "x")])}, INFO)
    plain.save(tmp_path / "plain.json")
    assert "communicators" not in json.loads((tmp_path / "plain.json").read_text(encoding="utf-8"))["pioneer-path"]


@pytest.mark.parametrize(
    ("rules", "number", "said"),
    [
        ([{"blocks": 2, "every": 2}], 0, "/pioneer-path/communicators/0: it has blocks, every of"),
        ([{"blocks": "2"}], 0, '/pioneer-path/communicators/0/blocks: "2" is not a whole number'),
        ([{"blocks": 2}], 7, "/operations/0/extra: communicator 7 is not there: the path has 1"),
        ([], "a", '/operations/0/extra: communicator "a" is not there: the path has 0'),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, rules: list[Any], number: Any, said: str) -> None:
    file = tmp_path / "path.json"
    path_of(traced(), INFO).save(file)
    document = json.loads(file.read_text(encoding="utf-8"))
    document["pioneer-path"]["communicators"] = rules
    document["operations"] = document["operations"][:1]
    document["operations"][0]["extra"] = {"communicator": number}
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ValueError, match=r"path\.json: ") as caught:
        WorkloadPath.load(file)
    assert said in str(caught.value)


def test_dependencies_of_communicators() -> None:
    path = path_of(traced(), INFO)
    place = path.table.schema.get_field_index("groups")
    masks = path.table["groups"].to_pylist()
    masks[2] = 5  # a collective that two of four groups make
    torn = WorkloadPath(path.table.set_column(place, path.table.schema.field(place), pa.array(masks)), path.info)
    assert {(item.id, item.group) for item in find_violations(torn)} == {(2, 0), (2, 2)}
    assert "group 1 does not make it, which has opened the file" in find_violations(torn)[0].why
    path.info.communicators[0].to_json()
    other = WorkloadPath(
        path.table,
        type(path.info)(
            **{name: getattr(path.info, name) for name in ("representatives", "members", "ranks")}
            | {"communicators": (Rule(kind="every", size=2, which=(1,)),)}
        ),
    )
    said = {item.why for item in find_violations(other)}
    assert "MPI_File_open: rank 0 is not in communicator 0" in said
    assert "MPI_File_open: the path has no communicator 1" in said


def test_a_profile_keeps_them() -> None:
    path = path_of(traced(), INFO)
    again = synthesize(with_shapes(characterize(path), path), mode="sampled", seed=3)
    assert again.info.communicators == path.info.communicators
    assert find_violations(again) == []


# ---- traces that do not tell ----------------------------------------------------------------------------------------


TABLES = {
    rank: table_of(
        [
            opened(rank, "/all", 4),
            opened(rank, f"/half.{rank // 2}", 2),
            opened(rank, "/own", 1),
            opened(rank, "/unknown", None),
        ]
    )
    for rank in range(4)
}


def test_only_files_of_a_part_are_found() -> None:
    found = opened_by_a_part(TABLES, 4)
    assert found == {"/half.0": 2, "/half.1": 2}
    said = partly_words(found, 4)
    assert said.startswith("2 files were opened on communicators of a part of the ranks, as '/half.0' by 2 of 4, and ")
    assert partly_words(opened_by_a_part(TABLES, 2), 2) == ""
    assert communicators_missing(TABLES, INFO) == said


def test_more_subgroups_than_a_path_has_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiio_ext.pioneer.traces.MOST_GROUPS", 3)
    path = path_of(traced(), INFO)
    assert not path.info.communicators
    assert "4 files were opened on communicators of a part of the ranks" in communicators_missing(traced(), INFO)


def test_the_command_says_it(tmp_path: Path) -> None:
    table = pa.concat_tables(list(TABLES.values()))
    missing = [name for name in SANITIZED.names if name not in table.schema.names]
    for name in missing:
        table = table.append_column(SANITIZED.field(name), pa.nulls(len(table), SANITIZED.field(name).type))
    table = table.select(SANITIZED.names).cast(SANITIZED)
    pq.write_table(table.cast(with_info(SANITIZED, INFO)), tmp_path / "trace.parquet")
    words = ["pioneer", "path", str(tmp_path / "trace.parquet"), "-o", str(tmp_path / "path.parquet")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "2 files were opened on communicators of a part of the ranks" in done.stderr
