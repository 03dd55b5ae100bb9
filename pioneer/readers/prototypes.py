"""Prototypes for ltrace 0.7 (-F), as the reader of ltrace needs them, from the table of I/O calls.

Problem. Of a call whose prototype it does not know ltrace prints the first words: addresses in place of names, handles
and counts. Algorithm. ``python -m mpiio_ext.pioneer.readers.prototypes > mpi.conf`` writes a line for each function of
MPI that readers know, and for each system call whose arguments have types in the table. Requests of MPICH are numbers.
"""

from __future__ import annotations

import argparse
import sys

from mpiio_ext.common.iocalls import CALLS, Call

_HEAD = """\
; Prototypes for ltrace 0.7 (-F): what the reader of ltrace wants to know. See docs/reference/trace-formats.md.
; [ HANDLE ]: the tracer looks into the program's variable; + does it when the call returns.
"""
#: Type of a parameter of MPI -> ltrace's, else an address; {}: that of a request.
_TYPES = {
    "offset": "long",
    "string": "string",
    **dict.fromkeys(("int", "length", "logical", "count"), "int"),
    "file_new": "+array(addr,1)*",
    "file_ref": "array(addr,1)*",
    "request": "+array({},1)*",
    "request_ref": "array({},1)*",
    "requests": "array({},arg1)*",
    "logical_out": "+array(int,1)*",
}


def _of_mpi(call: Call, request: str, *, large: bool) -> str:
    types = _TYPES | {"count": "long"} if large else _TYPES
    words = (types.get(kind, "addr").format(request) for kind, _ in call.parameters)
    return f"int {call.name}{'_c' if large else ''}({', '.join(words)});\n"


def prototypes(*, mpich: bool) -> str:
    """Return the prototypes as a file of ltrace; `mpich`: requests are those of MPICH."""
    lines = []
    for call in CALLS:
        kinds = [kind for kind, _ in call.parameters]
        if call.layer in ("mpi", "mpiio") and "unread" not in call.words:
            forms = (False, True) if "large" in call.words else (False,)
            lines += [_of_mpi(call, "uint" if mpich else "addr", large=large) for large in forms]
        elif call.layer == "posix" and kinds and all(kinds):
            returns = "int" if call.returns in ("", "handle") else call.returns
            lines.append(f"{returns} SYS_{call.name}({', '.join(kinds)});\n")
    return _HEAD + "".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the prototypes for ltrace (-F).")
    parser.add_argument("--mpich", action="store_true", help="for programs of MPICH and its kin")
    sys.stdout.write(prototypes(mpich=parser.parse_args().mpich))
