"""Pages of the documents as plain text, which a terminal shows.

Problem. A page is Markdown for a site: each row of a table is one line, links lead to files that an installed package
does not have, and only Sphinx fills the generated blocks. The core requires no package that reads Markdown.

Algorithm. The module reads the part of Markdown that the pages use: first headings, paragraphs, lists, tables, fenced
blocks and comments, then links, code, pictures and emphasis within a text. A link becomes its text and the name of the
page, as `mpiio-ext help` takes it.

Guarantees. Fenced code keeps its lines, indented by four blanks. A table is at most as wide as the terminal, unless its
columns cannot be narrower. Every word of a page is shown, except comments and the contents of the site.
"""

from __future__ import annotations

import posixpath
import re
import textwrap
from collections.abc import Iterator, Sequence

#: Lines below headings of the first, the second and other levels.
_LINES = "=-~"
_CODE = "    "
#: For a block that Sphinx fills.
_GENERATED = "(The site of the documents has a generated part here: `make docs`.)"
_COMMENT = re.compile(r"^<!--.*?-->\n?", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"( *)([-*]|\d+\.) +")
_INLINE = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|!\[(?P<picture>[^\]]*)\]\([^)]*\)"
    r"|\[(?P<text>(?:`[^`]*`|[^\[\]`]|\[[^\]]*\])+)\]\((?P<link>[^)\s]+)\)"
    r"|<(?P<address>https?://[^>\s]+)>"
    r"|\\(?P<escaped>[^\w\s])"
    r"|(?<!\w)(?P<stars>\*{1,2})(?=\S)(?P<stressed>.+?)(?<=\S)(?P=stars)"
)
#: A column of a table is no narrower than its longest word, up to here.
_WORD = 28


def plain(text: str, name: str, width: int) -> str:
    """Return a page as lines of at most `width` characters, where its code and its words allow that.

    Parameters
    ----------
    text : Markdown
    name : of the page, with its folder: links are relative to it.
    """
    blocks = [block for block in _blocks(text, name, width) if block]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _blocks(text: str, name: str, width: int) -> Iterator[list[str]]:
    """Yield the lines of each block."""
    for part in re.split(r"(^ *```.*?^ *```[ \t]*$)", text, flags=re.DOTALL | re.MULTILINE):
        if part.lstrip().startswith("```"):
            yield _fenced(part)
            continue
        for block in re.split(r"\n[ \t]*\n", _COMMENT.sub("\n", part)):
            lines = [line for line in block.splitlines() if line.strip()]
            if lines and lines[0].startswith("|"):
                yield _table([_cells(line, name) for line in lines if not re.fullmatch(r"[|\s:-]+", line)], width)
            else:
                yield from _texts(lines, name, width)


def _fenced(part: str) -> list[str]:
    """Return a fenced block: code unchanged, a directive of Sphinx as one line or as no line."""
    head, *lines = textwrap.dedent(part.strip("\n")).splitlines()
    if head.startswith("```{"):
        return [] if head.startswith("```{toctree}") else [_GENERATED]
    return [(_CODE + line).rstrip() for line in lines[:-1]]


def _texts(lines: Sequence[str], name: str, width: int) -> Iterator[list[str]]:
    """Yield headings, and the paragraphs and lists between them; items of a list follow one another."""
    texts: list[str] = []
    for line in lines:
        heading = re.match(r"(#+) (.*)", line)
        if heading:
            yield _filled(texts, width)
            texts, title = [], inline(heading[2], name)
            yield [title, _LINES[min(len(heading[1]), len(_LINES)) - 1] * len(title)]
        elif texts and not _ITEM.match(line):
            texts[-1] += " " + line.strip()
        else:
            texts.append(line)
    yield _filled([inline(text, name) for text in texts], width)


def _filled(texts: Sequence[str], width: int) -> list[str]:
    """Return paragraphs or items of a list as lines; further lines of an item begin below its text."""
    found = []
    for text in texts:
        indent = " " * len(item[0]) if (item := _ITEM.match(text)) else re.match(" *", text)[0]  # type: ignore[index]
        found += textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return found


def _cells(line: str, name: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
    return [inline(cell.strip().replace("\\|", "|"), name) for cell in cells]


def _table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a table in columns two blanks apart; long cells have several lines, and then a blank line ends a row."""
    count = max(map(len, rows))
    whole = [[*row, *[""] * (count - len(row))] for row in rows]
    columns = list(zip(*whole, strict=True))
    widths = [max(map(len, column)) for column in columns]
    least = [min(_WORD, max((len(word) for cell in column for word in cell.split()), default=0)) for column in columns]
    while sum(widths) + 2 * (count - 1) > width:
        spare = max(range(count), key=lambda column: (widths[column] > least[column]) * widths[column])
        if widths[spare] <= least[spare]:
            break
        widths[spare] -= 1
    found: list[list[str]] = []
    for row in whole:
        wrapped = [
            textwrap.wrap(cell, max(1, most), break_on_hyphens=False) for cell, most in zip(row, widths, strict=True)
        ]
        height = max(map(len, wrapped))
        lines = [[cell[number] if number < len(cell) else "" for cell in wrapped] for number in range(height)]
        found.append(
            ["  ".join(cell.ljust(most) for cell, most in zip(line, widths, strict=True)).rstrip() for line in lines]
        )
    head, *body = found
    dashes = ["  ".join("-" * most for most in widths)]
    gap = [""] if any(len(row) > 1 for row in body) else []
    return [*head, *dashes, *(line for number, row in enumerate(body) for line in [*(gap if number else []), *row])]


def inline(text: str, name: str) -> str:
    """Return a text of a page without Markdown: `code` keeps its backticks, a link its text and where it leads."""

    def shown(found: re.Match[str]) -> str:
        if found["code"]:
            return found["code"]
        if found["picture"] is not None:
            return f"[picture: {found['picture']}]"
        if found["link"]:
            words, place = inline(found["text"], name), _place(found["link"], name)
            return words if place in ("", words) else f"{words} ({place})"
        if found["stressed"]:
            return inline(found["stressed"], name)
        return found["address"] or found["escaped"]

    return _INLINE.sub(shown, text)


def _place(link: str, name: str) -> str:
    """Return the target of a link: an address, a page named as in `mpiio-ext help`, a file; "" within the page."""
    if "://" in link:
        return link
    path = link.partition("#")[0]
    if not path:
        return ""
    whole = posixpath.normpath(posixpath.join("docs", posixpath.dirname(name), path))
    return re.sub(r"^docs/((?:tutorial|howto|reference|explanation)/[^/]+)\.md$", r"\1", whole)
