"""The page cache of delegates, in C, under sanitizers: threads and processes on it, some of which are killed."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from support import cbuild, fuzz

MODULES = ("common", "typemap", "storage", "cache")


def checked(name: str) -> pathlib.Path:
    return cbuild.program(f"cache/{name}.c", *MODULES)


def raced(name: str) -> pathlib.Path:
    return cbuild.threads_program(f"cache/{name}.c", *MODULES)


FILE = "FILE"
#: What runs once: how it is built, the program and its arguments, of which FILE is in the test's folder.
RUNS: dict[str, tuple[Callable[[str], pathlib.Path], str, tuple[str, ...]]] = {
    "layout, errors and accesses, case by case": (checked, "test_cache", ()),
    "layout, errors and accesses of threads": (raced, "test_cache", ()),
    "dirty bytes are exact": (checked, "test_dirty", fuzz.words(1000)),
    "dirty bytes of several threads": (raced, "test_dirty", fuzz.words(100)),
    "misses are exact while the table changes": (checked, "test_frames", fuzz.words(50000)),
    "misses while the table changes, of threads": (raced, "test_frames", fuzz.words(50000)),
    "requests of many threads": (checked, "test_ring", ("threads", *fuzz.words(2000))),
    "requests of many threads race for nothing": (raced, "test_ring", ("threads", *fuzz.words(2000))),
    "requests of processes, some of which are killed": (checked, "test_ring", ("processes", *fuzz.words(2000))),
    "pages are flushed and evicted": (checked, "test_access", ("threads", FILE, fuzz.seed(), "1", "2")),
    "accesses of threads race for nothing": (raced, "test_access", ("threads", FILE, fuzz.seed(), "1", "20")),
    "a killed delegate loses nothing": (checked, "test_access", ("processes", FILE, fuzz.seed(), "20")),
    "a killed delegate, and a client with a page in its hands": (
        checked,
        "test_access",
        ("holders", FILE, fuzz.seed()),
    ),
    "a killed survivor": (checked, "test_access", ("rescuers", FILE, fuzz.seed(), "20")),
    "no posted token is overlooked": (checked, "test_ring_search", fuzz.words(300)),
}


@pytest.mark.parametrize("name", RUNS)
def test_once(tmp_path: pathlib.Path, name: str) -> None:
    build, program, arguments = RUNS[name]
    cbuild.passes(build(program), *(tmp_path / "file" if word == FILE else word for word in arguments))


#: Around the 4,096 tokens that a word of the set's upper level stands for; 7,326 and 65,000 are such of real caches.
TOKENS = ("4095", "4097", "7326", "65000")


@pytest.mark.slow_with("*-4095", "checked-7326", "raced-4097", "raced-65000")
@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("build", [checked, raced])
def test_requests_with_many_tokens(build: Callable[[str], pathlib.Path], tokens: str) -> None:
    cbuild.passes(build("test_ring"), "threads", *fuzz.words(2000), tokens)


@pytest.mark.slow_with("4095", "7326")
@pytest.mark.parametrize("tokens", TOKENS)
def test_requests_of_processes_with_many_tokens(tokens: str) -> None:
    cbuild.passes(checked("test_ring"), "processes", *fuzz.words(2000), tokens)


@pytest.mark.slow_with("4097", "7326")
@pytest.mark.parametrize("tokens", TOKENS)
def test_accesses_with_many_tokens(tmp_path: pathlib.Path, tokens: str) -> None:
    """More frames than the file has pages; three of the tokens are slots."""
    cbuild.passes(checked("test_access"), "frames", str(tmp_path / "file"), fuzz.seed(), "1", "1", str(int(tokens) - 3))


#: Mistakes in mpiox_ring.c that the search through all orders of steps must find.
MISTAKES = {
    "a leap beyond the set": ("span = group < words - word ? group : words - word;", "span = group;"),
    "the bell before the post": (
        "    atomic_fetch_or(&pending_of(ring)[word], bit(token));\n"
        "    atomic_fetch_or(&summary_of(ring)[word / 64], bit(word));\n"
        "    mpiox_futex_add(&ring->bell);\n",
        "    mpiox_futex_add(&ring->bell);\n"
        "    atomic_fetch_or(&pending_of(ring)[word], bit(token));\n"
        "    atomic_fetch_or(&summary_of(ring)[word / 64], bit(word));\n",
    ),
    "the summary before the post": (
        "    atomic_fetch_or(&pending_of(ring)[word], bit(token));\n"
        "    atomic_fetch_or(&summary_of(ring)[word / 64], bit(word));\n",
        "    atomic_fetch_or(&summary_of(ring)[word / 64], bit(word));\n"
        "    atomic_fetch_or(&pending_of(ring)[word], bit(token));\n",
    ),
    "a summary cleared too late": (
        "    atomic_fetch_and(summary, ~bit(word));\n    const uint64_t found = atomic_load(pending);\n",
        "    const uint64_t found = atomic_load(pending);\n    atomic_fetch_and(summary, ~bit(word));\n",
    ),
}


def interleaved(folder: pathlib.Path, name: str) -> pathlib.Path:
    """Compile test_ring_interleaved.c, which includes mpiox_ring.c, with the one of a folder or of csrc."""
    source = cbuild.ROOT / "tests" / "c" / "cache" / "test_ring_interleaved.c"
    folders = [f"-I{folder}", *cbuild.includes(), f"-I{cbuild.ROOT / 'tests' / 'c'}"]
    command = [cbuild.compiler(), *cbuild.FLAGS, "-O2", *folders, str(source), *cbuild.sources()]
    return cbuild.compile_c([*command, "-pthread"], name)


def test_every_order_of_steps_of_two_clients_and_a_delegate(tmp_path: pathlib.Path) -> None:
    program = interleaved(tmp_path, "ring_interleaved")
    cbuild.passes(program)
    assert cbuild.run(program, "late").returncode == 1  # looks at the bell when it has looked at the tokens


@pytest.mark.slow_with("a leap beyond the set", "a summary*")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_that_search_finds_mistakes(tmp_path: pathlib.Path, mistake: str) -> None:
    before, after = MISTAKES[mistake]
    text = (cbuild.CSRC / "iod" / "cache" / "mpiox_ring.c").read_text("utf-8")
    assert text.count(before) == 1
    (tmp_path / "mpiox_ring.c").write_text(text.replace(before, after), "utf-8")
    done = cbuild.run(interleaved(tmp_path, f"ring_{len(mistake)}"))
    assert done.returncode == 1 and "lost after" in done.stderr, done.stdout + done.stderr
