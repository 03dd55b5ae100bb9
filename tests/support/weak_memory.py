"""Check the models of ``tests/weak_memory``: functions of csrc, as they are, under the memory model of C11.

A model names the functions that it takes from csrc in its head. They are cut from the sources, so that model and
library cannot differ: their atomic operations, and the order of each, are those of the library.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
from functools import cache

import pytest

from support import cbuild

MODELS = pathlib.Path(__file__).resolve().parents[1] / "weak_memory"
#: Where a model finds the requests of a delegate.
HEADERS = f"-I{cbuild.folder('cache')}"
RELACY = pathlib.Path("/usr/include/relacy/relacy.hpp")
_ATOMIC = re.compile(r"\batomic_(?:load|store|exchange|fetch_\w+?|compare_exchange_(?:strong|weak))(_explicit)?\(")
_ORDER = re.compile(r"memory_order_(?:acquire|release|acq_rel|seq_cst)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mutant:
    """An order that is weakened: the n-th of a function that is not relaxed. Some size of the model shows it."""

    function: str
    number: int
    size: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """The head of a model."""

    path: pathlib.Path
    functions: tuple[tuple[str, str], ...]  # source file, name
    mutants: tuple[Mutant, ...]
    sizes: dict[str, str]  # a definition: preemptions that Relacy explores

    def text(self) -> str:
        """Return the functions, in which orders can be weakened by the number of a mutant."""
        return "\n".join(f"/* {source} */\n{self._function(source, name)}" for source, name in self.functions)

    def _function(self, source: str, name: str) -> str:
        text = cut(source, name)
        orders = list(_ORDER.finditer(text))
        numbers = {mutant.number: k for k, mutant in enumerate(self.mutants, 1) if mutant.function == name}
        for place in sorted(numbers, reverse=True):
            order = orders[place - 1]
            text = f"{text[: order.start()]}MUTANT_ORDER({numbers[place]}, {order[0]}){text[order.end() :]}"
        return text

    def folder(self) -> pathlib.Path:
        """Write the functions to a file, and return its folder."""
        folder = cbuild.scratch() / "weak_memory" / f"{self.path.stem}.{os.getpid()}"
        folder.mkdir(parents=True, exist_ok=True)
        # An assertion of the library would be steps of the model, and may call functions that the model does not have.
        head = '#pragma push_macro("assert")\n#undef assert\n#define assert(unused) ((void)0)\n'
        text = f'{head}{self.text()}\n#pragma pop_macro("assert")\n'
        (folder / "functions.h").write_text(text, encoding="utf-8")
        return folder


@cache
def read(name: str) -> Model:
    """Read the head of a model."""
    path = MODELS / f"{name}.c"
    head = re.sub(r"\n \* *", "\n", path.read_text(encoding="utf-8").partition("*/")[0])
    functions = tuple(
        (source, function)
        for source, names in re.findall(r"^from (csrc/\S+): ((?:(?!from\b)\w+[ \n])+)", head, re.M)
        for function in names.split()
    )
    sizes = dict(re.findall(r"(\w+=\d+) to (\d+)", head.partition("\nSizes.")[2]))
    mutants = tuple(
        Mutant(function=function, number=int(number), size=size)
        for function, number, size in re.findall(r"^(\w+) (\d+) (\w+=\d+):", head.partition("Mutants. ")[2], re.M)
    )
    assert functions and mutants, f"{path}: its head names no function or no mutant"
    return Model(path=path, functions=functions, mutants=mutants, sizes=sizes)


def explicit(text: str) -> str:
    """Return C text whose atomic operations all name their orders."""
    for found in reversed(list(_ATOMIC.finditer(text))):
        if found[1] is not None:
            continue
        end, depth = found.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        orders = ", memory_order_seq_cst" * (2 if "compare" in found[0] else 1)
        name = f"{found[0][:-1]}_explicit("
        text = f"{text[: found.start()]}{name}{text[found.end() : end - 1]}{orders}{text[end - 1 :]}"
    text = re.sub(r"atomic_int_least(\d+)_t", r"_Atomic int\1_t", text)
    return re.sub(r"_Atomic (\w+)", r"ATOMIC(\1)", text)


def cut(source: str, name: str) -> str:
    """Return the text of a function of csrc."""
    text = (cbuild.CSRC.parent / source).read_text(encoding="utf-8")
    found = re.search(rf"^\w[^\n;={{}}]*\b{name}\([^;{{}}]*\)\n{{\n.*?^}}\n", text, re.M | re.S)
    assert found is not None, f"{source} has no function {name}"
    return explicit(found[0])


def relacy(model: Model, size: str) -> pathlib.Path:
    """Compile a model for Relacy, or skip the test."""
    if not RELACY.exists() or shutil.which("clang++") is None:
        pytest.skip(f"no {RELACY} (Debian: relacy-dev), or no clang++")
    begin = ["clang++", "-std=gnu++20", "-O1", "-w", "-x"]
    header = cbuild.compile_c([*begin, "c++-header", str(MODELS / "model.h")], "model.pch")  # once for all models
    more = ["-include-pch", str(header), f"-D{size}", f"-I{model.folder()}", HEADERS]
    return cbuild.compile_c([*begin, "c++", str(model.path), *more], size)


def explore(program: pathlib.Path, preemptions: str, mutant: int = 0) -> str:
    """Run a model under Relacy, and return what it prints."""
    command = [str(program), preemptions, str(mutant)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300).stdout


def genmc(model: Model, size: str, order: str, mutant: int = 0) -> str:
    """Run a model under GenMC, which the environment variable GENMC names, and return what it prints."""
    options = [
        f"-{order}",
        "-check-liveness",
        "-disable-spin-assume",
        "-sr",
        "--",
        "-w",
        f"-D{size}",
        f"-DMUTANT={mutant}",
        f"-I{model.folder()}",
        HEADERS,
    ]
    command = [os.environ["GENMC"], *options, str(model.path)]
    with (cbuild.scratch() / "genmc").open("w") as lock:  # every run compiles into the same file of /tmp
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    return done.stdout + done.stderr
