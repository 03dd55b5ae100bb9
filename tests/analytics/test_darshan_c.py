"""The reader of Darshan logs in C under the address and undefined-behaviour sanitizers."""

from __future__ import annotations

import pathlib
import random
import re
import shutil

import pytest

pytest.importorskip("darshan")

from mpiio_ext.analytics.sources.darshan import library_path
from support import cbuild
from support.darshan_logs import packaged_logs

#: A frame of a report of the sanitizer: its number, and what stands behind "in" or the module in brackets.
FRAME = re.compile(r"^\s+#(\d+) 0x[0-9a-f]+ (?:in )?(.*)$", re.MULTILINE)


def is_ours(report: str) -> bool:
    """Whether an error lies in csrc, and not in libdarshan-util, which is not ours and is known to have some."""
    for number, where in FRAME.findall(report):
        if "libdarshan" in where:
            return False
        if "mpiox_darshan" in where or "csrc/tools/analytics" in where or int(number) > 4:
            return True
    return True


def test_reports_are_told_apart() -> None:
    ours = "==1==ERROR\n    #0 0x1 in memcpy\n    #1 0x2 in take /x/csrc/analytics/mpiox_darshan_layout.c:7\n"
    theirs = "==1==ERROR\n    #0 0x1 in strlen\n    #1 0x2  (/x/libdarshan-util-18cc.so.0+0x1)\n" + ours[11:]
    assert is_ours(ours)
    assert not is_ours(theirs)
    assert is_ours("mpiox_darshan_files.c:3:1: runtime error: signed integer overflow")


def test_reader_under_the_sanitizers(tmp_path: pathlib.Path) -> None:
    """Random records, and real logs whole and damaged: the same rows alone and together, and no report."""
    program = cbuild.program("analytics/fuzz_darshan.c", "analytics")
    rng = random.Random(11)
    logs = []
    for source in packaged_logs():
        if source.stat().st_size > 100_000:
            continue
        shutil.copy(source, tmp_path / (name := f"{source.parent.name}_{source.name}"))
        logs.append(str(tmp_path / name))
        for number in range(4):
            data = bytearray(source.read_bytes())
            at = rng.randrange(len(data))
            data[at] ^= 1 << rng.randrange(8)
            (tmp_path / f"{name}.{number}").write_bytes(data[: rng.randrange(len(data))] if number % 2 else data)
            logs.append(str(tmp_path / f"{name}.{number}"))
    options = f"log_path={tmp_path}/report:detect_leaks=0:allocator_may_return_null=1"
    done = cbuild.run(program, library_path(), *logs, ASAN_OPTIONS=options, UBSAN_OPTIONS=options)
    reports = [path.read_text() for path in tmp_path.glob("report*")]
    assert [report for report in reports if is_ours(report)] == []
    assert done.returncode == 0, done.stdout + done.stderr
