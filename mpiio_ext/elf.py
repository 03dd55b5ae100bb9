"""What an executable or a shared library asks the dynamic linker for: its ELF header and dynamic section.

pyelftools reads the file. It is imported for files that begin as ELF files do, not for scripts: every rank of
``mpiio-ext run`` would pay for it. A damaged file gives `ElfError`, never another exception (tests/unit/test_abi.py
changes files at random places).
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, NamedTuple

_MAGIC = b"\x7fELF"


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
