"""The user's own hints as a hints file, and the commented file that tuning writes.

A run with a setting reads its hints from one file, in which a later line overrides an earlier one: first the user's
hints file word for word, then the hints of the user's variable MPIOX_HINTS that were in force, then the setting in a
section of its own. Lines of the user that the setting replaces for all files are commented out, which is also how a
hint is put back to "not set". The final file has the same hints, so that a later run uses the hints that were measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpiio_ext.common.files import write_whole
from mpiio_ext.errors import ArgumentError, FileSystemError
from mpiio_ext.tune.errors import TuneError
from mpiio_ext.tune.setting import LEFT_AWAY, Setting

_LINE = re.compile(r"\s*(?P<name>[A-Za-z]\w*)\s*=")
_NAME = re.compile(r"(?:^|[,:])\s*(?P<name>[A-Za-z]\w*)\s*=")
_PLAIN_VALUE = re.compile(r"[^\s\"#;]+")
_EVERY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHints:
    """The hints that the user has set outside the program.

    Attributes
    ----------
    file : the hints file, None when there is none.
    text : its content.
    variable : (glob, {name: value}) of what MPIOX_HINTS had in force for the files that were opened.
    """

    file: Path | None = None
    text: str = ""
    variable: tuple[tuple[str, Mapping[str, str]], ...] = ()


def _passed_on(variable: str) -> list[str]:
    """Return the names in MPIOX_HINTS that only the MPI library understands."""
    from mpiio_ext.hints import registry

    known = {spec.name for spec in registry()}
    return sorted({match["name"] for match in _NAME.finditer(variable)} - known)


def own_hints(paths: Sequence[str], environment: Mapping[str, str]) -> OwnHints:
    """Collect the user's hints for the files that a program opens. The process's environment must be `environment`.

    Parameters
    ----------
    paths : names by which the program opened files.
    environment : with MPIOX_HINTS and MPIOX_HINTS_FILE as the baseline has them.

    Raises
    ------
    TuneError
        The hints file cannot be read, or MPIOX_HINTS cannot be written as a hints file.
    """
    from mpiio_ext.hints import in_force

    file = Path(environment["MPIOX_HINTS_FILE"]) if environment.get("MPIOX_HINTS_FILE") else None
    try:
        text = "" if file is None else file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise TuneError(f"cannot read the hints file {file}: {error.strerror}") from error
    variable = environment.get("MPIOX_HINTS", "")
    if not variable:
        return OwnHints(file=file, text=text)
    if lost := _passed_on(variable):
        raise TuneError(
            f"MPIOX_HINTS sets {', '.join(lost)}, which only the MPI library knows: put it into a hints file "
            "(--hints-file) to have it in every run"
        )
    per_path = {
        path: {item.spec.name: item.value for item in in_force(path) if item.source == "MPIOX_HINTS"} for path in paths
    }
    kinds = list(per_path.values())
    if kinds and all(kind == kinds[0] for kind in kinds):
        return OwnHints(file=file, text=text, variable=((_EVERY, kinds[0]),) if kinds[0] else ())
    if strange := [path for path in per_path if re.search(r"[][*?\\\"#;\n]", path)]:
        raise TuneError(f"the hints of MPIOX_HINTS for {strange[0]!r} cannot be written as a section: use --hints-file")
    return OwnHints(file=file, text=text, variable=tuple((path, kind) for path, kind in per_path.items() if kind))


def _value(value: str) -> str:
    return value if _PLAIN_VALUE.fullmatch(value) else f'"{value}"'


def _without(text: str, names: frozenset[str]) -> list[str]:
    """Return the lines of a hints file, those that set one of `names` commented out."""
    lines = []
    for line in text.splitlines():
        match = _LINE.match(line)
        lines.append(f"# replaced below: {line.strip()}" if match and match["name"] in names else line)
    return lines


def text_of(
    own: OwnHints, glob: str, setting: Setting, header: Sequence[str] = (), why: Mapping[str, str] | None = None
) -> str:
    """Return the hints file of a setting.

    Parameters
    ----------
    own : the user's hints, which stay in force where the setting does not replace them.
    glob : files for which the setting holds.
    setting : the hints.
    header : comment lines for the head, without "#".
    why : {hint: comment line above it}.
    """
    replaced = frozenset(setting.as_dict()) if glob == _EVERY else frozenset()
    lines = [f"# {line}".rstrip() for line in header]
    if own.file is not None:
        lines += ["", f"# ---- from {own.file}", *_without(own.text, replaced)]
    for pattern, hints in own.variable:
        lines += ["", "# ---- from MPIOX_HINTS", f"[{pattern}]"]
        for name, value in hints.items():
            lines.append(f"# replaced below: {name} = {value}" if name in replaced else f"{name} = {_value(value)}")
    lines += ["", "# ---- tuned", f"[{glob}]"]
    for name, value in setting.hints:
        if name in LEFT_AWAY and value == "0":
            lines.append(f"# {name}: not set, so that the library chooses")
            continue
        if why and name in why:
            lines.append(f"# {why[name]}")
        lines.append(f"{name} = {_value(value)}")
    return "\n".join(lines).lstrip("\n") + "\n"


def check_glob(glob: str) -> None:
    """Refuse a pattern that cannot stand in a section's head."""
    if not glob or re.search(r"[\n#;\"]", glob):
        raise ArgumentError(f"--files: {glob!r} cannot be a section's head; allowed: *, ?, [...] and plain characters")


def write(path: Path, text: str) -> None:
    """Write a file so that it is either complete or as it was.

    Raises
    ------
    TuneError
        The file cannot be written; the message is one line with the reason.
    """
    try:
        write_whole(path, text, errors="surrogateescape")
    except FileSystemError as error:
        raise TuneError(str(error)) from error
