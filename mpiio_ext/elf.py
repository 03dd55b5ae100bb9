"""The dependencies of an executable or a shared library: its ELF header and dynamic section.

Every rank of ``mpiio-ext run`` asks for the libraries of its program. The dynamic linker lists them (`listed`) in a
tenth of the time that importing pyelftools takes, which reads the file (`read`) where the linker cannot. A damaged file
gives `ElfError`, never another exception (tests/unit/test_abi.py changes files at random places).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import IO, NamedTuple

_MAGIC = b"\x7fELF"
_LINKER = re.compile(r"/\S*/ld(?:64)?(?:-[\w.-]+)?\.so(?:\.\d+)*$", re.MULTILINE)
_LISTING_S = 20


class ElfError(ValueError):
    """No ELF file of a known form, or a damaged one."""


class Elf(NamedTuple):  # a data class would make every rank import `inspect`
    """The header and the dynamic section of a file.

    Attributes
    ----------
    needed : names of the shared libraries that it asks for (DT_NEEDED), in their order.
    interpreter : path of the dynamic linker; empty for a shared library or a static executable.
    dynamic : False where there is no dynamic section: a static executable, on which LD_PRELOAD has no effect.
    machine : processor and width, such as "EM_X86_64 64".
    """

    needed: tuple[str, ...]
    interpreter: str
    dynamic: bool
    machine: str


def read(path: str | Path) -> Elf:
    """Read a file's header and dynamic section.

    Raises
    ------
    ElfError
        It is no ELF file, or damaged.
    OSError
        It cannot be read.
    """
    with Path(path).open("rb") as file:
        return parse(file)


def listed(path: str | Path, linker: str = "") -> list[str] | None:
    """Return the libraries that glibc's dynamic linker loads for a program or a library, by name, its own ones first.

    None: the linker cannot find out, as of a script, a static executable, a program of another C library or machine, or
    one that lacks a library. The linker is executed, and nothing else of the program: one that the program itself
    names (`linker`) is trusted as the program is.

    Parameters
    ----------
    path : program or library.
    linker : path of the dynamic linker; "": that of this process.
    """
    from mpiio_ext.common.children import run  # here: every rank that imports the package would load it

    try:
        with Path(path).open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return None
        linker = linker or _LINKER.findall(Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace"))[0]
    except (OSError, IndexError):
        return None
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    # As ldd does: glibc's linker crashes on a static executable that it is to list.
    if run([linker, "--verify", str(path)], limit_s=_LISTING_S, environment=environment).status not in (0, 2):
        return None
    answer = run([linker, "--list", str(path)], limit_s=_LISTING_S, environment=environment)
    names = [line.split()[0] for line in answer.output.splitlines() if line.strip()]
    return names if not answer.trouble and "libc.so.6" in names else None


def parse(file: IO[bytes]) -> Elf:
    """Read the header and the dynamic section of an open file; raises `ElfError`."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ElfError("no ELF file")
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.elffile import ELFFile
    from elftools.elf.segments import InterpSegment

    try:
        elf = ELFFile(file)
        segments = list(elf.iter_segments())
        interpreter = next((item.get_interp_name() for item in segments if isinstance(item, InterpSegment)), "")
        dynamic = [item for item in segments if isinstance(item, DynamicSegment)]
        names = [getattr(tag, "needed", None) for item in dynamic for tag in item.iter_tags("DT_NEEDED")]
    except Exception as error:  # pyelftools trusts the offsets and numbers of a file: anything may come of wrong ones
        raise ElfError(f"a damaged ELF file: {error}") from error
    if not all(names):
        raise ElfError("a name lies outside the file")
    return Elf(tuple(map(str, names)), interpreter, bool(dynamic), f"{elf.header.e_machine} {elf.elfclass}")


def defines(path: Path, name: str) -> bool:
    """Return whether a file, which `read` has read, defines a symbol itself."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    with path.open("rb") as file:
        tables = [item for item in ELFFile(file).iter_sections() if isinstance(item, SymbolTableSection)]
        found = [symbol for table in tables for symbol in table.get_symbol_by_name(name) or []]
        return any(symbol["st_shndx"] != "SHN_UNDEF" for symbol in found)
