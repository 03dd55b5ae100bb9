"""The documents in an installed package: a terminal can show every page that a terminal answer names.

Algorithm. The build copies the pages of docs/ into the package; a checkout has them in its own docs. A page is named by
its folder and file, without the extension: ``howto/hdf5``.
"""

from __future__ import annotations

import re
from pathlib import Path

from mpiio_ext.common.near import near_names
from mpiio_ext.errors import ArgumentError

#: Folders of pages for users, in the order of the list.
KINDS = ("tutorial", "howto", "reference", "explanation")
#: Pages that an answer suggests.
_MOST = 3


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


def page_of(name: str) -> str:
    """Return the page that is meant, with its folder.

    Parameters
    ----------
    name : of the page, with its folder or without it, its title, a path, or a link to it; in any case.

    Raises
    ------
    ArgumentError
        No page, or more than one, is called so; the message names the pages that could be meant.
    """
    known, wanted = titles(), _wanted(name)
    same = (
        [each for each in known if wanted in (each, _stem(each))],
        [each for each, title in known.items() if wanted == _words(title)],
    )
    found = next(filter(None, same), [])
    if len(found) == 1:
        return found[0]
    if found:
        raise ArgumentError(f"several pages are called {name}: {', '.join(found)}")
    *others, near = _near(wanted, known) or [""]
    choice = f"{', '.join(others)} or {near}" if others else near
    hint = f"did you mean {choice}?" if near else "mpiio-ext help lists all"
    raise ArgumentError(f"there is no page {name}; {hint}")


def text_of(name: str) -> str:
    """Return the text of a page that `page_of` finds, as it is in the folder."""
    return (folder() / f"{page_of(name)}.md").read_text(encoding="utf-8")


def _stem(page: str) -> str:
    return page.partition("/")[2]


def _words(text: str) -> str:
    """Return a title or a name in the form of a file's name: small letters, hyphens between words."""
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-")


def _wanted(name: str) -> str:
    """Return a name, a title, a path, an address or a link as the name of a page, with the folder if that is given."""
    link = re.fullmatch(r"\[.*\]\((.*)\)", name.strip())
    path = re.sub(r"\.(md|html)$", "", (link[1] if link else name).partition("#")[0].strip().lower())
    *folders, last = path.rstrip("/").split("/")
    return f"{folders[-1]}/{last}" if folders and folders[-1] in KINDS else _words(last)


def _near(wanted: str, known: dict[str, str]) -> list[str]:
    """Return up to three pages that have the word in their name or title, or else the one with the nearest name."""
    word = _stem(wanted) or wanted
    having = [page for page, title in known.items() if word and word in f"{page} {_words(title)}"]
    if having and len(having) <= _MOST:
        return having
    names = {_stem(page): page for page in known} | {page: page for page in known}
    return [names[each] for each in near_names(wanted, names)]
