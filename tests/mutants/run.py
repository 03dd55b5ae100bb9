"""Break csrc on purpose, one line at a time, and see the quick tests fail.

    build/openmpi/venv/bin/python tests/mutants/run.py [NAME...]     # all of them: some minutes

Each mutant (``mutants.py``) replaces a snippet of one file, which is found by its name wherever it lies in csrc. The
changed copy is built in build/MPI/mutants, and the tests that ought to notice are run with that library and that module
of the tools in place of the installed ones; ``FILE.case:NAME`` is a case of tests/differential/cases. First comes the
unchanged copy, with which all of them must pass. A mutant whose file or snippet is no longer there is an error: give it
the new text, or take another line that decides the same.

The exit status is 0 when every mutant was caught.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from mutants.mutants import MUTANTS, Mutant  # noqa: E402

#: pytest calls the library of the copy, and so do the programs that get it from the tests, but no other process. The
#: tools are in no library: pytest alone has those of the copy.
PYTEST = """
import importlib.machinery, importlib.util, os, sys, pytest
del os.environ["LD_PRELOAD"]
loader = importlib.machinery.ExtensionFileLoader("mpiio_ext._tools", sys.argv.pop(1))
tools = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(tools)
sys.modules[loader.name] = tools
sys.exit(pytest.main(sys.argv[1:]))
"""
#: Generous: a mutant may hang its test, which then ends by the limit of a launch.
TESTS_LIMIT_S = 1800


class MutantError(Exception):
    """A mutant cannot be made or built."""


class Built(NamedTuple):
    """What is made of the copy."""

    library: pathlib.Path
    tools: pathlib.Path


def copy_tree(folder: pathlib.Path) -> None:
    """Copy what CMake and the generators need; files keep their times, so that only what has changed is compiled."""
    for name in ("csrc", "tests/c", "mpiio_ext/common", "pioneer"):
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
    shutil.copy2(ROOT / "mpiio_ext" / "__init__.py", folder / "mpiio_ext" / "__init__.py")
    for name in ("CMakeLists.txt", "build.py"):
        shutil.copy2(ROOT / name, folder / name)
    for name in {mutant.file for mutant in MUTANTS}:  # an earlier run left its last mutant, which is newer
        for path in (folder / "csrc").rglob(name):
            path.touch()


def run(command: list[str]) -> None:
    """Run a step of the build."""
    environment = os.environ | {"PATH": f"{pathlib.Path(sys.prefix, 'bin')}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise MutantError(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def configure(tree: pathlib.Path) -> None:
    """Prepare the build of the copy."""
    mpi = pathlib.Path(sys.prefix).parent
    compiler = pathlib.Path(sys.prefix, "bin", "mpicc")
    if mpi.name == "openmpi":
        compiler = pathlib.Path(shutil.which("mpicc.openmpi") or compiler)
    run(
        [
            "cmake",
            "-S",
            str(tree),
            "-B",
            str(tree / "build"),
            "-G",
            "Ninja",
            f"-DMPI_C_COMPILER={compiler}",
            f"-DPython_EXECUTABLE={sys.executable}",
            "-DMPIOX_BUILD_BINDING=ON",
            "-DMPIOX_BUILD_TESTS=OFF",
            "-DMPIOX_TESTING=ON",
        ]
    )


def build(tree: pathlib.Path) -> Built:
    """Build the copy."""
    output = tree / "build"
    run(["cmake", "--build", str(output), "--target", "mpiio_ext", "_tools"])
    (tools,) = output.glob("_tools*.so")
    return Built(library=output / "lib" / "libmpiio_ext.so", tools=tools)


def passes(tree: pathlib.Path, built: Built, tests: tuple[str, ...]) -> bool:
    """Run tests with the library and the tools of the copy; return whether they passed."""
    environment = os.environ | {
        "LD_PRELOAD": str(built.library),
        "MPIOX_TEST_LIBRARY": str(built.library),
        "MPIOX_TEST_CSRC": str(tree / "csrc"),
    }
    cases = [test for test in tests if ".case:" in test]
    commands = [[sys.executable, str(ROOT / "tests" / "differential" / "run.py"), "--text", case] for case in cases]
    if others := [test for test in tests if test not in cases]:
        commands.append([sys.executable, "-c", PYTEST, str(built.tools), "-q", "-x", "-p", "no:cacheprovider", *others])
    for command in commands:
        with (tree / "tests.log").open("ab") as log:
            before = log.tell()
            done = subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log, timeout=TESTS_LIMIT_S)
        if done.returncode not in (0, 1):
            raise MutantError(f"{' '.join(command)} ended with status {done.returncode}, see {tree / 'tests.log'}")
        if done.returncode == 1:
            with (tree / "tests.log").open("rb") as log:
                log.seek(before)
                if command in commands[: len(cases)] and b"Traceback (most recent call last)" in log.read():
                    raise MutantError(f"{' '.join(command)} could not run, see {tree / 'tests.log'}")
            return False
    return True


def source_of(tree: pathlib.Path, mutant: Mutant) -> pathlib.Path:
    """Return the file of a mutant."""
    found = list((tree / "csrc").rglob(mutant.file))
    if len(found) != 1:
        raise MutantError(f"{mutant.name}: {len(found)} files are named {mutant.file}")
    count = found[0].read_text(encoding="utf-8").count(mutant.old)
    if count != 1:
        raise MutantError(f"{mutant.name}: {mutant.file} has the snippet {count} times: {mutant.old!r}")
    return found[0]


def main(names: list[str]) -> int:
    """Run the chosen mutants, all without names; return the exit status."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    if unknown := set(names) - {mutant.name for mutant in MUTANTS}:
        raise SystemExit(f"no mutant is named {', '.join(sorted(unknown))}")
    tree = pathlib.Path(sys.prefix).parent / "mutants"
    shutil.rmtree(tree / "csrc", ignore_errors=True)
    tree.mkdir(parents=True, exist_ok=True)
    copy_tree(tree)
    configure(tree)
    for mutant in chosen:
        source_of(tree, mutant)
    tests = tuple(dict.fromkeys(test for mutant in chosen for test in mutant.tests))
    if not passes(tree, build(tree), tests):
        raise MutantError(f"the tests fail without any mutant, see {tree / 'tests.log'}")
    survived = []
    for mutant in chosen:
        source = source_of(tree, mutant)
        text = source.read_text(encoding="utf-8")
        source.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        try:
            caught = not passes(tree, build(tree), mutant.tests)
        finally:
            source.write_text(text, encoding="utf-8")
        survived += [] if caught else [mutant.name]
        print(f"{'caught' if caught else 'SURVIVED':9} {mutant.name:24} {mutant.what}", flush=True)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} mutants caught")
    return 1 if survived else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MutantError as error:
        sys.exit(f"error: {error}")
