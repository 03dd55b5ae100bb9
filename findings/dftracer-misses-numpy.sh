#!/bin/bash
# DFTracer 2.2.0 under NumPy 2.4: of numpy.save it records the 128 bytes of the header, and of the data nothing; of
# ndarray.tofile and numpy.fromfile it records no byte. The opens and closes are there, and no line says that bytes are
# missing. NumPy writes through a FILE that it gets from fdopen(dup(fd)), which the tracer does not follow.
#
# Expected: a profile whose write and read calls add up to the bytes that were moved; the tracer is made for training
# programs in Python, whose data are often files of NumPy.
#
# Seen with the wheels dftracer 2.2.0 and numpy 2.4.6, 1 MiB each:
#     plain: 1048576 bytes written, 1048576 read of a file of 1048576
#     tofile: 0 bytes written, 0 read of a file of 1048576
#     save: 128 bytes written, 0 read of a file of 1048704
# Exit status 0: as seen; 1: the behaviour has changed; another: it could not be tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: dftracer==2.2.0 numpy==2.4.6 >&2 ||
    exit 2
preload=$(find "$folder/venv" -name libdftracer_preload.so -print -quit)
mkdir "$folder/traces" "$folder/data"

cat >"$folder/arrays.py" <<'PROGRAM'
import sys

import numpy as np

folder, data = sys.argv[1], np.arange(1 << 17)
with open(f"{folder}/plain", "wb") as file:
    file.write(data.tobytes())
with open(f"{folder}/plain", "rb") as file:
    assert file.read() == data.tobytes()
data.tofile(f"{folder}/tofile")
assert (np.fromfile(f"{folder}/tofile", data.dtype) == data).all()
with open(f"{folder}/save", "wb") as file:
    np.save(file, data)
PROGRAM
cat >"$folder/count.py" <<'PROGRAM'
import collections
import gzip
import json
import pathlib
import sys

names, calls, folder = {}, [], pathlib.Path(sys.argv[1])
for trace in (folder / "traces").glob("*.pfw.gz"):
    for line in gzip.open(trace, "rt"):
        if line.startswith("{"):
            event = json.loads(line.rstrip().rstrip(","))
            if event["name"] == "FH":
                names[event["args"]["value"]] = pathlib.Path(event["args"]["name"]).name
            else:
                calls.append(event)
moved = collections.Counter()
for event in calls:
    arguments = event.get("args", {})
    way = "write" if "write" in event["name"] else "read" if "read" in event["name"] else ""
    each = arguments.get("size", 1) if event["cat"] == "STDIO" else 1
    moved[names.get(arguments.get("fhash")), way] += max(int(arguments.get("ret") or 0), 0) * int(each) if way else 0
for name in ("plain", "tofile", "save"):
    size = (folder / "data" / name).stat().st_size
    print(f"{name}: {moved[name, 'write']} bytes written, {moved[name, 'read']} read of a file of {size}")
PROGRAM
timeout 120 env LD_PRELOAD="$preload" DFTRACER_ENABLE=1 DFTRACER_INIT=PRELOAD DFTRACER_DATA_DIR=all DFTRACER_INC_METADATA=1 \
    DFTRACER_LOG_FILE="$folder/traces/run" "$folder/venv/bin/python" "$folder/arrays.py" "$folder/data" || exit 2
find "$folder/traces" -empty -delete
"$folder/venv/bin/python" "$folder/count.py" "$folder" | tee "$folder/seen" || exit 2
diff - "$folder/seen" <<'SEEN' || { echo "changed: see the lines above" >&2; exit 1; }
plain: 1048576 bytes written, 1048576 read of a file of 1048576
tofile: 0 bytes written, 0 read of a file of 1048576
save: 128 bytes written, 0 read of a file of 1048704
SEEN
