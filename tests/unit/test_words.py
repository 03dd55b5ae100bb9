"""The check of the documents' lengths, on pages with known words and sentences, and on the project's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.scripts import load

ROOT = Path(__file__).resolve().parents[2]
PAGE = """\
# Two words

One sentence of five. A second one with `a piece of code` in 4.1
lines! Is [this link](elsewhere.md#a-b) short?

<!-- output -->
```sh
mpiio-ext run -- nothing of this counts
```

- an item
- another – with a dash

| head | of a table |
|---|---|
| a cell. And another | **bold.** Last |
"""


@pytest.fixture(scope="module")
def check():
    return load("scripts/check_words.py")


def test_words_and_sentences_of_a_page(check) -> None:
    found = check.measure(PAGE)
    assert found.sentences == (4, 8, 4, 2, 4)
    assert found.cells == (1, 3, 2, 2, 1, 1)
    assert found.words == 2 + sum(found.sentences) + sum(found.cells)
    assert found.average == pytest.approx(22 / 5)


def test_grade_of_a_page(check) -> None:
    easy = check.measure("The cat sat on the mat. It was a big cat.")
    assert (easy.sentences, easy.syllables) == ((6, 5), 11)
    assert easy.grade == pytest.approx(0.39 * 5.5 + 11.8 - 15.59)
    hard = check.measure("Collective communication necessitates comprehensive interoperability considerations.")
    assert hard.syllables == 3 + 5 + 5 + 4 + 8 + 5
    assert hard.grade > check.HOWTO_GRADE
    assert check.problems({"howto/hard.md": hard}) == [
        f"docs/howto/hard.md: Flesch-Kincaid grade {hard.grade:.1f} (at most 10)"
    ]


def test_what_is_too_long_is_found(check, tmp_path: Path) -> None:
    for name, text in {
        "howto/fits.md": "A short sentence. " * 5,
        "howto/long.md": "A short sentence. " * 1000,
        "howto/slow.md": ("word " * check.LONGEST + "end. ") * 3,
        "tables.md": f"| {'cell ' * check.LONGEST} and more |\n|---|\n",
        "made.md": f"Two words.\n\n<!-- begin: list -->\n| {'cell ' * check.TOTAL} |\n|---|\n<!-- end: list -->\n",
        "huge.md": "Three more words. " * check.TOTAL,
        "notes/2026-01-01-huge.md": "word " * check.TOTAL,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    measured = check.pages(tmp_path)
    assert list(measured) == ["howto/fits.md", "howto/long.md", "howto/slow.md", "huge.md", "made.md", "tables.md"]
    assert measured["made.md"].words == 2
    said = check.problems(measured)
    limit = check.WORDS["howto"]
    assert said[:3] == [
        f"docs/howto/long.md: 3000 words (at most {limit}, a page in howto/)",
        f"docs/howto/slow.md: {check.LONGEST + 1}.0 words a sentence (at most {check.HOWTO_AVERAGE:.0f})",
        f"docs/howto/slow.md: Flesch-Kincaid grade {measured['howto/slow.md'].grade:.1f} (at most 10)",
    ]
    total = sum(page.words for page in measured.values())
    assert said[3:] == [
        f"docs: {total} words (at most {check.TOTAL})",
        f"docs/howto/slow.md: 3 sentences over {check.LONGEST} words",
        f"docs/made.md: 1 sentences over {check.LONGEST} words",
        f"docs/tables.md: 1 sentences over {check.LONGEST} words",
    ]
    assert f"{total:6}" in check.table(measured).splitlines()[-1]


def test_sentences_of_docstrings_and_heads(check, tmp_path: Path) -> None:
    long = "word " * check.LONGEST + "end."
    for name, text in {
        "mpiio_ext/fits.py": '"""One. No."""\n\ndef f(a):\n    """Return.\n\n    a : int\n        A number.\n    """\n',
        "mpiio_ext/long.py": f'"""Head.\n\nProblem.  A.\n{long}\n"""\n\ndef f():\n    """B.\n\n    {long}\n    """\n',
        "mpiio_ext/items.py": '"""Head.\n\n' + "- ten words of an item that is no sentence here\n" * 9 + '"""\n',
        "csrc/core/long.c": f"/*\n * long.c - a file.\n *\n * Algorithm. {long}\n */\nint x; /* {long} */\n",
        "csrc/iod/known.h": f"/* {long} */\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    said = check.source_problems(tmp_path)
    assert [problem.partition(": ")[0] for problem in said] == ["csrc/core/long.c:1", "mpiio_ext/long.py:1",
                                                                "mpiio_ext/long.py:7"]  # fmt: skip
    assert list(check.sentences("name : int\n    It is one.\n\n    $ an example\n")) == ["int It is one."]


def test_a_page_without_sentences(check) -> None:
    found = check.measure("```sh\nmake\n```\n")
    assert (found.words, found.average, found.long) == (0, 0.0, 0)


def test_the_documents(check) -> None:
    assert check.problems(check.pages(ROOT / "docs")) == []
