"""Files that are stored as several: mapping, requests, index and locks, against a model and an independent reader."""

from __future__ import annotations

import os
import pathlib

import pytest

from support import cbuild, fuzz, strangers, subfiles


@pytest.mark.parametrize("seed", range(fuzz.examples(3, least=1)))
def test_against_a_model(memory_folder: pathlib.Path, seed: int) -> None:
    """Random requests, sizes and lists in units of 1 byte and more, with 300 subfiles in 40 descriptors, too."""
    cbuild.passes(cbuild.program("subfiles/test_subfiles.c", "storage"), memory_folder, str(seed + 1))
    assert not list(memory_folder.iterdir())


def test_the_folder_of_another_user(tmp_path: pathlib.Path) -> None:
    """In a sticky folder as /tmp its owner could swap the subfiles: it is refused. Group folders work."""
    strangers.need()
    for one in tmp_path.parents:
        if one.stat().st_uid == os.geteuid() and len(one.parts) > 2:
            one.chmod(one.stat().st_mode | 0o055)
    cbuild.passes(cbuild.program("subfiles/test_subfiles.c", "storage"), tmp_path, "1", "others")
    assert not list(tmp_path.iterdir())


def test_what_who_is_killed_leaves_goes_with_the_next_one(tmp_path: pathlib.Path) -> None:
    """Before a new index has its name: of a file that delegates have written, and of one that is opened again.

    And before what lay beside a staging name has gone.
    """
    cbuild.check(cbuild.program("subfiles/test_subfiles_killed.c", "storage"), str(tmp_path))


def test_a_write_that_ends_after_a_sync_is_the_next_ones(tmp_path: pathlib.Path) -> None:
    """As when a delegate writes pages of a file while another client's sync is served."""
    cbuild.check(cbuild.program("subfiles/test_subfiles_synced.c", "storage"), str(tmp_path))


def indexes(folder: pathlib.Path) -> list[bytes]:
    """Return indexes of whole files, without their last lines, too."""
    found = []
    for count, unit in ((1, 1), (4, 4096), (12, 1 << 40)):
        subfiles.store(folder / "a%name", b"bytes", count, unit)
        found.append((folder / "a%name").read_bytes().replace(b"a%name", b"a%25name"))
    return [*found, *(text[: text.index(b"checksum")] for text in found), b"mpiio_ext subfiles 1\n"]


def test_index_fuzzed(tmp_path: pathlib.Path) -> None:
    """libFuzzer with address and undefined-behaviour sanitizers, from good indexes on."""
    cbuild.fuzz(
        "subfiles/fuzz_subfiles.c",
        folder=tmp_path,
        runs=100_000,
        most=1024,
        files=[cbuild.folder("subfiles") / "mpiox_subfiles_index.c"],
        corpus=indexes(tmp_path),
    )
