"""``mpiio-ext help``: pages in a terminal; terminal answers name pages that are there."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.common import guide
from support.launch import ROOT

#: Packages whose texts reach a terminal.
PACKAGES = ("mpiio_ext", "analytics", "delegates", "partitioning", "pioneer")


def test_a_page_is_shown_by_its_name() -> None:
    shown = CliRunner().invoke(main, ["help", "howto/hdf5"])
    assert shown.exit_code == 0 and shown.output == (ROOT / "docs/howto/hdf5.md").read_text(encoding="utf-8")
    assert CliRunner().invoke(main, ["help", "hdf5"]).output == shown.output
    listed = CliRunner().invoke(main, ["help"]).output
    assert re.search(r"^howto/fortran  +My program is Fortran$", listed, re.MULTILINE)
    assert len(listed.splitlines()) == len(guide.titles()) > 50


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hdf", "there is no page hdf; did you mean howto/hdf5?"),
        ("howto/lustr", "did you mean howto/lustre?"),
        ("hints", "several pages are called hints: howto/hints, reference/hints"),
        ("../README", "there is no page ../README; mpiio-ext help lists all"),
    ],
)
def test_another_name_is_answered_by_the_names_of_pages(name: str, said: str) -> None:
    done = CliRunner().invoke(main, ["help", name])
    assert done.exit_code == 2 and said in done.stderr


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
