"""Opens a file and carries out orders: ``subfiles_opener.py FILE MODE ORDERS BYTES``.

ORDERS is a file that grows. Each of its lines is write, read (of BYTES), empty or close. The program prints
"pid N", "opened SIZE" or "refused True" if there is no such file, and "done N" after each order.
"""

from __future__ import annotations

import os
import pathlib
import sys
import time

import numpy as np
from mpi4py import MPI


def carry_out(file: MPI.File, order: str, size: int) -> None:
    """Carry out one order."""
    data = (np.arange(size) % 256).astype("u1")
    if order == "write":
        file.Write_at(0, data)
    elif order == "read":
        back = np.zeros(size, "u1")
        file.Read_at(0, back)
        assert (back == data).all()
    elif order == "empty":
        file.Set_size(0)
    else:
        file.Close()


def main() -> None:
    """Open the file, and wait for orders until the last one, close."""
    name, mode, orders, size = sys.argv[1:]
    print("pid", os.getpid(), flush=True)
    try:
        file = MPI.File.Open(MPI.COMM_SELF, name, getattr(MPI, f"MODE_{mode}"))
    except MPI.Exception as error:
        print("refused", error.Get_error_class() == MPI.ERR_NO_SUCH_FILE, flush=True)
        return
    print("opened", file.Get_size(), flush=True)
    done: list[str] = []
    while "close" not in done:
        given = pathlib.Path(orders).read_text("utf-8").split() if pathlib.Path(orders).exists() else []
        for order in given[len(done) :]:
            carry_out(file, order, int(size))
            done.append(order)
            print("done", len(done), flush=True)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
