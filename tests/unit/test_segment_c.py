"""Shared memory that is another file, that has no room, or whose pages must be committed; in C, under sanitizers."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest

from support import cbuild

MOUNTED = ["unshare", "--mount", "sh", "-ec"]


def mounted(script: str, *arguments: str, **environment: str) -> str:
    """Run a shell script in a mount namespace of its own; return what it printed."""
    allowed = shutil.which("unshare") is not None and os.geteuid() == 0
    if not allowed or subprocess.run([*MOUNTED, "mount -t tmpfs none /mnt"], capture_output=True).returncode != 0:
        pytest.skip("mount namespaces are not to be had")
    command = [*MOUNTED, script, "sh", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_only_the_creators_memory_is_attached(tmp_path: pathlib.Path) -> None:
    cbuild.passes(cbuild.program("common/test_segment.c", "common"), "attach", tmp_path)


def test_no_room_is_an_error_and_no_signal() -> None:
    """A file in a small /dev/shm, then in a small TMPDIR, is refused when made, not when its pages are touched."""
    program = cbuild.program("common/test_segment.c", "common")
    out = mounted('mount -t tmpfs -o size=1m none /dev/shm && exec "$1" full', str(program), TMPDIR="/dev/shm")
    assert out.splitlines()[-1].endswith(" 0 failures")


def test_beyond_the_largest_file_is_an_error_and_no_signal() -> None:
    """Under ulimit -f a memfd and a file that would be larger are refused; the kernel would send SIGXFSZ."""
    cbuild.passes(cbuild.program("common/test_segment.c", "common"), "limited")


def test_locked_memory_is_counted_once() -> None:
    """Under mlockall(MCL_FUTURE), which sanitizers ignore, ulimit -l needs to allow a segment's bytes once."""
    cbuild.passes(cbuild.program("common/test_segment.c", "common", flags=("-O2",)), "locked")


@pytest.mark.parametrize(
    ("kind", "overcommit", "reserved"), [("memfd", 0, "little"), ("memfd", 2, "all"), ("file", 0, "all")]
)
def test_pages_are_reserved_where_they_could_be_refused(
    tmp_path: pathlib.Path, kind: str, overcommit: int, reserved: str
) -> None:
    """With vm.overcommit_memory = 2 (pretended) the pages of a memfd too are refused when they are touched."""
    setting = tmp_path / "overcommit_memory"
    setting.write_text(f"{overcommit}\n", encoding="ascii")
    program = cbuild.program("common/test_segment.c", "common")
    script = 'mount --bind "$2" /proc/sys/vm/overcommit_memory && exec "$1" committed "$3"'
    assert f"reserved {reserved}\n" in mounted(script, str(program), str(setting), kind)
