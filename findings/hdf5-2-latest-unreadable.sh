#!/bin/bash
# HDF5 2.0.0 (in h5py 3.16.0): a file written with libver="latest" has datasets that HDF5 1.14.6 (in h5py 3.14.0) cannot
# open: those with a filter, such as gzip, and those of complex numbers. The file itself opens, and its other datasets are
# right. libver=("v110", "v110") gives a file no larger, which both read whole.
#
# Expected: "latest" asks for the newest format of each object; contiguous doubles were readable for years that way. Advice
# to write small headers by "latest" is in many guides on parallel HDF5; readers on clusters have 1.10 to 1.14.
#
# Seen:
#     latest 13826 B chunked ok complex FAIL gzip FAIL plain ok
#     v110 13777 B chunked ok complex ok gzip ok plain ok
# with the errors "bad version number for datatype message" (complex) and "... for layout message" (gzip).
# Exit status 0: as seen; 1: the behaviour has changed; another: it could not be tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 3.16.0 3.14.0; do
    python3 -m venv "$folder/$version" && "$folder/$version/bin/pip" install -q --only-binary :all: "h5py==$version" numpy==2.3.3 ||
        { echo "h5py $version cannot be installed" >&2; exit 2; }
done
cat >"$folder/write.py" <<'P'
import sys

import h5py
import numpy as np

assert h5py.version.hdf5_version == "2.0.0", h5py.version.hdf5_version
for name in ("latest", "v110"):
    with h5py.File(f"{sys.argv[1]}/{name}.h5", "w", libver=(name, name)) as file:
        file["plain"] = np.arange(10.0)
        file["complex"] = np.arange(10) * 1j
        file.create_dataset("chunked", data=np.arange(1000.0), chunks=(100,))
        file.create_dataset("gzip", data=np.arange(1000.0), chunks=(100,), compression="gzip")
        file.attrs.update({f"attribute{number}": number for number in range(20)})
P
cat >"$folder/read.py" <<'P'
import os
import sys

import h5py

assert h5py.version.hdf5_version == "1.14.6", h5py.version.hdf5_version
for name in ("latest", "v110"):
    with h5py.File(f"{sys.argv[1]}/{name}.h5") as file:
        words = [f"{os.path.getsize(file.filename)} B"]
        for dataset in sorted(file):
            try:
                file[dataset][...]
                words.append(f"{dataset} ok")
            except (KeyError, OSError) as error:
                print(error, file=sys.stderr)
                words.append(f"{dataset} FAIL")
    print(name, *words)
P
"$folder/3.16.0/bin/python" "$folder/write.py" "$folder"
"$folder/3.14.0/bin/python" "$folder/read.py" "$folder" | tee "$folder/seen"
python3 - "$folder/seen" <<'P'
import sys

latest, v110 = (line.split() for line in open(sys.argv[1]))
same = int(v110[1]) <= int(latest[1]) and " ".join(v110[3:]) == "chunked ok complex ok gzip ok plain ok"
sys.exit(not (same and " ".join(latest[3:]) == "chunked ok complex FAIL gzip FAIL plain ok"))
P
