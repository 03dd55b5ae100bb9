"""Write the manual pages and the help for the core package: ``python scripts/pages.py FOLDER``, as the build does.

Problem.    Both come from the commands as click has them, which import the compiled part of the package; a source
            distribution is packed without it, and a wheel's is not installed when the wheel is packed.
Algorithm.  The commands are imported from the checkout, with stand-ins for the compiled modules. The one thing that
            options of commands take from there, the names of the partition methods and the hint that has them, is read
            from its header.
Guarantees. FOLDER/man/NAME.1 and FOLDER/help.txt are what `mpiio_ext.cli.manual` makes with the compiled part. A file
            whose text is unchanged is not written.
"""

from __future__ import annotations

import importlib.machinery
import re
import sys
import types
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent


def stand_in() -> None:
    """Let `mpiio_ext` be the checkout's, without its compiled modules."""
    package = types.ModuleType("mpiio_ext")
    package.__path__ = [str(ROOT / "mpiio_ext"), str(ROOT)]  # folders that pyproject.toml maps into it are beside it
    text = (ROOT / "mpiio_ext/__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"', text, re.MULTILINE)
    setattr(package, "__version__", version)  # noqa: B010
    header = (ROOT / "csrc/core/domains/mpiox_partition_methods.h").read_text(encoding="utf-8")
    (line,) = re.findall(r"^#define MPIOX_PARTITION_METHODS\(X\) (.*)", header, re.MULTILINE)
    methods = re.findall(r"X\((\w+)\)", line)
    compiled = mock.MagicMock()
    compiled.lib.mpiio_ext_partition_count.return_value = len(methods)
    compiled.lib.mpiio_ext_partition_name.side_effect = [name.encode() for name in methods]
    compiled.lib.mpiio_ext_hint_count.return_value = 1
    compiled.lib.mpiio_ext_hint_name.return_value = b"mpiox_partition"
    compiled.lib.mpiio_ext_hint_values.return_value = " | ".join(["auto", *methods]).encode()
    compiled.ffi.string.side_effect = lambda text: text
    sys.modules |= {"mpiio_ext": package, "mpiio_ext._binding": compiled, "mpiio_ext._tools": compiled}
    sys.meta_path.insert(0, importlib.machinery.PathFinder)  # before that of an editable installation


def main(folder: Path) -> None:
    """Write the files; one of a command that there is no more goes."""
    stand_in()
    from mpiio_ext.cli import manual

    (folder / "man").mkdir(parents=True, exist_ok=True)
    texts = {folder / "man" / name: text for name, text in manual.pages().items()}
    texts[folder / "help.txt"] = manual.helps()
    for path in set((folder / "man").iterdir()) - texts.keys():
        path.unlink()
    for path, text in texts.items():
        if "MagicMock" in text:
            sys.exit(f"scripts/pages.py: an option of {path.name} comes from the compiled part: let stand_in() give it")
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
