"""Every number that an option of the bench or a setting of the arbiter takes: smallest, usual, largest, and beyond.

At each the bench plans, or says in one line which option does not fit; the arbiter serves, within its pool.
"""

from __future__ import annotations

import dataclasses
import pathlib
import typing

import click
import pytest

from mpiio_ext.bench.__main__ import main
from mpiio_ext.bench.options import command
from mpiio_ext.common import documents
from mpiio_ext.common.documents import DocumentError
from mpiio_ext.common.options import Duration, Size
from mpiio_ext.delegates.arbiter import settings
from mpiio_ext.delegates.arbiter.mapfile import MOST_NODES
from mpiio_ext.delegates.arbiter.mapfile import read as read_map
from mpiio_ext.delegates.arbiter.service import Arbiter
from mpiio_ext.delegates.arbiter.settings import Settings
from support.announcing import announce

# ---- the bench ------------------------------------------------------------------------------------------------------

LARGEST_FILE = str(2**63 - 1)
#: Option -> smallest, usual and largest value that it takes, values beyond, and what else is on the command line.
BENCH: dict[str, tuple[tuple[str, str, str], tuple[str, ...], tuple[str, ...]]] = {
    "--size": (("1", "1MiB", LARGEST_FILE), ("-1", str(2**63), "nan", "inf"), ("-w", "contiguous")),
    "--block": (("1", "64KiB", LARGEST_FILE), ("0", "-1", str(2**63)), ("-w", "interleaved")),
    "--transfer": (("0", "4KiB", LARGEST_FILE), ("-1", str(2**63)), ("-w", "contiguous")),
    "--piece": (("4", "4KiB", LARGEST_FILE), ("3", str(2**63)), ("-w", "random", "-s", "1MiB")),
    "--ghost": (("0", "2", LARGEST_FILE), ("-1", "1.5"), ("-w", "tiles2d")),
    "--steps": (("1", "5", LARGEST_FILE), ("0", "-1"), ("-w", "btio")),
    "--seed": (("0", "1", str(2**128)), ("-1",), ("-w", "random")),
    "--read-shift": (("0", "1", LARGEST_FILE), ("-1",), ("-w", "contiguous")),
    "--repeats": (("1", "3", LARGEST_FILE), ("0", "-1"), ("-w", "contiguous")),
    "--scale": (("1e-300", "0.5", "1000"), ("0", "-1", "1001", "inf", "nan"), ("-k", "vpic,e3sm_i")),
    "--budget": (("0", "5m", "1000000000h"), ("-1s", "inf", "nan"), ("-w", "contiguous")),
    "--native-limit": (("0", "6s", "1000000000h"), ("-1s", "inf", "nan"), ("-w", "contiguous")),
    "--native-size": (("0", "1MiB", LARGEST_FILE), ("-1", str(2**63)), ("-w", "contiguous")),
    "--stripe-size": (("1", "1MiB", "2g"), ("-1", str(2**63)), ("-w", "contiguous")),
    "--stripe-count": (("1", "4", "65535"), ("0", "-1"), ("-w", "contiguous")),
    "--ranks": (("1", "4", "100000"), ("0", "-1"), ("-w", "contiguous", "-s", "1GiB")),
}


def _preview(*words: str) -> int:
    """Return the exit status of a dry run."""
    ranks = () if "--ranks" in words else ("--ranks", "2")
    with pytest.raises(SystemExit) as ended:
        main(["--dry-run", "-m", "native,auto", *ranks, *words])
    return int(ended.value.code or 0)


def test_every_number_of_the_bench_is_tried() -> None:
    numbers = (Size, Duration, click.types.IntRange, click.types.FloatRange, click.types.IntParamType)
    found = {max(param.opts, key=len) for param in command.params if isinstance(param.type, numbers)}
    assert found | {"--block"} == set(BENCH)


@pytest.mark.parametrize("option", BENCH)
def test_a_number_of_the_bench(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    (smallest, usual, largest), beyond, words = BENCH[option]
    assert _preview(*words, option, usual) == 0
    for value in (smallest, largest):
        status = _preview(*words, option, value)
        error = capsys.readouterr().err
        assert (status, error) == (0, "") or (status == 2 and error.startswith("mpiio-ext: --")), error
        assert error.count("\n") <= 1
    for value in beyond:
        assert _preview(*words, option, value) == 2
        assert option.lstrip("-") in capsys.readouterr().err


@pytest.mark.parametrize("pattern", ["contiguous", "interleaved", "block3d", "tiles2d", "btio", "random", "climate"])
@pytest.mark.parametrize("size", ["1", "1MiB", LARGEST_FILE])
def test_a_pattern_of_any_size(pattern: str, size: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is planned or refused."""
    status = _preview("-w", pattern, "-s", size)
    error = capsys.readouterr().err
    assert status == 0 or (status == 2 and "--" in error and pattern in error), error


# ---- the arbiter ----------------------------------------------------------------------------------------------------

#: Setting -> values from the smallest to the largest, and values beyond.
ARBITER: dict[str, tuple[tuple[object, ...], tuple[object, ...]]] = {
    "io_nodes": ((1, 8, MOST_NODES), (0, -1, MOST_NODES + 1)),
    "lease_s": ((1e-300, 10.0, 1e300), (0, -1, float("nan"))),
    "reserve_s": ((0, 60.0, 1e300), (-1, float("inf"), float("nan"))),
    "compute_nodes": ((1, 4096, 2**31 - 1), (0, -1, 2**31, 2**63)),
    "most": ((1, 4, 2**63), (0, -1)),
    "user_share": ((1e-300, 0.5, 1), (0, -1, 1.001, float("nan"))),
    "jobs_per_user": ((1, 256, 2**63), (0, -1)),
    "confidence": ((0.5, 0.9, 1 - 2**-53), (0.49, 1, float("nan"))),
    "floor": ((0, 0.5, 1), (-0.1, 1.1, float("nan"))),
    "migration_cost_s": ((0, 5.0, 600), (-1, 601, float("nan"))),
    "horizon_s": ((1e-300, 600.0, 1e300), (0, float("inf"), float("nan"))),
    "weights": (
        ({"app": 0.0}, {"app": 2.5}, {"app": 1e300}),
        ({"app": -1.0}, {"app": float("inf")}, {"app": float("nan")}),
    ),
    "hysteresis": ((0, 0.1, 1e300), (-0.1, float("inf"), float("nan"))),
}
#: The policy that a setting belongs to, where it is one's own.
OF_POLICY = {"compute_nodes": "static"}


def test_every_number_of_the_arbiter_is_tried() -> None:
    kinds = typing.get_type_hints(Settings)
    numbers = {
        item.name
        for item in dataclasses.fields(Settings)
        if {int, float} & {kinds[item.name], *typing.get_args(kinds[item.name])}
    }
    assert numbers == set(ARBITER)


def _settings(name: str, value: object) -> Settings:
    given: dict[str, object] = {"io_nodes": 8, "policy": OF_POLICY.get(name, "mckp")}
    given["curves"] = {"app": {1: [100.0, 120.0], 2: [180.0, 200.0], 4: [250.0, 260.0]}}
    return documents.parse(Settings, given | {name: value})


@pytest.mark.parametrize("name", ARBITER)
def test_a_number_of_the_arbiter(name: str, tmp_path: pathlib.Path) -> None:
    values, beyond = ARBITER[name]
    for place, value in enumerate(values):
        folder = tmp_path / str(place)
        folder.mkdir()
        with Arbiter(folder, _settings(name, value), lambda _: None) as service:
            for job in range(5):
                announce(folder, f"job{job}", ranks=4, nodes=4)
            service.step()
        given = read_map(folder).jobs
        pool = _settings(name, value).io_nodes
        for nodes in given.values():
            assert len(nodes) == len(set(nodes)) and set(nodes) <= set(range(pool))
        # With a lease of no time every job is dead; a large machine leaves four of its nodes less than an I/O node.
        assert any(given.values()) or name in ("lease_s", "compute_nodes")
        assert settings.read(folder) == _settings(name, value)
    for value in beyond:
        with pytest.raises(DocumentError, match=name):
            _settings(name, value)
