"""What to do about a finding, in the page itself: pages of ``docs/howto``, or the section of one.

Problem. A page is read where there is neither a network nor a copy of the documents.

Algorithm. The package has the pages (`mpiio_ext.common.guide`). Each cause has a section of its own; delegates, HDF5
and Lustre have a page, where a finding is about them.

Guarantees. A page has the how-tos of its own findings, and each of them once. Links that lead out of it are plain text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from mpiio_ext.analytics.diagnosis.case import HDF5
from mpiio_ext.analytics.diagnosis.causes import CAUSES, named
from mpiio_ext.common import guide
from mpiio_ext.common.page import Finding, Fold, Section

if TYPE_CHECKING:
    from markdown_it.token import Token

#: The page that has a section for each cause.
_SECTIONS = "what-to-do"
#: Pages that findings need.
PAGES = (_SECTIONS, "delegates", "hdf5", "lustre")


def _anchor(title: str) -> str:
    return "howto-" + re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def links(cause: str, files: Collection[str] = (), see: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return anchors and titles of the sections about a cause.

    Parameters
    ----------
    cause : as the diagnosis calls it.
    files : that it is about.
    see : documents that its advice names.
    """
    of = named(cause)
    more = {
        "delegates": any(name.endswith("delegates.md") for name in see),
        "hdf5": any(name.endswith(HDF5) for name in files),
        "lustre": of.on_lustre,
    }
    titles = [of.section, *(_title(_tokens(name)) for name, needed in more.items() if needed)]
    return [(_anchor(title), title) for title in titles]


def section(findings: Iterable[Finding]) -> list[Section]:
    """Return the section that links of findings lead to; none without any."""
    wanted = dict.fromkeys(anchor for one in findings for anchor, _ in one.links)
    folds = [fold for anchor in wanted if (fold := _folds().get(anchor)) is not None]
    return [Section(anchor="howto", title="How to", folds=folds)] if folds else []


@functools.cache
def _folds() -> dict[str, Fold]:
    """Return all sections, by anchors."""
    titles, found = {one.section for one in CAUSES}, _sections(_tokens(_SECTIONS))
    parts = {title: found[title] for title in found if title in titles}
    parts |= {_title(found): found[3:] for found in map(_tokens, PAGES[1:])}  # without the heading, three tokens
    return {
        _anchor(title): Fold(anchor=_anchor(title), title=title, body=_html(found)) for title, found in parts.items()
    }


@functools.cache
def _tokens(name: str) -> Sequence[Token]:
    """Return a page as the parser has it."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").parse(guide.text_of(f"howto/{name}"))


def _title(tokens: Sequence[Token]) -> str:
    return tokens[1].content


def _sections(tokens: Sequence[Token]) -> dict[str, Sequence[Token]]:
    """Return what stands below each heading of the second level."""
    at = [place for place, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h2"]
    return {
        tokens[place + 1].content: tokens[place + 3 : end]
        for place, end in zip(at, [*at[1:], len(tokens)], strict=True)
    }


def _html(tokens: Sequence[Token]) -> str:
    """Return parsed text as HTML: headings below that of a fold, no links, no comments."""
    from markdown_it import MarkdownIt

    shown = [token for token in tokens if token.type != "html_block"]
    for token in shown:
        token.tag = "h4" if token.type.startswith("heading_") else token.tag
        token.children = [each for each in token.children or () if not each.type.startswith("link_")]
    parser = MarkdownIt("commonmark").enable("table")
    text: str = parser.renderer.render(shown, parser.options, {})
    return text.replace("<table>", '<div class="scroll" tabindex="0"><table>').replace("</table>", "</table></div>")
