"""Manual pages of the command line, made from its click objects: `scripts/pages.py` writes them when the build runs.

Problem. ``man mpiio-ext-run`` has to contain the text of ``mpiio-ext run --help``, in every release. click-man, which
makes such pages for other programs, expects groups whose commands are loaded; the commands of this library are loaded
when they are called.

Algorithm. The program and each of its commands have a page, as in git; a command of a command is a section of a page.
Texts are the help texts. Pages are in the language of man(7) that groff and mandoc share: ASCII, with escapes for all
other characters. Installations of the core also get the help texts of commands that cannot be imported without their
extra.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

import mpiio_ext
from mpiio_ext.cli import main
from mpiio_ext.environment import VARIABLES

_PROGRAM = "mpiio-ext"
#: Commands that need their extra to be imported: without it their help is the stored text.
_HEAVY = ("advise", "bench", "delegates arbiter", "delegates arbitrate", "locks", "partitioning")
_OPTIONS = "OPTIONS"
#: Of the release: `make release-check` compares it with CITATION.cff.
_DATE = "2026-11-23"


def _escape(text: str) -> str:
    """Return text for man(7): one line, or several that are filled."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("^", "\\(ha")
    text = text.replace("~", "\\(ti").replace("'", "\\(aq")
    text = "".join(char if ord(char) < 128 else f"\\[u{ord(char):04X}]" for char in text)
    text = re.sub(r"\S{80,}", lambda word: word[0].replace(",", ",\\:"), text)  # where a long list may be broken
    return re.sub(r"^\.", r"\\&.", text, flags=re.MULTILINE)


def _blocks(text: str) -> list[tuple[bool, str]]:
    r"""Return (whether its lines stay as they are, text) of each paragraph; "\b" marks the former, as for click."""
    found = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text.partition("\f")[0])):
        lines = [line for line in block.splitlines() if line.strip()]
        if lines and lines[0].strip() == "\b":
            found.append((True, "\n".join(lines[1:])))
        elif lines:
            found.append((False, " ".join(line.strip() for line in lines)))
    return found


def _description(text: str) -> Iterator[str]:
    for number, (verbatim, block) in enumerate(_blocks(text)):
        if number:
            yield ".PP"
        if verbatim:
            yield from (".nf", _escape(inspect.cleandoc(block)), ".fi")
        else:
            yield _escape(block)


def _parameters(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield a tagged paragraph for each option."""
    for item in command.get_params(context):
        record = item.get_help_record(context)
        if isinstance(item, click.Option) and record is not None:
            names, text = record
            yield from (".TP", f"\\fB{_escape(names)}\\fR", _escape(" ".join(text.split())))


def _synopsis(command: click.Command, context: click.Context) -> str:
    pieces = " ".join(command.collect_usage_pieces(context))
    return f"\\fB{_escape(context.command_path)}\\fR {_escape(pieces)}"


def _commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            yield name, command, _context(command, context, name)


def _context(command: click.Command, parent: click.Context | None, name: str) -> click.Context:
    settings = {**command.context_settings, "terminal_width": 10**6, "max_content_width": 10**6}
    return command.context_class(command, parent=parent, info_name=name, **settings)


def _section(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield a command of a command, and its own commands."""
    yield from (f'.SS "{_escape(context.command_path)}"', _synopsis(command, context), ".PP")
    yield from _description(command.help or "")
    yield from _parameters(command, context)
    if isinstance(command, click.Group):
        for _, inner, inner_context in _commands(command, context):
            yield from _section(inner, inner_context)


def _head(title: str, line: str) -> list[str]:
    """Return the first lines of a page."""
    version = mpiio_ext.__version__
    return [
        '.\\" made by scripts/pages.py from the command line; do not edit',
        f'.TH "{_escape(title.upper())}" "1" "{_DATE}" "mpiio_ext {version}" "mpiio_ext manual"',
        ".SH NAME",
        f"{_escape(title)} \\- {_escape(line.rstrip('.'))}",
    ]


def _page(name: str, command: click.Command, context: click.Context) -> str:
    """Return the page of a command."""
    title = f"{_PROGRAM}-{name}"
    lines = [
        *_head(title, _blocks(command.help or name)[0][1].split(". ")[0]),
        ".SH SYNOPSIS",
        _synopsis(command, context),
    ]
    lines += [".SH DESCRIPTION", *_description(command.help or ""), f".SH {_OPTIONS}", *_parameters(command, context)]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for _, inner, inner_context in _commands(command, context):
            lines += _section(inner, inner_context)
    lines += [".SH SEE ALSO", f"\\fB{_escape(_PROGRAM)}\\fR(1)"]
    return "\n".join(lines) + "\n"


def _variables() -> Iterator[str]:
    for name, item in VARIABLES.items():
        if item.by_user:
            yield from (".TP", f"\\fB{_escape(name)}\\fR", _escape(item.meaning))


def _first(context: click.Context) -> str:
    """Return the page of the program."""
    names = main.list_commands(context)
    lines = [*_head(_PROGRAM, "MPI\\-IO middleware under unchanged MPI programs".replace("\\", ""))]
    lines += [".SH SYNOPSIS", _synopsis(main, context), ".SH DESCRIPTION", *_description(main.help or "")]
    lines += [f".SH {_OPTIONS}", *_parameters(main, context), ".SH COMMANDS"]
    for name, command, _ in _commands(main, context):
        lines += [".TP", f"\\fB{_escape(f'{_PROGRAM}-{name}')}\\fR(1)", _escape(command.get_short_help_str(10**6))]
    lines += [".SH ENVIRONMENT", *_variables(), ".SH FILES", ".TP", ".I /etc/mpiio_ext.conf"]
    lines += [_escape("hints of the site, weaker than those of programs and users"), ".SH SEE ALSO"]
    lines += [",\n".join(f"\\fB{_escape(f'{_PROGRAM}-{name}')}\\fR(1)" for name in names)]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Return name of the file -> text of every page."""
    context = _context(main, None, _PROGRAM)
    found = {f"{_PROGRAM}.1": _first(context)}
    for name, command, inner in _commands(main, context):
        found[f"{_PROGRAM}-{name}.1"] = _page(name, command, inner)
    return found


def helps() -> str:
    """Return the help texts of the commands that need an extra, each behind a line with its name."""
    found = ["Made by scripts/pages.py from the command line; do not edit."]

    def add(command: click.Command, context: click.Context, words: str) -> None:
        if words.startswith(_HEAVY):
            narrow = command.context_class(
                command,
                parent=context.parent,
                info_name=context.info_name,
                **{**command.context_settings, "terminal_width": 78},
            )
            found.append(f"=== {words}\n{command.get_help(narrow)}")
        if isinstance(command, click.Group):
            for name, inner, inner_context in _commands(command, context):
                add(inner, inner_context, f"{words} {name}".strip())

    add(main, _context(main, None, _PROGRAM), "")
    return "\n".join(found) + "\n"
