"""PIONEER on programs as people write them: traced, carried out, and the files are those of the program."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.synthesis import find_violations
from support.launch import base_environment, python_run, run_bounded

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

STREAMS = r"""
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
static char bytes[1000];
static void put(const char *name, const char *mode, long at, size_t size)
{
    FILE *file = fopen(name, mode);
    if (file == NULL)
        _exit(3);
    if (at > 0)
        fseek(file, at, SEEK_SET);
    if (size > 0)
        fwrite(bytes, 1, size, file);
    fclose(file);
}
int main(int count, char **words)
{
    char line[100];
    if (count != 2 || chdir(words[1]) != 0)
        return 2;
    put("log", "w", 0, 100);
    for (int i = 0; i < 3; i++)
        put("log", "a", 0, 50);
    put("updated", "w", 0, 1000);
    put("updated", "r+", 500, 10);
    put("touched", "w", 0, 0);
    put("truncated", "w", 0, 100);
    put("truncated", "w", 0, 0);
    put("before", "r+", 20, 10); /* was there before the program, as the next ones */
    put("grows", "a", 0, 30);
    if (mkdir("links", 0755) != 0 || symlink("../new", "links/link") != 0 || unlink("links/link") != 0 ||
        rmdir("links") != 0)
        return 5;
    if (rename("old", "new") != 0 || truncate("cut", 7) != 0 || unlink("gone") != 0)
        return 4;
    FILE *file = fopen("lines", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        continue;
    return file == NULL || fclose(file) != 0;
}
"""
MAPPED = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>
enum { BYTES = 65536 };
int main(int count, char **words)
{
    if (count != 2 || chdir(words[1]) != 0)
        return 2;
    for (int k = 0; k < 2; k++) {
        int fd = open(k ? "one" : "zero", O_RDWR | O_CREAT | O_TRUNC, 0644);
        if (ftruncate(fd, 2 * BYTES) != 0)
            return 3;
        char *first = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        char *second = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, BYTES);
        close(fd);
        memset(first, 1, BYTES);
        if (msync(first, BYTES, MS_SYNC) != 0 || munmap(second, BYTES) != 0 || munmap(first, BYTES) != 0)
            return 4;
    }
    int in = open("one", O_RDONLY), sent = open("sent", O_WRONLY | O_CREAT, 0644);
    int copied = open("copied", O_WRONLY | O_CREAT, 0644);
    if (sendfile(sent, in, NULL, 1 << 28) != 2 * BYTES || lseek(in, 0, SEEK_SET) != 0)
        return 5;
    if (copy_file_range(in, NULL, copied, NULL, 5000, 0) != 5000)
        return 6;
    return 0;
}
"""
CXX = r"""
#include <fstream>
#include <unistd.h>
#include <vector>
int main(int count, char **words)
{
    if (count != 2 || chdir(words[1]) != 0)
        return 2;
    std::vector<char> bytes(20000);
    {
        std::ofstream out("ck.bin", std::ios::binary);
        for (int i = 0; i < 5; i++)
            out.write(bytes.data(), bytes.size());
        out.seekp(150000);
        out.write(bytes.data(), 10);
    }
    {
        std::ofstream log("log.txt", std::ios::app);
        log << "one line" << std::endl << "another" << std::endl;
    }
    std::ifstream in("ck.bin", std::ios::binary);
    in.seekg(40000);
    in.read(bytes.data(), 20000);
    return in.gcount() == 20000 ? 0 : 3;
}
"""


SEEKS = """
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words)
{
    FILE *file = count == 2 && chdir(words[1]) == 0 ? fopen("sought", "w+") : NULL;
    return file == NULL || fseek(file, 100, SEEK_SET) != 0 || fwrite(words[0], 1, 2, file) != 2 || ftell(file) != 102 ||
           fseek(file, 0, SEEK_END) != 0 || fclose(file) != 0;
}
"""


def built(folder: pathlib.Path, text: str, compiler: str, language: str) -> pathlib.Path:
    path = folder / "program"
    subprocess.run([compiler, "-O2", "-x", language, "-", "-o", path], input=text, text=True, check=True)
    return path


def sizes(folder: pathlib.Path) -> dict[str, int]:
    return {item.name: item.stat().st_size for item in folder.iterdir()}


def carried_out(folder: pathlib.Path, program: pathlib.Path, links: int = 0) -> WorkloadPath:
    """Trace a program on the files of `data`, carry its path out, hold the files against the program's.

    `links` are left out, and nothing else.
    """
    trace, file, place = folder / "trace", folder / "path.parquet", folder / "replay"
    tool = [sys.executable, "-m", "mpiio_ext"]
    for words in (["trace", "-o", trace, "--", program, folder / "data"], ["pioneer", "path", trace, "-o", file]):
        launch = run_bounded([*tool, *map(str, words)], env=base_environment(), timeout_s=60)
        assert launch.returncode == 0, launch.describe()
    launch = python_run(["-m", "mpiio_ext", "pioneer", "replay", file, place], 1, timeout_s=60)
    assert f"0 calls failed, {links} were left out" in launch.stdout, launch.describe()
    assert sizes(place / str(folder / "data").lstrip("/")) == sizes(folder / "data"), launch.describe()
    path = WorkloadPath.load(file)
    assert find_violations(path) == []
    return path


@pytest.fixture
def data(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_streams_and_files_that_were_there(tmp_path: pathlib.Path, data: pathlib.Path) -> None:
    """Appended, updated, truncated; renamed, shortened and removed; read line by line."""
    (data / "before").write_bytes(bytes(30))
    (data / "grows").write_bytes(bytes(100))
    for name in ("old", "gone"):
        (data / name).write_bytes(b"")
    (data / "cut").write_bytes(bytes(20))
    (data / "lines").write_text("".join(f"line {number}\n" for number in range(50)))
    path = carried_out(tmp_path, built(tmp_path, STREAMS, os.environ.get("CC", "cc"), "c"), links=1)
    assert sizes(data) == {
        "log": 250,
        "updated": 1000,
        "touched": 0,
        "truncated": 0,
        "before": 30,
        "grows": 130,
        "new": 0,
        "cut": 7,
        "lines": 390,
    }
    assert path.words("operation").tolist().count("fgets") == 51
    link = next(row for row in path.table.to_pylist() if row["operation"] == "symlink")
    assert json.loads(link["extra"])["file2"] == "../new"


def test_seeks_of_streams_are_those_of_the_program(tmp_path: pathlib.Path, data: pathlib.Path) -> None:
    """`fseek` comes back as `fseek`: a trace of the replay has the program's calls by their names."""
    program = built(tmp_path, SEEKS, os.environ.get("CC", "cc"), "c")
    tool, all_of = [sys.executable, "-m", "mpiio_ext"], tmp_path / "all"
    for words in (
        ["trace", "-o", tmp_path / "trace", "--", program, data],
        ["pioneer", "all", tmp_path / "trace", "-n", "1", "-o", all_of, "--time-scale", "0"],
    ):
        launch = run_bounded([*tool, *map(str, words)], env=base_environment(), timeout_s=120, check=False)
    assert (all_of / "comparison.json").exists(), launch.describe()
    rows = json.loads((all_of / "comparison.json").read_text(encoding="utf-8"))["operations"]
    assert {row["operation"]: (row["original"], row["synthetic"]) for row in rows} == {
        "fopen": (1, 1),
        "fwrite": (1, 1),
        "fseek": (2, 2),
        "ftell": (1, 1),
        "fclose": (1, 1),
    }, launch.describe()


def test_mapped_files_and_copies(tmp_path: pathlib.Path, data: pathlib.Path) -> None:
    """Closed right after mmap, two mappings of a descriptor; sendfile and copy_file_range."""
    path = carried_out(tmp_path, built(tmp_path, MAPPED, os.environ.get("CC", "cc"), "c"))
    assert sizes(data) == {"zero": 131072, "one": 131072, "sent": 131072, "copied": 5000}
    rows = [row for row in path.table.to_pylist() if row["operation"] in ("open", "mmap", "msync", "munmap")]
    assert [row["session"] for row in rows] == [0] * 6 + [1] * 6 + [2, 3, 4]


def test_streams_of_cxx(tmp_path: pathlib.Path, data: pathlib.Path) -> None:
    """Opened by fopen, written and read through the descriptor, at known places of the right file."""
    compiler = os.environ.get("CXX", "c++")
    try:
        program = built(tmp_path, CXX, compiler, "c++")
    except FileNotFoundError:
        pytest.skip(f"no compiler for C++: {compiler}")
    path = carried_out(tmp_path, program)
    assert sizes(data) == {"ck.bin": 150010, "log.txt": 17}
    rows = path.table.to_pylist()
    moves = [row for row in rows if row["operation"] in ("write", "writev", "read", "readv")]
    assert all(row["offset_0"] is not None and row["session"] is not None for row in moves)
    assert [row["operation"] for row in rows if row["layer"] == "stdio"] == ["fopen", "fclose"] * 3
