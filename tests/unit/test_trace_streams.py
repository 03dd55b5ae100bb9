"""Offsets of streams: the tracer follows them without asking the kernel, and asks where others have moved them."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pyarrow as pa
import pytest

from mpiio_ext.pioneer.readers import own
from mpiio_ext.pioneer.sanitize.sanitize import sanitize
from mpiio_ext.pioneer.table import SCHEMA
from support.traced import read, tracing

#: Writes that are recorded, "w" bytes, and between them what moves the stream. Says where each began by asking the
#: kernel about it through a second description, as far as the C library has flushed: fflush(3) is called behind all.
PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static FILE *stream;
static long at; /* where the stream stands, counted by what the program does */

static void put(long bytes)
{
    static char data[20000];
    printf("%ld %ld\n", at, bytes);
    if (fwrite(data, 1, (size_t)bytes, stream) != (size_t)bytes)
        exit(1);
    at += bytes;
}

static void *in_thread(void *bytes)
{
    put(*(long *)bytes);
    return NULL;
}

static void unseen(long bytes) /* the macro: nothing is called until the buffer is full */
{
    for (long i = 0; i < bytes; i++)
        putc_unlocked('x', stream);
    at += bytes;
}

int main(int argc, char **argv)
{
    long size = 4096;
    stream = fopen(argv[2], argv[1]);
    if (argc != 4 || stream == NULL)
        return 2;
    for (const char *step = argv[3]; *step != '\0'; step++) {
        pthread_t thread;
        switch (*step) {
        case 'w': put(16); break;
        case 'W': put(size); break;
        case 'L': put(3 * size + 7); break;
        case 'u': unseen(16); break;
        case 'U': unseen(size); break;
        case 'f': fflush(stream); break;
        case 's': at = 100; fseek(stream, at, SEEK_SET); break;
        case 'n': setvbuf(stream, NULL, _IONBF, 0); break;
        case 'd': fflush(stream); at += 50; lseek(fileno(stream), 50, SEEK_CUR); break;
        case 'D': { const int other = dup(fileno(stream)); fflush(stream); at += 5; if (write(other, "12345", 5) != 5)
            return 1;
            close(other); break; }
        case 't': if (pthread_create(&thread, NULL, in_thread, &size) == 0) pthread_join(thread, NULL); break;
        case 'k': fflush(stream); at += 9;
            if (fork() == 0) { lseek(fileno(stream), 9, SEEK_CUR); _exit(0); }
            wait(NULL);
        }
    }
    return fclose(stream);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("streams") / "program"
    command = [os.environ.get("CC", "cc"), "-O2", "-pthread", "-x", "c", "-", "-o", path]
    subprocess.run(command, input=PROGRAM, text=True, check=True)
    return path


@pytest.mark.parametrize(
    "steps",
    [
        "wwww",
        "wW" * 300,
        "wwLwwLLw",
        "wwuwwuuw",
        "wUwUwwUUw",
        "wUUUUUUUUw",
        "wwfwwfffw",
        "wwswwswW",
        "nwwwLw",
        "wwdwwddw",
        "wwDwwDDw",
        "wwtwwttww",
        "wwkwwkkw",
        "wtWsUwdWuwLkwDw",
    ],
)
@pytest.mark.parametrize("mode", ["w", "w+"])
def test_offsets_of_a_stream(program: pathlib.Path, tmp_path: pathlib.Path, steps: str, mode: str) -> None:
    environment = os.environ | tracing(tmp_path / "trace")
    done = subprocess.run(
        [program, mode, tmp_path / "file", steps],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    info, rows = read(tmp_path / "trace")
    found = [(row["offset"], row["size"]) for row in rows if row["operation"] == "fwrite"]
    assert info.skipped == 0
    assert found == [tuple(map(int, line.split())) for line in done.stdout.splitlines()]


def test_a_stream_that_appends(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_bytes(bytes(1000))
    environment = os.environ | tracing(tmp_path / "trace")
    subprocess.run([program, "a", tmp_path / "file", "wwfwww"], env=environment, check=True, capture_output=True)
    _, rows = read(tmp_path / "trace")
    found = [row["offset"] for row in rows if row["operation"] == "fwrite"]
    assert found == [1000 + 16 * i for i in range(5)]


DUPLICATES = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    const int kept = fcntl(fd, F_DUPFD, 50), closed = fcntl(fd, F_DUPFD_CLOEXEC, 60);
    if (argc != 2 || kept < 50 || closed < 60 || fcntl(closed, F_GETFD) != FD_CLOEXEC || fcntl(fd, F_SETFL, 0) != 0)
        return 1;
    if (write(fd, "123", 3) != 3 || close(fd) != 0 || write(kept, "4567", 4) != 4 || write(closed, "89", 2) != 2)
        return 2;
    return close(kept) + close(closed);
}
"""


def test_descriptors_of_fcntl(tmp_path: pathlib.Path) -> None:
    """F_DUPFD and F_DUPFD_CLOEXEC: one position for all, and one session, of which the sanitization makes `dup`."""
    command = [os.environ.get("CC", "cc"), "-x", "c", "-", "-o", tmp_path / "program"]
    subprocess.run(command, input=DUPLICATES, text=True, check=True)
    environment = os.environ | tracing(tmp_path / "trace")
    subprocess.run([tmp_path / "program", tmp_path / "file"], env=environment, check=True, timeout=60)
    _, batches = own.read([tmp_path / "trace"])
    raw = list(batches)
    kept = [row for row in pa.Table.from_batches(raw, SCHEMA).to_pylist() if row["file"] == str(tmp_path / "file")]
    names = ["open", "fcntl", "fcntl", "write", "close", "write", "write", "close", "close"]
    assert [row["operation"] for row in kept] == names
    assert [row["offset"] for row in kept if row["operation"] == "write"] == [0, 3, 7]
    clean = [
        row for row in pa.Table.from_batches(list(sanitize(raw))).to_pylist() if row["file"] == str(tmp_path / "file")
    ]
    assert [row["operation"] for row in clean] == [name.replace("fcntl", "dup") for name in names]
    assert [row["offset"] for row in clean if row["operation"] == "write"] == [0, 3, 7]
    assert len({row["session"] for row in clean}) == 1
