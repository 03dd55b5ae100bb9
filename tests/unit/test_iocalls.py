"""The table of I/O calls: its rows, and lines that it must not have."""

from __future__ import annotations

import pytest

from mpiio_ext.common.iocalls import CALLS, ROLES, parse
from mpiio_ext.pioneer.operations import Role


def test_rows() -> None:
    assert len({(call.layer, call.name) for call in CALLS}) == len(CALLS) > 200
    assert {call.layer for call in CALLS} == {"mpi", "mpiio", "posix", "stdio"}
    assert {role.value for role in Role} == ROLES
    (write,) = parse("[mpi]\n# x\n\nFile_x : begin write large darshan=SYNC/X : file:fh string:name -> MPI_Fint\n")
    assert (write.name, write.layer, write.role) == ("MPI_File_x", "mpiio", "begin")
    assert (write.words, write.values) == (("begin", "write", "large"), {"darshan": "SYNC/X"})
    assert (write.parameters, write.returns) == ((("file", "fh"), ("string", "name")), "MPI_Fint")
    (close,) = parse("[posix]\nclosing :  : handle hex(int):flags\n")
    assert (close.name, close.layer, close.role, close.returns) == ("closing", "posix", "", "")
    assert close.parameters == (("", "handle"), ("hex(int)", "flags"))


@pytest.mark.parametrize("line", ["open", "open : traced", "open : opens : file", "open : opens=x : file"])
def test_lines_that_it_must_not_have(line: str) -> None:
    with pytest.raises(ValueError, match=r"^iocalls.txt:3: .*NAME : WORDS : PARAMETERS"):
        parse(f"[posix]\nclose : close : handle\n{line}\n")
