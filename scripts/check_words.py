"""Count the words and sentences of the documents, docstrings and heads of C files, and find what is too long.

Problem.    Pages grow a sentence at a time, and long sentences are read twice.
Algorithm.  A Markdown parser takes each page apart. Blocks of code, comments and directives do not count, a piece of
            code between backticks is one word. A sentence ends with its paragraph, list item or cell, and at ``.``,
            ``!`` or ``?`` before a blank. The average is that of running text; the longest sentence may be in a cell.
            In a docstring or the first comment of a C file a paragraph ends at a blank line, and before an item: a line
            that begins with a dash, a number, a name and a colon, or a word and a gap. Indented examples are no text.
Guarantees. Every page of docs/ is counted but notes (docs/notes), which are not kept up to date. A page is at most as
            long as the kind of its folder allows, a how-to page has short sentences and needs at most `HOWTO_GRADE`
            years of school, all pages together stay within `TOTAL`, and no sentence is over `LONGEST` words. What is
            made from the sources (`_GENERATED`) counts for sentences alone.
Output.     A table of the pages; problems as ``path: text``, and the exit status 1 when there is any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
#: Most words of a page, by its folder in docs/; pages directly in docs/ have no kind yet.
WORDS = {"tutorial": 1_200, "howto": 1_200, "explanation": 1_750, "reference": 2_500, "project": 1_700}
#: Most words of all pages together.
TOTAL = 45_000
#: Most words of a sentence of a how-to page on average.
HOWTO_AVERAGE = 20.0
#: Highest Flesch-Kincaid grade of a how-to page: years of school that a reader needs.
HOWTO_GRADE = 10.0
#: Most words of a sentence.
LONGEST = 40
#: Folders whose docstrings and heads of C files are read.
SOURCES = ("mpiio_ext", "delegates", "partitioning", "pioneer", "analytics", "csrc")
#: Folders in which sentences of docstrings and heads are longer, and how many: none may be added.
LONG_SENTENCES = {"csrc/core/storage": 8, "csrc/iod": 19, "mpiio_ext/report": 2}

_GENERATED = re.compile(r"<!-- begin: .*?<!-- end: ", re.DOTALL)
_ITEM = re.compile(r"mpiio-ext |[-*•] |\(?\d+[.)] |[\w*., ]+ : |\S.*\S {3,}\S|\S+(?: \S+)? {2,}\S|[A-Z]\w+: ")
_EXAMPLE_INDENT = 4
_VOWELS = re.compile(r"[aeiouy]+")
_END = re.compile(r"(?<=[.!?])[)\"”*_]*\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was counted in a page.

    Attributes
    ----------
    words : all words, those of headings and tables among them.
    sentences : words of each sentence of running text: paragraphs and list items.
    cells : words of each sentence in the cells of tables.
    syllables : of running text, as groups of vowels; an e at the end of a word is silent.
    """

    words: int
    sentences: tuple[int, ...]
    cells: tuple[int, ...]
    syllables: int = 0

    @property
    def average(self) -> float:
        """Words of a sentence of running text; 0 where there is none."""
        return sum(self.sentences) / len(self.sentences) if self.sentences else 0.0

    @property
    def grade(self) -> float:
        """Flesch-Kincaid grade of running text (Kincaid et al., Navy report 8-75, 1975); 0 where there is none."""
        words = sum(self.sentences)
        return 0.39 * self.average + 11.8 * self.syllables / words - 15.59 if words else 0.0

    @property
    def long(self) -> int:
        """How many sentences are longer than `LONGEST` words."""
        return sum(words > LONGEST for words in (*self.sentences, *self.cells))


def _words(text: str) -> int:
    return sum(any(letter.isalnum() for letter in word) for word in text.split())


def _syllables(text: str) -> int:
    words = re.findall(r"[a-z]+", text.lower())
    silent = sum(word.endswith("e") and not word.endswith("le") and len(_VOWELS.findall(word)) > 1 for word in words)
    return sum(max(1, len(_VOWELS.findall(word))) for word in words) - silent


def measure(text: str) -> Measured:
    """Count the words and sentences of a page."""
    total = syllables = 0
    found: dict[str, list[int]] = {"paragraph": [], "cell": [], "heading": []}
    where = "paragraph"
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type in {"paragraph_open", "th_open", "td_open", "heading_open"}:
            where = token.type.removesuffix("_open").replace("th", "cell").replace("td", "cell")
        for_reader = {"text": lambda child: child.content, "code_inline": lambda _: "code", "softbreak": lambda _: " "}
        plain = "".join(for_reader[child.type](child) for child in token.children or () if child.type in for_reader)
        total += _words(plain)
        syllables += _syllables(plain) if where == "paragraph" else 0
        found[where] += [count for part in _END.split(plain) if (count := _words(part))]
    return Measured(words=total, sentences=tuple(found["paragraph"]), cells=tuple(found["cell"]),
                    syllables=syllables)


def pages(docs: Path) -> dict[str, Measured]:
    """Return {path below docs/: what was counted} of every page but notes."""
    found = {}
    for path in sorted(path for path in docs.rglob("*.md") if path.relative_to(docs).parts[0] != "notes"):
        text = path.read_text(encoding="utf-8")
        made = sum(measure(part).words for part in _GENERATED.findall(text))
        whole = measure(text)
        found[path.relative_to(docs).as_posix()] = replace(whole, words=whole.words - made)
    return found


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each docstring of a Python file, or of the comment at the head of a C file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text is not None:
                    yield getattr(node, "lineno", 1), text
    elif head := re.match(r"\s*/\*(.*?)\*/", source, re.DOTALL):
        yield 1, re.sub(r"^ \* ?", "", head[1], flags=re.MULTILINE)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a docstring or comment; items are paragraphs of their own, examples are left out."""
    paragraphs: list[list[str]] = [[]]
    for line in text.splitlines():
        words = line.strip()
        if not any(letter.isalnum() for letter in words):  # a blank line, or one that underlines
            paragraphs.append([])
        elif not (not paragraphs[-1] and line.startswith(" " * _EXAMPLE_INDENT)) or _ITEM.match(words):
            if _ITEM.match(words):
                paragraphs.append([])
            paragraphs[-1].append(re.sub(r"^[\w*., ]+ : ", "", words))  # names of parameters are no words
    for paragraph in filter(None, paragraphs):
        yield from _END.split(re.sub(r"``.+?``|`[^`]+`", "code", " ".join(paragraph)))


def source_problems(root: Path) -> list[str]:
    """Return the sentences of docstrings and heads of C files that are too long."""
    files = [file for folder in SOURCES for pattern in ("*.py", "*.[ch]") for file in (root / folder).rglob(pattern)]
    found = [f"{file.relative_to(root)}:{line}: a sentence of {_words(sentence)} words (at most {LONGEST}): "
             f"{' '.join(sentence.split()[:6])} …"
             for file in sorted(files) for line, text in texts(file) for sentence in sentences(text)
             if _words(sentence) > LONGEST]  # fmt: skip
    for folder, most in LONG_SENTENCES.items():
        there = [problem for problem in found if problem.startswith(f"{folder}/")]
        if len(there) <= most:
            found = [problem for problem in found if problem not in there]
    return found


def problems(measured: dict[str, Measured]) -> list[str]:
    """Return what is too long."""
    found = []
    for name, page in measured.items():
        kind = name.partition("/")[0]
        if page.words > WORDS.get(kind, page.words):
            found.append(f"docs/{name}: {page.words} words (at most {WORDS[kind]}, a page in {kind}/)")
        if kind == "howto" and page.average > HOWTO_AVERAGE:
            found.append(f"docs/{name}: {page.average:.1f} words a sentence (at most {HOWTO_AVERAGE:.0f})")
        if kind == "howto" and page.grade > HOWTO_GRADE:
            found.append(f"docs/{name}: Flesch-Kincaid grade {page.grade:.1f} (at most {HOWTO_GRADE:.0f})")
    total = sum(page.words for page in measured.values())
    if total > TOTAL:
        found.append(f"docs: {total} words (at most {TOTAL})")
    return found + [f"docs/{name}: {page.long} sentences over {LONGEST} words"
                    for name, page in measured.items() if page.long]  # fmt: skip


def table(measured: dict[str, Measured]) -> str:
    """Return the pages as lines of a table, with their sum."""
    rows = [f"{'words':>6} {'a sentence':>10} {'longest':>7} {'over ' + str(LONGEST):>7} {'grade':>5}  page"]
    for name, page in measured.items():
        longest = max((*page.sentences, *page.cells), default=0)
        rows.append(f"{page.words:6} {page.average:10.1f} {longest:7} {page.long:7} {page.grade:5.1f}  {name}")
    long = sum(page.long for page in measured.values())
    total = sum(page.words for page in measured.values())
    rows.append(f"{total:6} {'':10} {'':7} {long:7} {'':5}  all {len(measured)} pages")
    return "\n".join(rows)


def main() -> int:
    """Print the table and the problems; return 1 when there is any problem."""
    measured = pages(ROOT / "docs")
    print(table(measured))
    found = problems(measured) + source_problems(ROOT)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
