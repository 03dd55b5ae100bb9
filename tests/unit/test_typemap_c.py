"""The typemap module in C under sanitizers: random descriptions against a reference, serialized input under fuzzing."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest

from support import cbuild

SEED = os.environ.get("MPIOX_TEST_SEED", "1")


def pure_sources() -> list[str]:
    return cbuild.sources("typemap")


def build(name: str) -> pathlib.Path:
    source = str(cbuild.ROOT / "tests" / "c" / "typemap" / f"{name}.c")
    command = [cbuild.compiler(), *cbuild.FLAGS, *cbuild.SANITIZE, *cbuild.includes(), source, *pure_sources()]
    return cbuild.compile_c(command, f"typemap_{name}")


@pytest.mark.parametrize(
    ("name", "cases"),
    [("random_operations", "1500"), ("fuzz_blob", "20000"), ("lists", "2000"), ("runs", "5000")],
)
def test_random_input_under_sanitizers(name: str, cases: str) -> None:
    assert cbuild.check(build(name), cases, SEED, timeout=300) == f"{cases} cases passed\n"


@pytest.mark.parametrize(("name", "runs"), [("fuzz_blob", 20000), ("random_operations", 1500), ("runs", 20000)])
def test_coverage_guided_fuzzing(name: str, runs: int, tmp_path: pathlib.Path) -> None:
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("no clang: libFuzzer is not available")
    source = str(cbuild.ROOT / "tests" / "c" / "typemap" / f"{name}.c")
    flags = [*cbuild.FLAGS, "-DFUZZ", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    program = tmp_path / name
    command = [clang, *flags, *cbuild.includes(), source, *pure_sources(), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if built.returncode != 0 and "libclang_rt.fuzzer" in built.stderr:
        pytest.skip("clang has no libFuzzer")
    assert built.returncode == 0, built.stderr
    options = [f"-runs={runs}", "-max_len=4096", f"-seed={SEED}", f"-artifact_prefix={tmp_path}/"]
    (tmp_path / "corpus").mkdir()
    done = subprocess.run(
        [str(program), *options, str(tmp_path / "corpus")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
