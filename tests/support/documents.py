"""The Markdown of the repository as tests see it: code blocks with what is said about them, links, anchors.

A block of code is told apart by an HTML comment right above it:

``<!-- file: NAME -->``        the block is the content of a file of that name, which later commands use
``<!-- not run: REASON -->``   the commands cannot run in a test, for this reason
``<!-- run: slow -->``         the commands run with --run-slow only
``<!-- run: slurm -->``        the commands run under the Slurm of scripts/slurm only, which no test starts
``<!-- run: slow; status 1: REASON -->``   and may end with status 1, which is their verdict and no failure
``<!-- output -->``            the block is what the commands above it print; see :func:`matches`
"""

from __future__ import annotations

import functools
import itertools
import pathlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHELL = frozenset({"sh", "bash"})

_MARK = re.compile(r"<!--\s*(file|not run|run|output)(?::\s*(.*?))?\s*-->", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of a page.

    Attributes
    ----------
    line : its first line in the page, from 1 on.
    language : "sh", "python", "" …
    text : its content.
    mark : "file", "not run", "run", "output", or "" where nothing stands above it.
    argument : of the mark: the file's name, the reason, "slow", "slow; status 1: ...", "slurm".
    """

    line: int
    language: str
    text: str
    mark: str
    argument: str

    @property
    def is_command(self) -> bool:
        """Whether the block is something to run: of a shell, or of Python where it is no file."""
        return self.language in SHELL or (self.language == "python" and self.mark != "file")

    @property
    def is_run_here(self) -> bool:
        """Whether tests run it: it is a command, and neither excused nor for a Slurm."""
        return self.is_command and self.mark != "not run" and not (self.mark == "run" and self.argument == "slurm")

    @property
    def is_slow(self) -> bool:
        """Whether it runs with --run-slow only."""
        return self.mark == "run"

    @property
    def may_judge(self) -> bool:
        """Whether exit status 1 is a verdict of the command, which depends on the machine, and no failure."""
        return self.is_slow and self.argument.startswith("slow; status 1: ")


@functools.cache
def tokens(page: pathlib.Path) -> tuple[Token, ...]:
    """Return a page, parsed."""
    return tuple(MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")))


def blocks(page: pathlib.Path) -> Iterator[Block]:
    """Yield the blocks of code of a page, with their marks."""
    above = ""
    for token in tokens(page):
        if token.type == "html_block":
            above = token.content
        elif token.type == "fence":
            match = _MARK.fullmatch(above.strip())
            assert token.map is not None
            yield Block(
                line=token.map[0] + 1,
                language=token.info.split()[0] if token.info.split() else "",
                text=token.content,
                mark=match[1] if match else "",
                argument=(match[2] or "") if match else "",
            )
            above = ""
        else:
            above = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileLine:
    """A call of a compiler that a document tells its readers to make.

    Attributes
    ----------
    page : a page, or a source whose note at its head has the line.
    line : in the page, from 1 on.
    before : what the same block of a page has before it, which may set variables.
    command : with its continued lines.
    """

    page: pathlib.Path
    line: int
    before: str
    command: str


#: A compiler with options; not the word "cc" in a text, nor what only sets a variable to it.
_CALL = r"(?:cc|c99|gcc|g\+\+|clang|clang\+\+|mpicc|mpic\+\+|mpicxx|mpifort|gfortran)\s"
_COMPILER = re.compile(rf"{_CALL}.*\.(?:c|cpp|cc|f90|F90)\b")


def _code_of(page: pathlib.Path) -> Iterator[tuple[int, str]]:
    """Yield (first line, text) of the code of a page that calls a compiler; of a C source the note at its head."""
    content = page.read_text(encoding="utf-8")
    if not re.search(rf"\b{_CALL}", content):  # most pages, which need not be parsed
        return
    if page.suffix == ".md":
        for token in tokens(page):
            if token.type in {"fence", "code_block"} and token.map is not None:
                yield token.map[0] + (2 if token.type == "fence" else 1), token.content
        return
    head = re.match(r"/\*.*?\*/", content, re.DOTALL)
    if head is not None:
        yield 1, re.sub(r"^ \*(?: {0,3})", "", head[0], flags=re.MULTILINE)


def compile_lines() -> Iterator[CompileLine]:
    """Yield every call of a compiler in the pages and the heads of C sources that are tracked."""
    command = ["git", "ls-files", "*.md", "*.c", "*.h"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for page in (ROOT / name for name in listed.stdout.splitlines()):
        for first, text in _code_of(page):
            before: list[str] = []
            for number, line in _whole_lines(text):
                if _COMPILER.match(line.strip().removeprefix("$ ")):
                    command = line.strip().removeprefix("$ ").partition(" && ./")[0]
                    yield CompileLine(page=page, line=first + number, before="\n".join(before), command=command)
                elif page.suffix == ".md":
                    before.append(line)


def _whole_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number from 0 on, line) with lines that end in a backslash joined to the next."""
    begun, number = "", 0
    for at, line in enumerate(text.splitlines()):
        number = number if begun else at
        begun += line
        if begun.endswith("\\"):
            begun = begun[:-1]
            continue
        yield number, begun
        begun = ""


def links(page: pathlib.Path) -> Iterator[tuple[int, str]]:
    """Yield (line, target) of every link and picture of a page."""
    line = 0
    for token in tokens(page):
        line = token.map[0] + 1 if token.map else line
        for child in token.children or ():
            target = child.attrs.get("href") if child.type == "link_open" else child.attrs.get("src")
            if isinstance(target, str) and child.type in {"link_open", "image"}:
                yield line, unquote(target)


def inline_codes(page: pathlib.Path) -> Iterator[tuple[int, str]]:
    """Yield (line of the paragraph, text) of what stands between single backticks."""
    line = 0
    for token in tokens(page):
        line = token.map[0] + 1 if token.map else line
        yield from ((line, child.content) for child in token.children or () if child.type == "code_inline")


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@functools.cache
def anchors(page: pathlib.Path) -> frozenset[str]:
    """Return the anchors of a page's headings; the second of two equal ones ends in -1."""
    found: dict[str, int] = {}
    made = set()
    parsed = tokens(page)
    for token, content in itertools.pairwise(parsed):
        if token.type != "heading_open":
            continue
        text = "".join(c.content for c in content.children or () if c.type in {"text", "code_inline"})
        name = slug(text)
        made.add(f"{name}-{found[name]}" if name in found else name)
        found[name] = found.get(name, 0) + 1
    return frozenset(made)


def _line_pattern(line: str) -> str:
    """Return a pattern for one line: any number stands for any number, blanks for blanks, … for anything."""
    parts = re.split(r"(…|\d[\d.,]*|\s+)", line.strip())
    made = []
    for part in parts:
        if part == "…":
            made.append(".*?")
        elif part[:1].isdigit():
            made.append(r"\d[\d.,]*")
        elif part.isspace():
            made.append(r"\s+")
        else:
            made.append(re.escape(part))
    return r"[^\S\n]*" + "".join(made) + r"[^\S\n]*\n"


#: Whose time a first sentence has, and that of an average rank beside it: a busy machine may make any rank the slowest.
_RANK = re.compile(r"(rank \d+|the slowest rank|an average rank) of y(?=our program)", re.IGNORECASE)
_MEAN = re.compile(r"(; an average rank: [\d.]+ %| \(an average rank: [\d.]+ %\))")


def matches(expected: str, output: str) -> bool:
    """Return whether the lines of a page are in an output, one after the other.

    Numbers may be others, and as many blanks stand between words. A line that is "…" stands for any number of lines.
    """
    expected, output = (
        _MEAN.sub("", _RANK.sub(lambda rank: "Y" if rank[0][0].isupper() else "y", text)) for text in (expected, output)
    )
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else _line_pattern(line) for line in expected.strip("\n").splitlines()
    )
    return re.search(r"(?:\A|(?<=\n))" + pattern, output if output.endswith("\n") else output + "\n") is not None
