"""Commands as documents write them, held against the programs that they name: subcommands, options, values, files.

Problem: pages on analytics, arbitration or pioneer show commands that need logs of a machine, a cluster or an hour. No
test runs those, so an option that was renamed would stay in the page. Algorithm: split the lines of a block into simple
commands as a shell does, drop variables and launchers of MPI programs before them, and follow the words through the
click objects of the program. Guarantee: a command that is found right has a subcommand and options that exist, choices
that are allowed, and values where options want them; whether files are there and values make sense is not looked at.
"""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]

#: Python modules that are programs, and the click objects that they parse with.
_MODULES = {
    "mpiio_ext.partitioning": "mpiio_ext.partitioning.cli:main",
    "mpiio_ext.bench": "mpiio_ext.bench.options:command",
}
#: What ends a simple command in a shell.
_ENDS = {"|", "||", "&&", ";", "&", "(", ")", "{", "}"}
#: Words of blocks that stand for what the reader has, and cannot be compared with a choice.
_PLACEHOLDER = re.compile(r"[A-Z]+|…|\.\.\.|\$.*")


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a block for a shell; of a dialogue the lines that begin with "$ ".

    Here-documents are left out, comments too.
    """
    if re.search(r"^\$ ", text, re.MULTILINE):
        text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
    text = re.sub(r"<<-?\s*'?(\w+)'?(.*?)\n.*?^\1$", r"\2", text, flags=re.DOTALL | re.MULTILINE)
    text = text.replace("\\\n", " ")
    open_line = ""
    for line in text.splitlines():
        open_line += f"\n{line}" if open_line else line
        try:
            words = _words(open_line)
        except ValueError:  # inside of quotes, which end on another line
            continue
        open_line = ""
        found: list[str] = []
        for word in [*words, ";"]:
            if word not in _ENDS:
                found.append(word)
            elif found:
                yield found
                found = []


def _words(line: str) -> list[str]:
    splitter = shlex.shlex(line, posix=True, punctuation_chars="|&;(){}")
    splitter.whitespace_split = True
    return list(splitter)


def load(name: str) -> click.Command:
    """Return the click object MODULE:NAME."""
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    assert isinstance(found, click.Command)
    return found


def program_of(words: list[str]) -> tuple[click.Command, list[str]] | None:
    """Return (command, its arguments) of the first program of this project in a command; None without one."""
    for index, word in enumerate(words):
        if word == "mpiio-ext":
            return load("mpiio_ext.cli:main"), words[index + 1 :]
        if words[index : index + 1] == ["-m"] and words[index + 1] in _MODULES:
            return load(_MODULES[words[index + 1]]), words[index + 2 :]
    return None


def _wrong_value(option: click.Option, value: str) -> bool:
    """Return whether an option has choices, and a value is none of them."""
    kind = option.type
    return isinstance(kind, click.Choice) and not _PLACEHOLDER.fullmatch(value) and value not in map(str, kind.choices)


def faults(command: click.Command, words: list[str]) -> Iterator[str]:
    """Yield what is wrong with the arguments of a command."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for index, word in enumerate(words):
            if not word.startswith("-") and (found := command.get_command(context, word)) is not None:
                yield from faults(found, words[index + 1 :])
                words = words[:index]
                break
        else:
            if not command.invoke_without_command and not {"--help", "-h", "--version"} & set(words):
                yield f"{' '.join(words[:1]) or 'nothing'} is no command"
    options = {
        name: found
        for found in command.params
        if isinstance(found, click.Option)
        for name in [*found.opts, *found.secondary_opts]
    }
    options |= {name: click.Option(["--help"], is_flag=True) for name in ("--help", "-h")}
    rest = iter(words)
    for word in rest:
        if word == "--":
            return
        name, has_value, value = word.partition("=")
        if not word.startswith("-") or re.fullmatch(r"-\d.*|-", word):
            if not command.allow_interspersed_args and not isinstance(command, click.Group):
                return  # from here on the words of another program
            continue
        if name not in options:
            yield f"{name} is no option of {command.name}"
            continue
        option = options[name]
        if option.is_flag or option.count or (option._flag_needs_value and not has_value):
            continue
        value = value if has_value else next(rest, "")
        if not value:
            yield f"{name} of {command.name} needs a value"
        elif _wrong_value(option, value):
            yield f"{name} of {command.name} cannot be {value}"


def missing_parts(words: list[str]) -> Iterator[str]:
    """Yield what a command names of the source tree and that is not there: targets of make, scripts, groups of pip."""
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        yield from (f"make has no target {word}" for word in words[1:] if "=" not in word and word not in targets)
    for word in words:
        inside = re.fullmatch(r"(?:scripts|tests|docs|analytics|pioneer|csrc)/[\w./-]+", word)
        if inside and not (ROOT / word).exists():
            yield f"the source tree has no {word}"


def check(text: str) -> list[str]:
    """Return what is wrong with the commands of a block."""
    found: list[str] = []
    for words in commands(text):
        found += missing_parts(words)
        if (program := program_of(words)) is not None:
            found += faults(*program)
    return found
