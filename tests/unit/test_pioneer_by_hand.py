"""Profiles that a person writes from nothing: what may be left out, and what becomes of it."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.profile import characterize
from mpiio_ext.pioneer.profile.document import parse
from mpiio_ext.pioneer.synthesis import find_violations, synthesize

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "howto" / "synthesize.md"


def profile_of(**classes: dict[str, Any]) -> dict[str, Any]:
    return {"pioneer_profile": 2, "ranks": 4, "classes": classes}


def always(value: int) -> dict[str, Any]:
    return {"values": [value], "counts": [1]}


def test_what_is_done_and_how_large_it_is_are_enough() -> None:
    """One file, one session, accesses one behind the other; each rank behind the one before."""
    path = synthesize(parse(profile_of(shared={"inside": {"MPI_File_write_at_all": 10}, "size": always(1000)})))
    assert find_violations(path) == []
    words = path.words("operation").tolist()
    assert words == ["MPI_File_open", *["MPI_File_write_at_all"] * 10, "MPI_File_close"]
    offsets = [path.table[f"offset_{group}"].to_pylist()[1:-1] for group in (0, 1)]
    assert offsets[0] == [1000 * at for at in range(10)]
    assert offsets[1] == [10_000 + 1000 * at for at in range(10)]


def test_operations_are_dealt_to_sessions() -> None:
    classes = profile_of(
        private={
            "files": 3,
            "opened": {"values": [2], "counts": [3]},
            "size": always(8),
            "inside": {"write0": 13, "fsync": 3},
        }
    )
    found = parse(classes)
    assert found.classes["private"].duration.multiset().tolist() == [4, 4, 5, 5, 5, 5]
    assert found.classes["private"].access_mode == {"write": 6}
    path = synthesize(found, seed=2)
    own = characterize(path).classes["private"]
    assert (own.files, own.opened.multiset().tolist(), own.inside) == (3, [2, 2, 2], {"fsync": 3, "write0": 13})


def test_modes_follow_from_the_operations() -> None:
    modes = [
        ({"read1": 2}, "read"),
        ({"write": 2}, "write"),
        ({"fread0": 1, "fwrite0": 1}, "read_write"),
        ({"fsync": 1}, "none"),
    ]
    for inside, mode in modes:
        found = parse(profile_of(root={"inside": inside, "size": always(1)}))
        assert found.classes["root"].access_mode == {mode: 1}


def test_lengths_of_mappings_and_files() -> None:
    """They are made for as long as the file is to be, and only where it is open for writing."""
    item = {
        "inside": {"mmap": 2, "munmap": 2, "ftruncate": 2, "pread": 2},
        "size": always(10),
        "file_size": always(4096),
        "files": 2,
        "access_mode": {"read": 1, "read_write": 1},
    }
    path = synthesize(parse(profile_of(private=item)), seed=1)
    assert find_violations(path) == []
    rows = list(zip(path.words("operation").tolist(), path.table["size_0"].to_pylist(), strict=True))
    assert {size for operation, size in rows if operation in ("mmap", "munmap", "ftruncate")} == {4096}


def test_the_example_of_the_docs_runs_through_the_commands(tmp_path: pathlib.Path) -> None:
    """As it is printed there: checked, synthesized, shown; nothing is violated."""
    text = DOCS.read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (tmp_path / "hand.json").write_text(example, encoding="utf-8")
    assert json.loads(example)["pioneer_profile"] == 2
    for words in (["check", "hand.json"], ["synthesize", "hand.json", "-o", "hand.parquet"], ["check", "hand.parquet"]):
        result = CliRunner().invoke(
            main, ["pioneer", *(str(tmp_path / word) if "." in word else word for word in words)]
        )
        assert result.exit_code == 0, result.output
    path = WorkloadPath.load(tmp_path / "hand.parquet")
    assert path.info.ranks == 64
    assert {"MPI_File_write_at_all", "write", "unlink"} <= set(path.words("operation"))
