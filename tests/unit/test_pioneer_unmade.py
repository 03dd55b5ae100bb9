"""What `pioneer check` says of a path that a replay would not make as it stands."""

from __future__ import annotations

import pathlib
import re

import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.pioneer.engine.coverage import LEFT_OUT, engine_number
from mpiio_ext.pioneer.engine.opens import with_opens
from mpiio_ext.pioneer.engine.places import Places
from mpiio_ext.pioneer.engine.plan import make_plan
from mpiio_ext.pioneer.engine.unmade import unmade
from mpiio_ext.pioneer.operations import CATALOG
from mpiio_ext.pioneer.synthesis import find_violations
from support.pioneer_paths import EVERYTHING, path_of, row, save


def test_nothing_else_is_said_of_a_path_that_is_made() -> None:
    assert unmade(path_of(EVERYTHING)) == [
        "1 no such operation (posix) is no operation that is known: a replay leaves it out"
    ]


def test_typing_errors_are_named_with_what_was_meant() -> None:
    rows = [
        row("MPI_File_open", "a", "shared", "mpiio"),
        row("MPI_File_writ_at_all", "a", "shared", "mpiio", size=1),
        row("fopen", "b", "shared"),
        row("frobnicate", "b", "shared"),
        row("dup", "b", "shared"),
    ]
    assert unmade(path_of(rows)) == [
        "1 MPI_File_writ_at_all (mpiio) is no operation that is known; MPI_File_write_at_all is known: a replay leaves "
        "it out",
        "1 fopen (posix) is no operation that is known; it is of the layer stdio: a replay leaves it out",
        "1 frobnicate (posix) is no operation that is known: a replay leaves it out",
    ]


def test_what_is_said_is_what_the_engine_does(tmp_path: pathlib.Path) -> None:
    """One table for both: every name of the catalogue, under every layer, and some that are in none."""
    names = sorted({name for _, name in CATALOG} | {"frobnicate"})
    rows = [
        row("open", "a", "shared"),
        row("fopen", "b", "shared", "stdio"),
        row("opendir", "d", "shared"),
        row("MPI_File_open", "c", "shared", "mpiio"),
    ]
    rows += [
        row(name, {"stdio": "b", "mpiio": "c"}.get(layer, "a"), "shared", layer, size=1, at=0, extra={"file2": "e"})
        for layer in ("posix", "stdio", "mpiio", "mpi")
        for name in names
    ]
    path = path_of(rows)
    said = {match[1] for line in unmade(path) if (match := re.match(r"1 (\S+ \(\w+\)).*a replay leaves it out", line))}
    for layer in ("posix", "stdio", "mpiio", "mpi"):
        for name in names:
            makes = engine_number(layer, name) is not None
            assert (f"{name} ({layer})" in said) == (not makes and name not in LEFT_OUT), (layer, name)
    plan = make_plan(path, 0, 2, Places(tmp_path))
    whole = with_opens(path)
    planned = zip(whole.words("layer")[plan.ids], whole.words("operation")[plan.ids], strict=True)
    assert not {f"{name} ({layer})" for layer, name in planned} & said


def test_data_without_sizes() -> None:
    rows = [
        row("open", "a", "shared"),
        row("write", "a", "shared"),
        row("read", "a", "shared", size=3),
        row("pwrite", "a", "shared", at=4),
        row("close", "a", "shared"),
    ]
    assert unmade(path_of(rows)) == [
        "2 data operations have no size and move nothing: pwrite, write; the first one is operation 1"
    ]


@pytest.mark.parametrize("name", ["../../etc/x", "{rank}/../../x"])
def test_names_that_lead_out(name: str) -> None:
    (line,) = unmade(path_of([row("open", name, "shared"), row("close", name, "shared")]))
    assert line.startswith("a replay refuses the path: ")


def test_the_command_says_it_and_fails_for_dependencies_only(tmp_path: pathlib.Path) -> None:
    save([row("frobnicate", "b", "shared")], tmp_path / "a.json")
    result = CliRunner().invoke(main, ["pioneer", "check", str(tmp_path / "a.json")])
    assert result.exit_code == 0
    assert "frobnicate" in result.output and "all hold" in result.output


def test_what_is_open_for_reading_is_not_resized() -> None:
    rows = [
        row("open", "a", "shared", extra={"flags": 0}),
        row("ftruncate", "a", "shared", size=3),
        row("close", "a", "shared"),
    ]
    assert [item.why for item in find_violations(path_of(rows))] == ["ftruncate: the file is open for reading only"] * 2
    rows[1] = row("ftruncate", "a", "shared", size=3, extra={"errno": 22})
    assert find_violations(path_of(rows)) == []
