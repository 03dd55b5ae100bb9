"""The tracer's clock: where it reads the processor's counter, its times are those of CLOCK_MONOTONIC all the same."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pyarrow as pa
import pytest

from mpiio_ext.pioneer.readers import own
from mpiio_ext.pioneer.table import SCHEMA
from support.traced import tracing

#: Lines are drawn through moments 2 ms apart, and hold for 8 ms: many of them. The parent goes on in a child. Says, in
#: ns since 1970, between which moments each call was made.
PROGRAM = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int fd;

static long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void *calls(void *say)
{
    for (long begun = now(CLOCK_MONOTONIC), last = 0; now(CLOCK_MONOTONIC) - begun < 60000000;) {
        const long before = now(CLOCK_MONOTONIC);
        if (lseek(fd, before & 1023, SEEK_SET) < 0)
            exit(1);
        const long after = now(CLOCK_MONOTONIC);
        for (volatile int i = 0; i < 5000; i++)
            ;
        if (say != NULL)
            printf("%d %ld %ld\n", (int)getpid(), before, after);
        if (before - last > 20000000) {
            usleep(3000);
            last = before;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (argc != 2 || fd < 0 || pthread_create(&thread, NULL, calls, NULL) != 0)
        return 2;
    calls(argv);
    pthread_join(thread, NULL);
    fflush(stdout);
    if (fork() == 0) {
        calls(argv);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    return 0;
}
"""
#: What a reading may be wrong by: the two that a line is drawn through may lie 1 us off. With room for a machine that
#: changes its clock's pace meanwhile.
CLOSE_NS = 20_000


@pytest.mark.parametrize("clock", ["", "system"], ids=["counter", "system"])
def test_times_are_those_of_the_system(clock: str, tmp_path: pathlib.Path) -> None:
    program = tmp_path / "clock"
    subprocess.run(
        [os.environ.get("CC", "cc"), "-O1", "-pthread", "-x", "c", "-", "-o", str(program)],
        input=PROGRAM,
        text=True,
        check=True,
    )
    variables = os.environ | tracing(tmp_path / "trace") | {"MPIOX_TRACE_CLOCK": clock}
    done = subprocess.run([program, tmp_path / "file"], env=variables, check=True, capture_output=True, text=True)
    told: dict[int, list[tuple[int, int]]] = {}
    for line in done.stdout.splitlines():
        process, before, after = map(int, line.split())
        told.setdefault(process, []).append((before, after))
    assert len(told) == 2 and all(len(calls) > 100 for calls in told.values())
    for process, calls in told.items():
        (file,) = (tmp_path / "trace").glob(f"*.{process}.mpioxtrace")
        _, batches = own.read([file])
        table = pa.Table.from_batches(list(batches), SCHEMA)
        rows = [
            row
            for row in table.select(["operation", "thread", "timestamp", "duration"]).to_pylist()
            if row["operation"] == "lseek"
        ]
        apart = unix_minus_monotonic(file)
        by_thread: dict[int, list[dict[str, int]]] = {}
        for row in rows:
            by_thread.setdefault(row["thread"], []).append(row)
        main = by_thread[min(by_thread)]  # it has opened the file before the other thread was there
        for row, (before, after) in zip(main, calls, strict=True):
            start = row["timestamp"] - apart
            assert before - CLOSE_NS <= start <= start + row["duration"] <= after + CLOSE_NS
        for each in by_thread.values():
            ends = [row["timestamp"] + row["duration"] for row in each]
            assert all(row["timestamp"] >= end for row, end in zip(each[1:], ends[:-1], strict=True))


def unix_minus_monotonic(file: pathlib.Path) -> int:
    """Return by how much a trace's times are more than those of CLOCK_MONOTONIC: from its header."""
    head = file.read_bytes()[:64]
    return int.from_bytes(head[32:40], "little", signed=True)
