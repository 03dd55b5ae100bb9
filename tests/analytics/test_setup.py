"""setup.json: what it may say, and that a wrong one is refused with the place of every mistake."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpiio_ext.analytics import IOMiner
from mpiio_ext.analytics import setup as setups
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.setup import ENGINE_OPTIONS, Setup, load_setup

GOOD: dict[str, Any] = {"store": "s", "inputs": {"darshan": ["logs"]}}


def test_the_documented_example_is_good(tmp_path: pathlib.Path) -> None:
    text = re.search(r"::\n\n(    \{.*?\n    \})\n", setups.__doc__ or "", re.DOTALL)
    assert text is not None
    (tmp_path / "setup.json").write_text(text[1])
    setup = load_setup(tmp_path / "setup.json")
    assert setup.store == tmp_path / "store"
    assert [(item.kind, item.path, item.date) for item in setup.inputs][:2] == [
        ("darshan", "/logs/darshan/2018", "auto"),
        ("darshan", str(tmp_path / "more/*.darshan"), "mtime"),
    ]
    assert (setup.engine.name, setup.engine.options) == ("spark", {"master": "spark://head:7077"})
    assert setup.placement is not None
    assert (setup.placement.subtables, setup.osts, setup.lmt_mounts) == (6, 248, {"snx11025": "/scratch1"})


def test_defaults(tmp_path: pathlib.Path) -> None:
    setup = load_setup(GOOD, tmp_path)
    assert (setup.period, setup.engine.name, setup.time_zone, setup.placement) == ("month", "duckdb", "UTC", None)
    assert setup.workers >= 1


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"store": None}, "/store: null is not a text"),
        ({"stores": "x"}, "/stores: there is no such name; there are store, inputs"),
        ({"inputs": {"darshan": "logs"}}, '/inputs/darshan: "logs" is not a list'),
        (
            {"inputs": {"dxt": ["x"]}},
            "/inputs/dxt: there is no such name; there are darshan, slurm, cobalt, lmt, results",
        ),
        ({"inputs": {"lmt": ["x", {"date": "never"}]}}, '/inputs/lmt/1: "path" is missing'),
        (
            {"inputs": {"lmt": [{"path": "x", "date": "never"}]}},
            '/inputs/lmt/0/date: "never" is not one of "auto", "path"',
        ),
        ({"workers": -1}, "/workers: -1 is less than 0"),
        ({"workers": True}, "/workers: true is not a whole number"),
        ({"period": "year"}, '/period: "year" is not one of "month", "day"'),
        ({"engine": "mysql"}, '/engine: "mysql" is not one of "duckdb", "spark"'),
        ({"engine": {"name": 5}}, '/engine/name: 5 is not one of "duckdb", "spark"'),
        (
            {"engine": {"name": "duckdb", "master": "local[2]"}},
            "/engine/master: there is no such name; there are memory, threads, temporary",
        ),
        ({"engine": {"threads": -1}}, "/engine/threads: -1 is less than 0"),
        ({"engine": {"memory": "lots"}}, '/engine/memory: "lots" is not a size such as "4GB"'),
        ({"engine": {"memory": 4}}, '/engine/memory: 4 is not a size such as "4GB"'),
        ({"engine": {"name": "spark", "memory": "4 GB"}}, '/engine/memory: "4 GB" is not a size such as "4g"'),
        ({"engine": {"name": "spark", "verbose": "yes"}}, '/engine/verbose: "yes" is not true or false'),
        (
            {"engine": {"name": "spark", "configuration": {"spark.x": 5}}},
            "/engine/configuration/spark.x: 5 is not a text",
        ),
        ({"engine": {"name": "spark", "configuration": "x"}}, '/engine/configuration: "x" is not an object'),
        ({"engine": {"name": "spark", "master": ""}}, '/engine/master: "" is empty'),
        ({"timeout_s": 0}, "/timeout_s: 0 is not greater than 0"),
        ({"placement": {"targets": []}}, "/placement/targets: is empty"),
        ({"placement": {"targets": ["a", "a"]}}, "/placement/targets: names a folder twice"),
        (
            {"placement": {"targets": ["a", "b"], "subtables": 3}},
            "/placement/subtables: 3 cannot be shared evenly by 2",
        ),
        ({"placement": {"targets": ["a", "b"], "osts": [1]}}, "/placement/osts: has 1 entries for 2 targets"),
        ({"site": {"time_zone": "Mars/North"}}, '/site/time_zone: "Mars/North" is no time zone'),
        ({"site": {"mounts": {"/a/b": {"stripe_size": 0}}}}, "/site/mounts/~1a~1b/stripe_size: 0 is less than 1"),
        ({"site": {"lmt_mounts": {"x": 5}}}, "/site/lmt_mounts/x: 5 is not a text"),
    ],
)
def test_a_mistake_is_told_with_its_place(change: dict[str, Any], text: str) -> None:
    with pytest.raises(AnalyticsError) as caught:
        load_setup({**GOOD, **change})
    assert f"set-up: {text}" in str(caught.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(AnalyticsError) as caught:
        load_setup({"workers": "x", "osts": -1})
    assert len(str(caught.value).splitlines()) == 4
    with pytest.raises(AnalyticsError) as caught:
        load_setup({"workers": "x", "inputs": {}, "store": "s", "engine": {"thread": 2, "memory": "1X"}})
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == [
        "/workers",
        "/engine/memory",
        "/engine/thread",
    ]


def test_options_of_engines_are_those_that_engines_take() -> None:
    pytest.importorskip("ibis")
    from mpiio_ext.analytics.query.engines import DuckDBEngine
    from mpiio_ext.analytics.query.spark import SparkEngine

    for engine in (DuckDBEngine, SparkEngine):
        assert {field.name for field in dataclasses.fields(ENGINE_OPTIONS[engine.name])} == {
            field.name for field in dataclasses.fields(engine)
        }
    load_setup({**GOOD, "engine": {"name": "spark", "verbose": True, "memory": "4g"}})
    for memory in ("4GB", "512 MiB", "1.5tb", "50%", ""):
        load_setup({**GOOD, "engine": {"memory": memory}})


def test_nothing_fills_a_store_without_inputs(tmp_path: pathlib.Path) -> None:
    for inputs in ({}, {"darshan": []}):
        miner = IOMiner({"store": str(tmp_path / "s"), "inputs": inputs})
        with pytest.raises(AnalyticsError, match=r'^/inputs: the set-up names no logs; write for example \{"darsh'):
            miner.init_stores()
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is not JSON"),
        ("[1]", "a list of 1 is not an object"),
        ("{", "is not JSON"),
        ('{"store": "a", "store": "b"}', "'store' stands twice"),
    ],
)
def test_a_file_that_is_no_setup(tmp_path: pathlib.Path, text: str, what: str) -> None:
    path = tmp_path / "setup.json"
    path.write_text(text)
    with pytest.raises(AnalyticsError, match=what):
        load_setup(path)
    with pytest.raises(AnalyticsError, match="cannot be read: No such file"):
        load_setup(tmp_path / "none.json")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "store",
                    "inputs",
                    "darshan",
                    "path",
                    "date",
                    "engine",
                    "name",
                    "placement",
                    "targets",
                    "osts",
                    "site",
                    "mounts",
                    "time_zone",
                    "stripe_size",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
)


@example({"store": "s", "inputs": {}, "site": "0"})
@example({"store": "~nobody-of-this-name", "inputs": {}})
@given(
    st.dictionaries(
        st.sampled_from(["store", "inputs", "workers", "period", "engine", "osts", "timeout_s", "placement", "site"]),
        VALUES,
    )
)
def test_anything_is_a_setup_or_refused(document: dict[str, Any]) -> None:
    try:
        setup = load_setup(document)
    except AnalyticsError as error:
        assert "set-up: /" in str(error)
    else:
        assert isinstance(setup, Setup)
        json.dumps(setup.options())


def test_the_miner_fills_the_store_of_its_setup(tmp_path: pathlib.Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "setup.json").write_text(
        json.dumps({"store": "s", "inputs": {"slurm": ["empty"]}, "workers": 0, "placement": {"targets": ["t"]}})
    )
    with IOMiner(tmp_path / "setup.json") as miner:
        with pytest.raises(AnalyticsError, match="there is no store"):
            miner.load("slurm")
        assert str(miner.init_stores("2018-01-01", "2018-01-31")) == "logs: no logs"
        assert miner.catalog.files("slurm") == []
        with pytest.raises(AnalyticsError, match="'jobs' is no table"):
            miner.load("jobs")
