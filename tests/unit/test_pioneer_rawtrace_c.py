"""The parsers of raw traces in C, under sanitizers: bytes of any kind, cut anywhere; rows that wait."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest

from support import cbuild

SEED = os.environ.get("MPIOX_TEST_SEED", "1")
MODULES = ("common", "typemap", "pioneer")


def test_rows_and_names() -> None:
    path = cbuild.program("pioneer/test_rows.c", *MODULES)
    assert cbuild.check(path).splitlines()[-1] == "rows and names passed"


def test_bytes_of_any_kind() -> None:
    path = cbuild.program("pioneer/fuzz_rawtrace.c", *MODULES)
    assert cbuild.check(path, "2000", SEED, timeout=300) == "2000 cases passed\n"


def test_coverage_guided_fuzzing(tmp_path: pathlib.Path) -> None:
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("no clang: libFuzzer is not available")
    path = tmp_path / "fuzz_rawtrace"
    source = str(cbuild.ROOT / "tests" / "c" / "pioneer" / "fuzz_rawtrace.c")
    flags = [*cbuild.FLAGS, "-DFUZZ", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    command = [clang, *flags, *cbuild.includes(), source, *cbuild.sources(*MODULES), "-o", str(path)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if built.returncode != 0 and "libclang_rt.fuzzer" in built.stderr:
        pytest.skip("clang has no libFuzzer")
    assert built.returncode == 0, built.stderr
    (tmp_path / "corpus").mkdir()
    options = ["-runs=8000", "-max_len=600", "-len_control=0", f"-seed={SEED}", f"-artifact_prefix={tmp_path}/"]
    command = [str(path), *options, str(tmp_path / "corpus")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]


def test_sanitization_of_rows_of_any_kind() -> None:
    """The same at once and in pieces, also where a nameless open waits for rows to come."""
    path = cbuild.program("pioneer/fuzz_handle_resolution.c", *MODULES)
    assert cbuild.check(path, "3000", SEED, timeout=300) == "3000 cases passed\n"
