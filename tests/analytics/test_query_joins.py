"""Chains of joins against nested loops, on both engines: right and outer joins in the middle, NULL keys, clashes."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.analytics.query import ExpressionError, Tuples, load
from support import analytics_query
from support.analytics_query import ENGINES, Store, comparable
from support.parts import require

require("ibis")

Row = dict[str, Any]
HOW = ("inner", "left", "right", "outer", "semi", "anti")
_keys = st.one_of(st.none(), st.integers(0, 3))


def _tables(columns: Sequence[str]) -> st.SearchStrategy[list[Row]]:
    row = st.fixed_dictionaries({"k": _keys, "m": _keys, **{name: st.integers(0, 9) for name in columns}})
    return st.lists(row, min_size=1, max_size=5)


#: A chain: the first table, then (table, keys, how) for each join.
_chains = st.tuples(
    _tables(["a"]),
    st.lists(
        st.tuples(_tables(["a", "b"]), st.sampled_from([["k"], ["m"], ["k", "m"]]), st.sampled_from(HOW)),
        min_size=1,
        max_size=4,
    ),
)


def reference(left: list[Row], right: list[Row], names: Sequence[str], keys: Sequence[str], how: str, name: str) -> Any:
    """Join two lists of dicts by nested loops; return the rows and the names of the columns."""

    def equal(one: Row, other: Row) -> bool:
        return all(one[key] is not None and one[key] == other[key] for key in keys)

    if how in ("semi", "anti"):
        return [row for row in left if any(equal(row, other) for other in right) == (how == "semi")], list(names)
    others = [column for column in right[0] if column not in keys]
    fresh: dict[str, str] = {}
    for column in others:
        choices = itertools.chain([column, f"{column}_{name}"], (f"{column}_{name}_{n}" for n in itertools.count(2)))
        fresh[column] = next(each for each in choices if each not in names and each not in fresh.values())
    rows = []
    for one in left:
        matches = [other for other in right if equal(one, other)]
        rows += [{**one, **{fresh[each]: other[each] for each in others}} for other in matches]
        if not matches and how in ("left", "outer"):
            rows.append({**one, **dict.fromkeys(fresh.values())})
    if how in ("right", "outer"):
        for other in right:
            if not any(equal(one, other) for one in left):
                alone = {**dict.fromkeys(names), **{key: other[key] for key in keys}}
                rows.append({**alone, **{fresh[each]: other[each] for each in others}})
    return rows, [*names, *fresh.values()]


def _table(engine: Any, rows: list[Row], name: str) -> Tuples:
    import pyarrow as pa

    schema = pa.schema([(column, pa.int64()) for column in rows[0]])
    return Tuples(engine, engine.table(pa.Table.from_pylist(rows, schema)), name)


def check(engine: Any, chain: tuple[list[Row], list[tuple[list[Row], list[str], str]]]) -> None:
    rows, joins = chain
    found, names = _table(engine, rows, "first"), list(rows[0])
    for number, (right, keys, how) in enumerate(joins):
        found = found.join(_table(engine, right, f"t{number % 2}"), keys, how)
        rows, names = reference(rows, right, names, keys, how, f"t{number % 2}")
    assert found.columns == names
    assert comparable(found.rows()) == comparable([{name: row[name] for name in names} for row in rows])


@given(_chains)
def test_chains_on_duckdb(chain: Any) -> None:
    check(analytics_query.engine("duckdb"), chain)


# Each join of Spark's takes a tenth of a second and more.
@settings(max_examples=6, suppress_health_check=list(HealthCheck), derandomize=True)
@given(_chains)
def test_chains_on_spark(chain: Any) -> None:
    check(analytics_query.engine("spark"), chain)


@pytest.mark.parametrize("engine", ENGINES)
def test_keys_behind_right_and_outer_joins(engine: str) -> None:
    """The third join must compare the key that the second one kept, not the left side's, which is NULL there."""
    a, b, c = ([{"k": k, "m": 0, "a": k} for k in ks] for ks in ([1, 2], [2, 3], [3, 4]))
    for first, second in itertools.product(("right", "outer"), ("left", "inner", "outer")):
        check(analytics_query.engine(engine), (a, [(b, ["k"], first), (c, ["k"], second)]))
        if engine == "spark":
            break


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_joined_with_itself(engine: str, tmp_path: pathlib.Path) -> None:
    store = Store(tmp_path)
    store.add("slurm", [{"job_id": number, "node_count": number * number} for number in range(4)])
    slurm = load(analytics_query.engine(engine), store, "slurm").project("job_id", "node_count")
    twice = slurm.join(slurm.filter("job_id > 1"), "job_id", "left").join(slurm, "job_id")
    assert twice.columns == ["job_id", "node_count", "node_count_slurm", "node_count_slurm_2"]
    expected = [(n, n * n, n * n if n > 1 else None, n * n) for n in range(4)]
    assert comparable(twice.rows()) == expected


def test_joins_that_cannot_be(tmp_path: pathlib.Path) -> None:
    duckdb = analytics_query.engine("duckdb")
    store = Store(tmp_path)
    store.add("slurm", [{"job_id": 1, "user": "x"}])
    slurm = load(duckdb, store, "slurm")
    with pytest.raises(ExpressionError, match="did you mean job_id"):
        slurm.join(slurm, "jobid")
    with pytest.raises(ExpressionError, match="cannot be 'full'; choose inner"):
        slurm.join(slurm, "job_id", "full")  # type: ignore[arg-type]
    with pytest.raises(ExpressionError, match="'user' is string on the left and int64 on the right"):
        slurm.join(slurm.project(user="job_id"), "user")
    with pytest.raises(ExpressionError, match="different engines"):
        from mpiio_ext.analytics.query import open_engine

        slurm.join(load(open_engine("duckdb"), store, "slurm"), "job_id")
