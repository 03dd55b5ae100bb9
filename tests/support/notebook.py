"""The notebook of the documents: run cell by cell, and what its cells show, without what differs from run to run.

``python tests/support/notebook.py`` puts what the cells show now into the notebook.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "jobs.ipynb"

#: Runs the cells of argv[1]; its last line is what each has printed, and what its last expression is in text and HTML.
HARNESS = """
import ast, contextlib, io, json, sys
names, shown = {}, []
for source in json.loads(sys.argv[1]):
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    html = getattr(value, "_repr_html_", None)
    shown.append([printed.getvalue(), None if value is None else repr(value), html() if html else None])
sys.stdout.flush()
print(json.dumps([shown, eval(sys.argv[2], names)], default=str))
"""
#: Larger HTML is not kept in the notebook, nor are drawings.
_MOST_HTML = 8_000
_NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
#: What differs from run to run: numbers with a fraction, and those of time, speed and share.
_VARIES = re.compile(
    r"\d[\d,]*\.\d+(?:e[-+]?\d+)?|"
    rf"{_NUMBER}(?=(?:\u202f|\s)?(?:n?s|µs|ms|us|min|h|%|[kMG]?B/s|×)(?![\w/]))"
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?"
)
#: Cells whose results are the same in every run: everything that they show is compared.
SAME = ("domains", "jobs", "weather", "shared")


def cells_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells with code."""
    return [cell for cell in document["cells"] if cell["cell_type"] == "code"]


def is_same(cell: dict[str, Any]) -> bool:
    """Return whether a cell shows the same in every run."""
    return "".join(cell["source"]).rstrip().rpartition("\n")[2] in SAME


def stripped(text: str, folder: str, *, same: bool) -> str:
    """Return what a cell has shown without the folder, addresses and, unless it is the same, what varies."""
    text = re.sub(r" at 0x[0-9a-f]+", "", text.replace(folder, "."))
    return text if same else _VARIES.sub("…", text)


def outputs_of(
    cell: dict[str, Any], shown: tuple[str, str | None, str | None], folder: str, number: int
) -> list[dict[str, Any]]:
    """Return the outputs of a cell, as a notebook has them."""
    printed, plain, html = (None if text is None else stripped(text, folder, same=is_same(cell)) for text in shown)
    found: list[dict[str, Any]] = []
    if printed:
        found.append({"output_type": "stream", "name": "stdout", "text": printed.splitlines(keepends=True)})
    if plain is not None:
        data = {"text/plain": plain.splitlines(keepends=True)}
        if html is not None and len(html) <= _MOST_HTML and "<svg" not in html:
            data["text/html"] = html.splitlines(keepends=True)
        found.append({"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data})
    return found


def with_outputs(document: dict[str, Any], shown: list[tuple[str, str | None, str | None]], folder: str) -> None:
    """Put what the cells have shown into a notebook."""
    for number, (cell, one) in enumerate(zip(cells_of(document), shown, strict=True), 1):
        cell["execution_count"], cell["outputs"] = number, outputs_of(cell, one, folder, number)


def command(document: dict[str, Any], check: str) -> list[str]:
    """Return the command that runs the cells and evaluates `check` behind them."""
    sources = ["".join(cell["source"]) for cell in cells_of(document)]
    return [sys.executable, "-c", HARNESS, json.dumps(sources), check]


def _keep() -> None:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        done = subprocess.run(
            command(document, "None"),
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env={**os.environ, "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
        )
        with_outputs(document, json.loads(done.stdout.splitlines()[-1])[0], folder)
    NOTEBOOK.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _keep()
