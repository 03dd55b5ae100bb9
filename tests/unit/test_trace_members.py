"""Members of communicators as a short text: what the tracer writes is what the path reads."""

from __future__ import annotations

import os
import pathlib
import subprocess

import numpy as np
import pytest

from mpiio_ext.pioneer.path.communicators import members_of
from support.launch import ROOT

#: Arguments: bytes of room, then ranks. Prints whether it fits, and the text.
PROGRAM = r"""
#include "mpiox_trace_members.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const size_t room = (size_t)atol(argv[1]);
    int *ranks = malloc((size_t)argc * sizeof *ranks);
    char *text = malloc(room); /* so that a byte behind it is seen by a sanitizer */
    for (int i = 2; i < argc; i++)
        ranks[i - 2] = atoi(argv[i]);
    const bool fits = mpiox_trace_members_text(ranks, argc - 2, text, room);
    printf("%d %s\n", fits, text);
    free(ranks);
    free(text);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("members")
    (folder / "program.c").write_text(PROGRAM, encoding="utf-8")
    source = ROOT / "csrc" / "tools" / "trace"
    command = [
        os.environ.get("CC", "cc"),
        "-O1",
        "-g",
        "-fsanitize=address,undefined",
        f"-I{source}",
        folder / "program.c",
        source / "mpiox_trace_members.c",
        "-o",
        folder / "program",
    ]
    subprocess.run(command, check=True)
    return folder / "program"


def text_of(program: pathlib.Path, ranks: list[int], room: int = 4000) -> str | None:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    words = [str(program), str(room), *map(str, ranks)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60, env=environment)
    fits, _, text = done.stdout.rstrip("\n").partition(" ")
    assert fits == "1" or text == ""
    return text if fits == "1" else None


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([0, 1, 2, 3, 8], "0-3,8"),
        ([0, 4, 8, 12], "0-12:4"),
        ([0, 2], "0,2"),
        ([1, 2], "1-2"),
        ([7], "7"),
        ([3, 2, 1, 0], "3,2,1,0"),
        ([0, 1, 3, 5, 7, 8], "0-1,3-7:2,8"),
        ([], ""),
    ],
)
def test_ranges(program: pathlib.Path, ranks: list[int], text: str) -> None:
    assert text_of(program, ranks) == text


def test_what_is_read_is_what_was_written(program: pathlib.Path) -> None:
    random = np.random.default_rng(7)
    for _ in range(40):
        ranks = random.permutation(60)[: random.integers(1, 40)].tolist()
        for own in (ranks, sorted(ranks)):
            text = text_of(program, own)
            assert text is not None
            assert members_of(text) == tuple(sorted(ranks))


def test_a_text_that_would_be_too_long_is_none(program: pathlib.Path) -> None:
    irregular = [rank * rank for rank in range(200)]
    whole = text_of(program, irregular)
    assert whole is not None
    assert text_of(program, irregular, len(whole) + 1) == whole
    assert text_of(program, irregular, len(whole)) is None
    assert text_of(program, [5, -1]) is None
