"""The dependencies of an executable or a shared library: its ELF header and dynamic section.

Every rank of ``mpiio-ext run`` asks for the libraries of its program. The dynamic linker lists them (`listed`) in a
tenth of the time that importing pyelftools takes, which reads the file (`read`) where the linker cannot. A damaged file
gives `ElfError`, never another exception (tests/unit/test_abi.py changes files at random places).
"""

from __future__ import annotations

import os
import re
import select
import signal
import time
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
        The file is no ELF file, or is damaged.
    OSError
        The file cannot be read.
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
    try:
        with Path(path).open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return None
        linker = linker or _LINKER.findall(Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace"))[0]
    except (OSError, IndexError):
        return None
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    # As ldd does: glibc's linker crashes on a static executable that it is to list.
    if _answer([linker, "--verify", str(path)], environment)[0] not in (0, 2):
        return None
    status, output = _answer([linker, "--list", str(path)], environment)
    names = [line.split()[0] for line in output.splitlines() if line.strip()]
    return names if status == 0 and "libc.so.6" in names else None


def _answer(command: list[str], environment: dict[str, str]) -> tuple[int | None, str]:
    """Return exit status and output of a command; None if it cannot run, or is killed after 20 s.

    The module `children` does the same for any command, and takes ten times as long to import as this one works.
    """
    theirs, ours = os.pipe()
    with open(theirs, "rb", buffering=0) as answer:  # noqa: PTH123  (a descriptor)
        try:
            nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 2)]
            actions = [*nothing, (os.POSIX_SPAWN_DUP2, ours, 1)]
            child = os.posix_spawn(command[0], command, environment, file_actions=actions, setpgroup=0)
        except OSError:
            return None, ""
        finally:
            os.close(ours)
        output, until, events = b"", time.monotonic() + _LISTING_S, select.poll()
        events.register(theirs, select.POLLIN)
        while (left_s := until - time.monotonic()) > 0 and events.poll(left_s * 1000):
            more = answer.read(1 << 16)
            output += more
            if not more:
                return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), output.decode(errors="replace")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, os.WNOHANG)
    return None, ""


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
