"""Meanings of functions' arguments, for readers of traces that print them by position: the table of I/O calls in words.

A signature has a word for each argument. The words are explained in ``csrc/tools/pioneer/mpiox_rawtrace_call.h``:
columns of the table, "-" for what is left out (addresses of buffers), and keys of ``extra``.
"""

from __future__ import annotations

from mpiio_ext.common.iocalls import CALLS, Call

#: Types of parameters of MPI -> their words; of others it is that of the name, here or the name itself.
_TYPES = {"file": "handle", "file_ref": "handle_address", "file_new": "handle_address"}
_TYPES |= dict.fromkeys(("buffer_in", "status", "statuses", "length"), "-")
_NAMES = {"filename": "file", "disp": "offset", "datarep": "representation"}


def _word(call: Call, kind: str, name: str) -> str:
    if not call.name.startswith("MPI_"):
        return name
    if kind.endswith("_out") and (kind, call.role) != ("logical_out", "wait"):
        return "-"
    return _TYPES.get(kind, _NAMES.get(name, name))


def _signature(call: Call) -> str:
    words = ",".join(_word(call, kind, name) for kind, name in call.parameters)
    return f"{words}=handle" if call.returns == "handle" else words


#: Function -> (layer, signature). Names without prefixes of tracers and without "64".
FUNCTIONS = {
    call.name: (call.layer, _signature(call))
    for call in CALLS
    if "unread" not in call.words and (call.parameters or call.returns)
}

#: Name in the C library or the kernel, or number of a system call -> name in the table.
ALIASES = {call.name: call.values["is"] for call in CALLS if "is" in call.values}

#: (key of extra, number, name). Whence of the kernel's lseek and of MPI in MPICH-1, MPICH and Open MPI (600, 602, 604);
#: communicators of MPICH-1 (91, 92) and MPICH.
CONSTANTS = (
    ("whence", 0, "SEEK_SET"),
    ("whence", 1, "SEEK_CUR"),
    ("whence", 2, "SEEK_END"),
    ("whence", 3, "SEEK_DATA"),
    ("whence", 4, "SEEK_HOLE"),
    ("whence", 600, "SEEK_SET"),
    ("whence", 602, "SEEK_CUR"),
    ("whence", 604, "SEEK_END"),
    ("comm", 91, "MPI_COMM_WORLD"),
    ("comm", 92, "MPI_COMM_SELF"),
    ("comm", 0x44000000, "MPI_COMM_WORLD"),
    ("comm", 0x44000001, "MPI_COMM_SELF"),
)


#: Predefined datatypes -> bytes of an element, where long and pointers have 8 bytes.
DATATYPES = {
    **dict.fromkeys(
        (
            "BYTE",
            "PACKED",
            "CHAR",
            "SIGNED_CHAR",
            "UNSIGNED_CHAR",
            "INT8_T",
            "UINT8_T",
            "CHARACTER",
            "C_BOOL",
            "CXX_BOOL",
        ),
        1,
    ),
    **dict.fromkeys(("SHORT", "UNSIGNED_SHORT", "INT16_T", "UINT16_T"), 2),
    **dict.fromkeys(
        ("INT", "UNSIGNED", "FLOAT", "INT32_T", "UINT32_T", "INTEGER", "REAL", "LOGICAL", "INTEGER4", "REAL4", "WCHAR"),
        4,
    ),
    **dict.fromkeys(
        (
            "LONG",
            "UNSIGNED_LONG",
            "LONG_LONG",
            "LONG_LONG_INT",
            "UNSIGNED_LONG_LONG",
            "DOUBLE",
            "INT64_T",
            "UINT64_T",
            "DOUBLE_PRECISION",
            "INTEGER8",
            "REAL8",
            "AINT",
            "OFFSET",
            "COUNT",
            "COMPLEX",
            "C_COMPLEX",
            "C_FLOAT_COMPLEX",
        ),
        8,
    ),
    **dict.fromkeys(("LONG_DOUBLE", "DOUBLE_COMPLEX", "C_DOUBLE_COMPLEX"), 16),
}
DATATYPES = {f"MPI_{name}": size for name, size in DATATYPES.items()}
