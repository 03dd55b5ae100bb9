"""The documents as an installed package has them: what a terminal answer names, a terminal can show.

Algorithm. The build copies the pages of docs/ into the package; a checkout has them in its own docs. A page is named by
its folder and file, without the extension: ``howto/hdf5``.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from mpiio_ext.errors import ArgumentError

#: Folders of pages for users, in the order of the list.
KINDS = ("tutorial", "howto", "reference", "explanation")


def folder() -> Path:
    """Return the folder of the pages."""
    package = Path(__file__).parents[1]
    return next(path for path in (package / "docs", package.parent / "docs") if path.is_dir())


def titles() -> dict[str, str]:
    """Return {name: title} of every page."""
    found = {}
    for kind in KINDS:
        for path in sorted((folder() / kind).glob("*.md")):
            heads = (line[2:] for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# "))
            found[f"{kind}/{path.stem}"] = next(heads, path.stem)
    return found


def command_of(document: str) -> str:
    """Return the command that shows a document: ``docs/howto/hdf5.md`` is ``mpiio-ext help howto/hdf5``."""
    return f"mpiio-ext help {document.removeprefix('docs/').removesuffix('.md')}"


def text_of(name: str) -> str:
    """Return the text of a page.

    Parameters
    ----------
    name : with its folder, or without it if one page alone is called so.

    Raises
    ------
    ArgumentError
        No page, or more than one, is called so; the message names the pages that could be meant.
    """
    known = list(titles())
    found = [each for each in known if name in (each, each.partition("/")[2])]
    if len(found) == 1:
        return (folder() / f"{found[0]}.md").read_text(encoding="utf-8")
    if found:
        raise ArgumentError(f"several pages are called {name}: {', '.join(found)}")
    short = {each.partition("/")[2]: each for each in known} | {each: each for each in known}
    near = difflib.get_close_matches(name, short, n=1)
    hint = f"did you mean {short[near[0]]}?" if near else "mpiio-ext help lists all"
    raise ArgumentError(f"there is no page {name}; {hint}")
