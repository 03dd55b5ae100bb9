"""Calls on what is known of a file, text to a descriptor, temporary files: recorded, each with its file."""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Any

import pyarrow as pa
import pytest

from mpiio_ext.pioneer.readers import own
from mpiio_ext.pioneer.sanitize.sanitize import sanitize
from mpiio_ext.pioneer.table import SCHEMA
from support.traced import tracing

PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

int main(int argc, char **argv)
{
    char text[100], made[4096], suffixed[4096];
    struct statfs system;
    struct statvfs vsystem;
    if (argc != 3)
        return 1;
    const char *file = argv[1];
    const int fd = open(file, O_RDWR | O_CREAT, 0600);
    flock(fd, LOCK_EX);
    flock(fd, LOCK_UN);
    posix_fadvise(fd, 10, 20, POSIX_FADV_SEQUENTIAL);
    readahead(fd, 0, 100);
    dprintf(fd, "%s %d", "number", 12345);
    fchmod(fd, 0640);
    fchown(fd, (uid_t)-1, (gid_t)-1);
    futimens(fd, NULL);
    fstatfs(fd, &system);
    fstatvfs(fd, &vsystem);
    fsetxattr(fd, "user.mpiio", "x", 1, 0);
    fgetxattr(fd, "user.mpiio", text, sizeof text);
    close(fd);
    chown(file, (uid_t)-1, (gid_t)-1);
    lchown(file, (uid_t)-1, (gid_t)-1);
    utime(file, NULL);
    utimes(file, NULL);
    utimensat(AT_FDCWD, file, NULL, 0);
    statfs(file, &system);
    statvfs(file, &vsystem);
    setxattr(file, "user.mpiio", "x", 1, 0);
    getxattr(file, "user.mpiio", text, sizeof text);
    readlink(file, text, sizeof text);
    readlinkat(AT_FDCWD, file, text, sizeof text);
    snprintf(made, sizeof made, "%s/tmp.XXXXXX", argv[2]);
    const int temporary = mkstemp(made);
    if (write(temporary, "123", 3) != 3 || close(temporary) != 0)
        return 2;
    snprintf(suffixed, sizeof suffixed, "%s/tmp.XXXXXX.dat", argv[2]);
    close(mkostemps(suffixed, 4, O_APPEND));
    puts(made);
    puts(suffixed);
    return mkstemp(made) < 0 ? 0 : 3; /* no XXXXXX: EINVAL */
}
"""


@pytest.fixture(scope="module", params=[(), ("-D_FORTIFY_SOURCE=2",)], ids=["plain", "fortified"])
def traced(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[dict[str, Any]], pathlib.Path, list[str]]:
    """Return the rows of a trace of the program, its folder, and what it has printed."""
    folder = tmp_path_factory.mktemp("attributes")
    program = folder / "program"
    compiler = [os.environ.get("CC", "cc"), "-w", "-U_FORTIFY_SOURCE", *request.param, "-O2", "-x", "c", "-", "-o"]
    subprocess.run([*compiler, program], input=PROGRAM, text=True, check=True)
    environment = os.environ | tracing(folder / "trace")
    done = subprocess.run(
        [program, folder / "file", folder], env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    info, batches = own.read([folder / "trace"])
    rows = pa.Table.from_batches(list(sanitize(batches))).to_pylist()
    assert info.skipped == 0
    return rows, folder, done.stdout.split()


def test_every_call_is_recorded_with_its_file(traced: tuple[list[dict[str, Any]], pathlib.Path, list[str]]) -> None:
    rows, folder, made = traced
    found = [row["operation"] for row in rows if row["file"] == str(folder / "file")]
    assert found == [
        "open",
        "flock",
        "flock",
        "posix_fadvise",
        "readahead",
        "dprintf",
        "fchmod",
        "fchown",
        "futimens",
        "fstatfs",
        "fstatvfs",
        "fsetxattr",
        "fgetxattr",
        "close",
        "chown",
        "lchown",
        "utime",
        "utimes",
        "utimensat",
        "statfs",
        "statvfs",
        "setxattr",
        "getxattr",
        "readlink",
        "readlink",
    ]
    named = {row["operation"]: row for row in rows}
    assert (named["posix_fadvise"]["offset"], named["posix_fadvise"]["size"]) == (10, 20)
    assert (named["dprintf"]["offset"], named["dprintf"]["size"]) == (0, 12)
    assert '"mode":416' in named["fchmod"]["extra"]
    assert named["readlink"]["result"] == -1
    assert [row["mask"] for row in rows] == [rows[0]["mask"]] * len(rows)
    assert len(made) == 2


def test_temporary_files_have_their_names(traced: tuple[list[dict[str, Any]], pathlib.Path, list[str]]) -> None:
    """And what is done on their descriptors; one that was not made is not there."""
    rows, _, made = traced
    assert [(row["operation"], row["offset"], row["size"]) for row in rows if row["file"] == made[0]] == [
        ("mkstemp", None, None),
        ("write", 0, 3),
        ("close", None, None),
    ]
    assert [row["operation"] for row in rows if row["file"] == made[1]] == ["mkstemp", "close"]
    opened = next(row for row in rows if row["operation"] == "mkstemp")
    assert opened["duration"] >= 0
    assert opened["timestamp"] >= rows[0]["timestamp"]


def test_the_table_of_the_reader_has_them(traced: tuple[list[dict[str, Any]], pathlib.Path, list[str]]) -> None:
    rows, _, _ = traced
    assert set(SCHEMA.names) <= set(rows[0])
    assert all(row["layer"] == "posix" for row in rows)
