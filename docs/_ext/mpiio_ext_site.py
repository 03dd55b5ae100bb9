"""Sphinx directives that write the reference from what the library itself says: hints, statistics, C functions.

Problem: a reference that is typed by hand goes stale. The registries of hints, statistics and facts of layouts are in
the C library, the C functions and what they promise in one header. Algorithm: each directive makes reStructuredText of
such a source and lets Sphinx parse it, so that every entry is in the index, in the search and can be linked to.
Guarantee: an entry is in the page exactly when it is in the library that the page was built with.
"""

from __future__ import annotations

import importlib
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.nodes import Element
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.c import CDomain
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "csrc" / "entry" / "include" / "mpiio_ext.h"

_TOKEN = re.compile(r"/\*(?P<comment>.*?)\*/|(?P<statement>[^;{}/]+(?:\{[^}]*\})?[^;{}/]*;)", re.DOTALL)


def plain(text: str) -> str:
    """Return text as reStructuredText that shows it: words between backticks as code, the rest escaped."""
    parts = re.split(r"`([^`]+)`", text)
    escaped = [re.sub(r"([\\*|_<>\[\]])", r"\\\1", part) for part in parts[::2]]
    codes = [f" ``{code}`` " for code in parts[1::2]]
    return "".join(part + code for part, code in zip(escaped, [*codes, ""], strict=True))


# ---- the header -----------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Group:
    """Declarations of a header that one comment explains.

    Attributes
    ----------
    comment : the comment above them, without its stars; "" if there is none.
    functions : declarations of functions, each on one line.
    structs : (name, text of its fields) of structs; "" for an opaque one.
    """

    comment: str = ""
    functions: list[str] = field(default_factory=list)
    structs: list[tuple[str, str]] = field(default_factory=list)


def _unstar(comment: str) -> str:
    """Return a comment as running text."""
    return " ".join(line.strip().removeprefix("*").strip() for line in comment.splitlines()).strip()


def _struct(statement: str) -> tuple[str, str]:
    """Return (name, fields) of ``typedef struct x x;`` or ``typedef struct x { ... } x;``."""
    match = re.fullmatch(r"typedef struct (\w+)(?:\s*\{(.*)\})?\s*\w+;", statement.strip(), re.DOTALL)
    if match is None:
        raise ValueError(f"{HEADER}: neither a function nor a struct: {statement!r}")
    return match[1], match[2] or ""


def sections(text: str) -> Iterator[tuple[str, list[Group]]]:
    """Yield (title, groups) of the part of the header that the binding is made of.

    A group begins with a comment that stands on its own line; a comment behind a declaration is added to its group.
    """
    text = text.split("/* cffi: begin */")[1].split("/* cffi: end */")[0]
    title, groups = "", [Group()]
    for match in _TOKEN.finditer(text):
        if match["statement"]:
            if match["statement"].lstrip().startswith("typedef"):
                groups[-1].structs.append(_struct(match["statement"]))
            else:
                groups[-1].functions.append(" ".join(match["statement"].split()).rstrip(";"))
        elif match["comment"] and (head := re.fullmatch(r" -{4} (.*) -{4} ", match["comment"])):
            if title:
                yield title, [group for group in groups if group.functions or group.structs]
            title, groups = head[1], [Group()]
        elif match["comment"] and text[: match.start()].rstrip(" ").endswith("\n"):
            groups.append(Group(comment=_unstar(match["comment"])))
        elif match["comment"]:
            groups[-1].comment = f"{groups[-1].comment} {_unstar(match['comment'])}".strip()
    yield title, [group for group in groups if group.functions or group.structs]


def _indented(text: str, columns: int = 3) -> list[str]:
    return [" " * columns + line if line.strip() else "" for line in text.splitlines()]


def c_text(groups: Sequence[Group]) -> Iterator[str]:
    """Yield the lines of reStructuredText of one section's groups."""
    for group in groups:
        comment = plain(group.comment)
        for name, fields in group.structs:
            yield from ("", f".. c:struct:: {name}", "", f"   {comment}", "")
            if fields.strip():
                yield from ("   .. code-block:: c", "", *_indented(fields.strip("\n"), 6), "")
        if group.functions:
            yield f".. c:function:: {group.functions[0]}"
            yield from (f"                 {function}" for function in group.functions[1:])
            yield from ("", f"   {comment}" if not group.structs else "", "")


# ---- directives -----------------------------------------------------------------------------------------------------


class Generated(SphinxDirective):
    """A directive whose content is made by :meth:`lines`."""

    def lines(self) -> Iterator[str]:
        """Yield reStructuredText."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Parse what was made; the directive stands in an eval-rst block of a page in Markdown."""
        self.env.note_dependency(str(HEADER))
        return self.parse_text_to_nodes("\n".join(self.lines()))


class Hints(Generated):
    """``.. mpiio-hints::``: every hint of the registry; with an argument only those whose name begins so."""

    optional_arguments: ClassVar[int] = 1

    def lines(self) -> Iterator[str]:
        """Yield one ``confval`` for each hint."""
        from mpiio_ext import hints

        wanted = self.arguments[0] if self.arguments else ""
        delegates = "mpiox_delegate", "mpiox_arbiter"
        for spec in hints.registry():
            kind = "mpiox" if spec.name.startswith("mpiox_") else "mpi"
            kind = "delegates" if spec.name.startswith(delegates) else kind
            if wanted and kind != wanted:
                continue
            yield from (f".. confval:: {spec.name}", f"   :type: {spec.type}")
            yield f"   :default: ``{spec.default}``" if spec.default else "   :default: empty"
            yield from ("", f"   {plain(spec.description)}", "", f"   Values: {plain(spec.values)}", "")


class Statistics(Generated):
    """``.. mpiio-statistics::``: every number that the library keeps of a file."""

    def lines(self) -> Iterator[str]:
        """Yield a definition list."""
        from mpiio_ext._binding import ffi, lib

        def text(pointer: Any) -> str:
            return str(ffi.string(pointer).decode())

        for index in range(lib.mpiio_ext_stats_counter_count() + lib.mpiio_ext_stats_time_count()):
            name, unit = text(lib.mpiio_ext_stats_name(index)), text(lib.mpiio_ext_stats_unit(index))
            yield from (f"``{name}`` ({unit})", f"   {plain(text(lib.mpiio_ext_stats_meaning(index)))}", "")


class CHeader(Generated):
    """``.. mpiio-c-header:: SECTION``: the functions of one section of mpiio_ext.h."""

    required_arguments: ClassVar[int] = 1
    final_argument_whitespace: ClassVar[bool] = True

    def lines(self) -> Iterator[str]:
        """Yield the functions and structs with their comments."""
        found = dict(sections(HEADER.read_text(encoding="utf-8")))
        if self.arguments[0] not in found:
            raise self.error(f"{HEADER.name} has no section {self.arguments[0]!r}; it has {', '.join(found)}")
        yield from c_text(found[self.arguments[0]])


class Commands(Generated):
    """``.. mpiio-commands::``: every command with its first line, and a link to its section of the page."""

    def lines(self) -> Iterator[str]:
        """Yield a list of definitions, in the order of `mpiio-ext --help`."""
        import click

        from mpiio_ext.cli import main

        context = click.Context(main, info_name="mpiio-ext")
        for name in main.list_commands(context):
            command = main.get_command(context, name)
            if command is not None and not command.hidden:
                yield from (f"`{name} <#mpiio-ext-{name}>`__", f"   {plain(command.get_short_help_str(limit=200))}", "")


# ---- commands and names ---------------------------------------------------------------------------------------------


def escape_help(_app: Sphinx, _context: Any, lines: list[str]) -> None:
    r"""Escape, in the help of a command, what would be markup: `*.h5`, `a|b`. Paragraphs after ``\b`` become code."""
    made: list[str] = []
    in_code = False
    for line in lines:
        is_code = line.startswith("|")
        if is_code and not in_code:
            made += ["", ".. code-block:: none", ""]
        elif in_code and not is_code:
            made.append("")
        in_code = is_code
        if is_code:
            made.append(f"   {line.removeprefix('|').removeprefix(' ')}".rstrip())
        elif line.lstrip().startswith((".. ", ":")):
            made.append(line)
        else:
            escaped = re.sub(r"([*|])", r"\\\1", line)
            made.append(escaped.replace(r"\*\*Required\*\*", "**Required**"))
    lines[:] = made


def exists(name: str) -> bool:
    """Return whether a dotted name is a module, or something that a module has."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:split]))
        except ImportError:
            continue
        try:
            for part in parts[split:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


def show_as_text(_app: Sphinx, _env: BuildEnvironment, node: pending_xref, content: Element) -> Element | None:
    """Show a Python name that is no part of the reference, but exists, without a link; others stay errors."""
    module = node.get("py:module") or ""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    return content if any(exists(name) for name in (target, f"{module}.{target}") if "mpiio_ext" in name) else None


# ---- docstrings -----------------------------------------------------------------------------------------------------

_ITEM = re.compile(r"\w[\w, *]* : \S")
_WRAPPED = 85  # columns; what is shorter and has lines below it is a type, as numpydoc has it


def join_wrapped_items(_app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Join the lines of "name : what it is, which goes on in the next line", which numpydoc takes for a type."""
    joined: list[str] = []
    for line in lines:
        item = joined[-1] if joined else ""
        if line.startswith("    ") and len(item) >= _WRAPPED and _ITEM.match(item):
            joined[-1] = f"{item} {line.strip()}"
        else:
            joined.append(line)
    lines[:] = joined


# ---- blocks of code ------------------------------------------------------------------------------------------------


def separate_outputs(_app: Sphinx, doctree: nodes.document) -> None:
    """Mark the blocks that show what commands print, and those that are files: a reader copies the others.

    An output has ``<!-- output -->`` above it, or no language and commands right above it; a file names itself.
    """
    for block in list(doctree.findall(nodes.literal_block)):
        above = block.parent.index(block) - 1
        mark = ""
        while above >= 0 and isinstance(block.parent[above], (nodes.raw, nodes.comment)):
            mark, above = f"{block.parent[above].astext().strip()} {mark}", above - 1
        before = block.parent[above] if above >= 0 else None
        follows = isinstance(before, nodes.literal_block) and before.get("language") in {"sh", "bash"}
        if "<!-- output" in mark or (follows and block.get("language", "none") in {"none", "default"}):
            block["classes"].append("output")
        elif name := re.search(r"<!-- file: (\S+)", mark):
            index = block.parent.index(block)
            block.parent.insert(index, nodes.paragraph("", "", nodes.literal(text=name[1]), classes=["file-name"]))


_WIDE_PT = 600


def mark_wide_figures(app: Sphinx, doctree: nodes.document) -> None:
    """Give figures that are wide the class of that name: on a phone they scroll, since nobody could read them."""
    for image in doctree.findall(nodes.image):
        file = Path(app.srcdir) / image["uri"]
        if file.suffix == ".svg" and file.is_file():
            head = file.read_text(encoding="utf-8")[:2000]
            width = re.search(r'<svg[^>]* width="([\d.]+)', head) or re.search(r'viewBox="0 0 ([\d.]+)', head)
            if width is not None and float(width[1]) >= _WIDE_PT:
                image["classes"].append("wide")


# ---- search ---------------------------------------------------------------------------------------------------------


class CFunctions(CDomain):
    """The domain of C without parameters: who searches for "delegates" wants pages, not 40 arguments of that name."""

    def get_objects(self) -> Iterator[tuple[str, str, str, str, str, int]]:
        """Yield what the search finds by name."""
        return (found for found in super().get_objects() if found[2] != "functionParam")


TEXTS = "search-texts.js"


def add_texts(app: Sphinx, page: str, _template: str, _context: Any, _doctree: Any) -> None:
    """Load the texts of the pages where the search needs them."""
    if page == "search":
        app.add_js_file(TEXTS)


_OTHER_WORDS = re.compile(r"<!-- search: (.*?) -->", re.DOTALL)


def write_texts(app: Sphinx, exception: Exception | None) -> None:
    """Write the text of each page, and what ``<!-- search: … -->`` adds to it, of which search.js makes its results."""
    if exception is None and app.builder.name == "html":
        texts = {}
        for page in sorted(app.env.found_docs):
            parts = app.env.get_doctree(page).findall(lambda node: isinstance(node, nodes.TextElement))
            leaves = [
                part.astext()
                for part in parts
                if not isinstance(part, (nodes.comment, nodes.raw)) and not isinstance(part.parent, nodes.TextElement)
            ]
            text = "\n".join(" ".join(leaf.split()) for leaf in leaves[1:])  # the first one is the title
            other = _OTHER_WORDS.findall(Path(app.env.doc2path(page)).read_text(encoding="utf-8"))
            texts[page] = text, ", ".join(other)
        text = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
        (Path(app.outdir) / "_static" / TEXTS).write_text(f"var PAGE_TEXTS = {text};\n", encoding="utf-8")


# ---- the page at the root -------------------------------------------------------------------------------------------


def write_entrance(app: Sphinx, exception: Exception | None) -> None:
    """Write index.html at the root of the site, which leads to docs/index.html and works without a server."""
    if exception is None and app.builder.name == "html":
        target = escape(f"{app.config.root_doc}.html")
        (Path(app.outdir) / "index.html").write_text(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={target}">'
            f'<link rel="canonical" href="{target}"><title>{escape(app.config.project)}</title>'
            f'<a href="{target}">{escape(app.config.project)}</a>\n',
            encoding="utf-8",
        )


def setup(app: Sphinx) -> dict[str, bool | int]:
    """Register the directives."""
    app.add_domain(CFunctions, override=True)
    app.add_directive("mpiio-commands", Commands)
    app.add_directive("mpiio-hints", Hints)
    app.add_directive("mpiio-statistics", Statistics)
    app.add_directive("mpiio-c-header", CHeader)
    for part in ("description", "arguments", "options", "envvars", "epilog"):
        app.connect(f"sphinx-click-process-{part}", escape_help)
    app.connect("missing-reference", show_as_text)
    app.connect("doctree-read", separate_outputs)
    app.connect("doctree-read", mark_wide_figures)
    app.connect("autodoc-process-docstring", join_wrapped_items, priority=400)  # before numpydoc, which has 500
    app.connect("html-page-context", add_texts)
    app.connect("build-finished", write_texts)
    app.connect("build-finished", write_entrance)
    # Pages that were read by another version of this file are read again.
    version = zlib.crc32(Path(__file__).read_bytes())
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": version}
