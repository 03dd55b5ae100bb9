"""Folders of which one is slow: files with the same calls take far longer there."""

from __future__ import annotations

import pathlib

import pytest

import mpiio_ext
from support.darshan_logs import Job, make_log, posix


@pytest.mark.parametrize(
    ("slow_s", "size", "named"),
    [(6.0, 1, True), (0.12, 1, False), (6.0, 8, False)],
    ids=["far-slower", "alike", "more-bytes"],
)
def test_a_slow_folder_is_named(tmp_path: pathlib.Path, slow_s: float, size: int, named: bool) -> None:
    """Each of four ranks writes a file in either folder, by as many calls of as many bytes; names are equal."""
    names, parts = {}, b""
    for rank in range(4):
        for place, (folder, seconds, more) in enumerate((("home", slow_s, size), ("scratch", 0.1, 1))):
            key = 1 + 2 * rank + place
            names[key] = f"/data/{folder}/out.{rank}"
            moments = {0: 0.1 + place, 2: 0.2 + place, 6: 8.5 + place, 7: 8.6 + place, 9: seconds, 10: 0.001}
            parts += posix(key, rank, {0: 1, 4: 40, 15: 40 * (more << 18), 43: 40}, moments)
    log = tmp_path / "a.darshan"
    log.write_bytes(make_log(Job(), names, {"POSIX": (4, parts)}))
    found = mpiio_ext.run_report(log)
    assert ("whose folder is far slower" in found.sentence) == named, found.sentence
    assert ("were writes to `home/out." in found.sentence) == named, found.sentence
