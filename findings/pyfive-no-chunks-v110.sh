#!/bin/bash
# pyfive 1.3.0, the reader of HDF5 in pure Python, reads no chunked dataset of a file written with libver="v110" or later:
# its open of the dataset raises "RuntimeError: Pyfive cannot yet read HDF5 files with layout class 4", compressed or not.
# Contiguous datasets of the same file are right, and so are chunked ones written with "v108" or without libver.
#
# Expected: "v110" is advised for small headers, and every HDF5 library since 1.10, of 2016, reads such files. A program
# that reads them over the network by pyfive, to get along without a C library, cannot, and the writer does not know.
#
# Seen with the wheels h5py 3.16.0 (HDF5 2.0.0) and pyfive 1.3.0:
#     default: contiguous ok, chunked ok, gzip ok
#     v108: contiguous ok, chunked ok, gzip ok
#     v110: contiguous ok, chunked layout class 4, gzip layout class 4
# Exit status 0: as seen; 1: the behaviour has changed; another: it could not be tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: h5py==3.16.0 pyfive==1.3.0 \
    numpy==2.3.3 >&2 || exit 2
cat >"$folder/try.py" <<'PROGRAM'
import sys

import h5py
import numpy as np
import pyfive

DATA = np.arange(1000.0)
KINDS = {"contiguous": {}, "chunked": {"chunks": (100,)}, "gzip": {"chunks": (100,), "compression": "gzip"}}
for name, options in (("default", {}), ("v108", {"libver": ("v108", "v108")}), ("v110", {"libver": ("v110", "v110")})):
    path = f"{sys.argv[1]}/{name}.h5"
    with h5py.File(path, "w", **options) as file:
        for kind, storage in KINDS.items():
            file.create_dataset(kind, data=DATA, **storage)
    seen = []
    with pyfive.File(path) as file:
        for kind in KINDS:
            try:
                seen.append(f"{kind} ok" if np.array_equal(file[kind][...], DATA) else f"{kind} wrong")
            except RuntimeError as error:
                seen.append(f"{kind} {str(error).rpartition('with ')[2]}")
    print(f"{name}: {', '.join(seen)}")
PROGRAM
"$folder/venv/bin/python" "$folder/try.py" "$folder" | tee "$folder/seen" || exit 2
diff - "$folder/seen" <<'SEEN' || { echo "changed: see the lines above" >&2; exit 1; }
default: contiguous ok, chunked ok, gzip ok
v108: contiguous ok, chunked ok, gzip ok
v110: contiguous ok, chunked layout class 4, gzip layout class 4
SEEN
