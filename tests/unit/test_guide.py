"""``mpiio-ext help``: pages in a terminal; terminal answers name pages that are there."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from mpiio_ext.cli import main
from mpiio_ext.cli.plain import plain
from mpiio_ext.common import guide
from support.launch import ROOT

#: Packages whose texts reach a terminal.
PACKAGES = ("mpiio_ext", "analytics", "delegates", "partitioning", "pioneer")


@pytest.mark.parametrize(
    "name",
    [
        "fortran",
        "Fortran",
        "howto/fortran",
        "docs/howto/fortran.md",
        "./HOWTO/Fortran.md",
        "my program is Fortran",
        "../howto/fortran.md#small-records",
        "[Fortran](fortran.md)",
        "https://example.org/docs/howto/fortran.html",
    ],
)
def test_a_page_is_shown_by_its_name_title_path_or_link(name: str) -> None:
    shown = CliRunner().invoke(main, ["help", *name.split()])
    assert shown.exit_code == 0 and shown.output.startswith("My program is Fortran\n=====================\n\n")


def test_all_pages_are_listed() -> None:
    listed = CliRunner().invoke(main, ["help"]).output
    assert re.search(r"^howto/fortran  +My program is Fortran$", listed, re.MULTILINE)
    assert len(listed.splitlines()) == len(guide.titles()) > 50


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hdf", "there is no page hdf; did you mean howto/hdf5?"),
        ("howto/lustr", "did you mean howto/lustre?"),
        ("Fotran", "did you mean howto/fortran?"),
        ("slow", "did you mean howto/hdf5, howto/subfiles or howto/why-was-my-job-slow?"),
        ("hints", "several pages are called hints: howto/hints, reference/hints"),
        ("bench", "`mpiio-ext bench --help` describes the command"),
        ("../README", "there is no page ../README; mpiio-ext help lists all"),
    ],
)
def test_another_name_is_answered_by_the_names_of_pages(name: str, said: str) -> None:
    done = CliRunner().invoke(main, ["help", name])
    assert done.exit_code == 2 and said in done.stderr


PAGE = """# Heads and *tails*

<!-- not run: two
lines -->
See [the `hints` page](../reference/hints.md#x), [below](#y), [ROMIO](https://example.org/a),
and [README](../../README.md).
Stars in `a*b*c` stay; **bold** goes, so does \\*.

```sh
run [a](b.md)   # as it is

end
```

```{toctree}
hidden
```

```{eval-rst}
.. automodule:: mpiio_ext
```

- one item that is longer
  than a line
- two

| name | what it does |
|---|---|
| `a\\|b` | a long text in a cell that goes on |
| c | ![A picture](x.svg) |
"""
PLAIN = """Heads and tails
===============

See the `hints` page (reference/hints),
below, ROMIO (https://example.org/a),
and README (README.md). Stars in `a*b*c`
stay; bold goes, so does *.

    run [a](b.md)   # as it is

    end

(The site of the documents has a generated part here: `make docs`.)

- one item that is longer than a line
- two

name   what it does
-----  ---------------------------------
`a|b`  a long text in a cell that goes
       on

c      [picture: A picture]
"""


def test_markdown_becomes_plain_text() -> None:
    assert plain(PAGE, "howto/a", 40) == PLAIN


@pytest.mark.parametrize("name", guide.titles())
def test_every_word_of_a_page_is_shown_and_no_markup(name: str) -> None:
    text = guide.text_of(name)
    shown, whole = plain(text, name, 100), plain(text, name, 10**6)
    code = set(shown.splitlines())
    prose = "\n".join(line for line in shown.splitlines() if not line.startswith("    "))
    assert not re.search(r"\]\(|<!--|```|^\||^#|automodule|:hidden:", prose, re.MULTILINE)
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "fence" and not token.info.startswith("{"):
            assert {f"    {line}".rstrip() for line in token.content.splitlines()} <= code
        for part in token.children or ():
            if part.type in ("text", "code_inline"):
                assert not {word for word in re.findall(r"[\w.-]+", part.content) if word not in whole}


def test_terminal_answers_name_pages_that_are_there() -> None:
    """No text that a command prints names a file of docs/, which an installed package has nowhere."""
    known = guide.titles()
    sources = {path: path.read_text(encoding="utf-8") for folder in PACKAGES for path in (ROOT / folder).rglob("*.py")}
    named = [name for text in sources.values() for name in re.findall(r"mpiio-ext help ([a-z]+/[\w-]+)", text)]
    assert len(named) > 10 and set(named) <= known.keys()
    see = re.findall(r'"(docs/[\w/-]+\.md)"', sources[ROOT / "analytics/diagnosis/advice.py"])
    assert len(see) > 10 and {guide.command_of(path).split()[-1] for path in see} <= known.keys()
    printed = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path, text in sources.items()
        if path.name != "advice.py"
        for line in text.splitlines()
        if re.search(r'f?"[^"]*docs/(tutorial|howto|reference|explanation)/', line) and '"""' not in line
    ]
    assert not printed
