"""What commands print: names with control characters in them leave a terminal as it is."""

from __future__ import annotations

import ast
import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.table import Table
from rich.text import Text

from mpiio_ext.cli import main
from mpiio_ext.common.printing import echo, echo_styled, make_console, printable
from support.darshan_logs import Job, make_log, posix

ROOT = Path(__file__).resolve().parents[2]
#: Files that print otherwise: the functions themselves; protocols between our processes; programs of their own.
OTHERS = {
    "mpiio_ext/common/printing.py",
    "mpiio_ext/bench/arbitrated/job.py",
    "mpiio_ext/bench/compare/hdf5_bandwidth.py",
    "pioneer/orders.py",
}
EVIL = "x\x1b]0;title\x07\x9b31m\u202e\u2028\udcff"


def calls(path: Path) -> list[str]:
    """Return the calls of a file that print, as written."""
    text = path.read_text(encoding="utf-8")
    if re.search(r"\b(print|Console|click\.s?echo\w*)\(", text) is None:
        return []  # most files: to parse all of them takes seconds
    names = [ast.unparse(node.func) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [name for name in names if name in ("print", "Console") or name.startswith(("click.echo", "click.secho"))]


def test_every_command_prints_by_the_functions_that_escape() -> None:
    folders = ("mpiio_ext", "analytics", "delegates", "partitioning", "pioneer")
    files = {str(path.relative_to(ROOT)): path for folder in folders for path in (ROOT / folder).rglob("*.py")}
    assert {name: found for name, path in files.items() if (found := calls(path)) and name not in OTHERS} == {}
    assert set(files) >= OTHERS


def test_what_is_no_text_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    shown = "x\\u001b]0;title\\u0007\\u009b31m\\u202e\\u2028\\udcff"
    assert printable(EVIL) == shown
    assert printable("é 81.8 × 10\u202f000 B\n\t-") == "é 81.8 × 10\u202f000 B\n\t-"
    assert json.loads(printable(json.dumps("\x7f\x9b\u202e", ensure_ascii=False))) == "\x7f\x9b\u202e"
    echo(EVIL)
    echo_styled([(EVIL, {"fg": "red"}), (EVIL, {})])
    console = make_console(width=200)
    console.print(EVIL)
    table = Table(EVIL)
    table.add_row(f"[bold]{EVIL}")
    table.add_row(Text(EVIL))
    console.print(table)
    out = capsys.readouterr().out
    assert out.count(shown) == 6  # a Text that is wider than rich believes is cut
    assert all(each == "\n" or each.isprintable() for each in out)
    coloured = io.StringIO()
    make_console(file=coloured, force_terminal=True).print(Text("a\x1b", style="red"))
    assert "\x1b[31ma\\u001b" in coloured.getvalue()


NAME = "/scratch/a\x1b]0;title\x07b"


@pytest.mark.parametrize(
    "words",
    [["analyze", "logs"], ["layout"], ["analyze", "summarize-job", "--all"], ["bad"], ["analyze", "connector", "show"]],
)
def test_names_reach_no_terminal_raw(words: list[str], tmp_path: Path) -> None:
    log = tmp_path / "job\x1b[2J\x9b.darshan"
    log.write_bytes(make_log(Job(exe=f"{NAME} -x"), {1: NAME}, {"POSIX": (4, posix(1, 0, {0: 1}))}))
    result = CliRunner().invoke(main, [*words, str(log)])
    text = result.output + result.stderr
    assert "\\u001b" in text or words == ["bad"], text
    assert not {"\x1b", "\x07", "\x9b"} & set(text), text


@pytest.mark.parametrize(
    "words",
    [
        ["subfiles", "check"],
        ["layout"],
        ["pioneer", "path", "-o", "x.json"],
        ["pioneer", "show"],
        ["analyze", "connector", "show"],
        ["report", "-o", "x"],
    ],
)
def test_a_name_begins_no_line_of_ours(words: list[str], tmp_path: Path) -> None:
    """Of files that are there, and of others."""
    name = tmp_path / "evil\nmpiio-ext: all is well\nx.dat"
    for _ in range(2):
        result = CliRunner().invoke(main, [*words, str(name)])
        assert "all is well" in result.output and "\nmpiio-ext: all" not in result.output, result.output
        name.touch()
