"""The contracts of import-linter in pyproject.toml know every command line; `make lint` checks the contracts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from support.launch import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDERS = {"mpiio_ext": "mpiio_ext"} | {
    f"mpiio_ext.{name}": name for name in ("partitioning", "delegates", "pioneer", "analytics")
}


def modules() -> dict[str, Path]:
    """Return every module of the package, and its file."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join([package, *parts]).removesuffix(".__init__")] = path
    return found


def test_what_makes_commands_is_a_command_line() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = (each for each in settings["contracts"] if each["type"] == "protected")
    assert contract["protected_modules"] == contract["allowed_importers"]
    known = re.compile("|".join(re.escape(name).replace(r"\*\*", ".+") for name in contract["protected_modules"]))
    makes = re.compile(r"^@(click|[a-z_]+)\.(command|group)\(", re.MULTILINE)
    found = {name for name, path in modules().items() if makes.search(path.read_text(encoding="utf-8"))}
    assert len(found) > 20 and {name for name in found if not known.fullmatch(name)} == set()
