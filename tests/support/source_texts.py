"""Small inputs of every monitoring source, as the tools print them."""

from __future__ import annotations

import io
import json
import tarfile

from mpiio_ext.delegates.arbiter.mapfile import Map

USAGE = """
Legend:
 1:\tio1.site|CPU|cpu_user
 2:\tio1.site|Memory|mem_free
 3:\tio1.site|Network|lo|net_r
 
Row           Timestamp cpu_user    mem_free 
  1 2019-01-11-10:00:00      0.2  18786.5 MB 
  2 2019-01-11-10:01:00     null  18785.6 MB 
 
Row           Timestamp     net_r 
  1 2019-01-11-10:00:00    1.7 kB 
  2 2019-01-11-10:01:00   98.7 kB 
"""  # noqa: W291, W293  (mmperfmon ends its lines so)

#: Two snapshots; in the second, OST 1 is gone.
LFS_DF = """BEGIN 1489998203
UUID                   1K-blocks        Used   Available Use% Mounted on
snx1-MDT0000_UUID           1000         100         900  10% /scratch[MDT:0]
snx1-OST0000_UUID           2000        1000         900  53% /scratch[OST:0]
snx1-OST000a_UUID           2000         500        1400  27% /scratch[OST:10]

filesystem summary:         4000        1500        2300  40% /scratch

BEGIN 1489999103
UUID                   1K-blocks        Used   Available Use% Mounted on
snx1-MDT0000_UUID           1000         100         900  10% /scratch[MDT:0]
snx1-OST0000_UUID           2000        1001         899  53% /scratch[OST:0] D
snx1-OST000a_UUID: inactive device

filesystem summary:         2000        1001         899  53% /scratch

"""

#: OST 1 has moved to the server of OST 0 in the second snapshot.
LCTL_DL = """BEGIN 1489998203
  0 UP mgc MGC10.1.1.3@o2ib2 3547302e-74a0 5
  1 UP lov snx1-clilov-ffff885f 8dbdc7f6-8f86 4
  2 UP mdc snx1-MDT0000-mdc-ffff885f 8dbdc7f6-8f86 5 10.1.1.4@o2ib2
  3 UP osc snx1-OST0000-osc-ffff885f 8dbdc7f6-8f86 5 10.1.1.5@o2ib2
  4 UP osc snx1-OST0001-osc-ffff885f 8dbdc7f6-8f86 5 10.1.1.6@o2ib2
  5 UP osc snx1-OST0002-osc-ffff885f 8dbdc7f6-8f86 5 10.1.1.7@o2ib2
BEGIN 1489999103
  0 UP mgc MGC10.1.1.3@o2ib2 3547302e-74a0 5
  1 UP lov snx1-clilov-ffff885f 8dbdc7f6-8f86 4
  2 UP mdc snx1-MDT0000-mdc-ffff885f 8dbdc7f6-8f86 5 10.1.1.4@o2ib2
  3 UP osc snx1-OST0000-osc-ffff885f 8dbdc7f6-8f86 5 10.1.1.5@o2ib2
  4 UP osc snx1-OST0001-osc-ffff885f 8dbdc7f6-8f86 5 10.1.1.5@o2ib2
  5 IN osc snx1-OST0002-osc-ffff885f 8dbdc7f6-8f86 5 10.1.1.7@o2ib2
"""

_FIELDS = "processor_status='up',processor_type='compute',cabinet=null,vendor='x,y'"
XTDB2PROC = "# comments\n#\n" + "".join(
    f"cpu={at % 4},slot=2,x_coord={x},y_coord={y},z_coord=0,{_FIELDS},processor_id={5000 + at}\n"
    for at, (x, y) in enumerate([(0, 0), (4, 0), (0, 3), (4, 3)])
)

GGIOSTAT = """FILESYSTEM_NAME,NODE_NAME,SECONDS,MICROSECONDS,BYTES_READ,BYTES_WRITTEN,READ_REQUESTS
mira-fs1,ion1,1489998203,500000,1024,2048,3
mira-fs1,ion2,1489998203,500001,0,,4
"""

PROMETHEUS = json.dumps({
    "status": "success", "warnings": ["partial"],
    "data": {"resultType": "matrix", "result": [
        {"metric": {"__name__": "disk_read_bytes_total", "instance": "oss1", "device": "sda"},
         "values": [[1489998203, "10"], [1489998208.5, "NaN"], [1489998213, "+Inf"]]},
        {"metric": {}, "values": [[1489998203, "1e3"]]},
    ]},
}, indent=1)  # fmt: skip

SERIES = """# made by hand
time,read [B/s],"busy, all [%]"
2018-01-28T00:00:00Z,1,2.5
2018-01-28 00:00:05,,nan
1517126410,3e2,0
"""

TOKIO_JOBS = json.dumps({
    name: {"jobidraw": name, "start": "2017-03-20T01:59:02", "end": "2017-03-20T02:11:39",
           "nodelist": ["nid05000", "nid05001"]}
    for name in ("4478544", "4478544.0")
})  # fmt: skip

SACCT = """JobIDRaw|State|Start|End|NodeList|
100|COMPLETED|2018-01-28T01:00:00|2018-01-28T02:00:30|nid0[0001-0003]|
100.0|COMPLETED|2018-01-28T01:00:10|2018-01-28T02:00:00|nid0[0001-0003]|
"""

ARBITER = json.dumps({
    "serving": True, "settings": {"io_nodes": 4}, "map": {"generation": 3, "jobs": {"a": [0, 2], "b": []}},
    "jobs": [{"job": "a", "host": "n1", "pid": 7, "boot": "", "processes": 4026531836, "ranks": 8, "nodes": None,
              "delegates": 2, "program": "p", "scheduler_job": "", "applied": 3, "touched_ns": 1, "age_s": 0.5,
              "noticed_us": None,
              "applied_us": 12}],
})  # fmt: skip
ARBITER_MAP = Map(3, {"a": (0, 2), "b": ()}).encode()

DELEGATES = json.dumps({
    "host": "n1", "sampled_unix_s": 1489998203.5,
    "delegates": [{"group": "g", "delegate": 0, "delegates": 2, "mode": "ahead", "host": "n1", "pid": 8,
                   "state": "idle",
                   "answers": True, "started_unix_s": 1489998000.25, "uptime_s": 203.25, "pages": 16, "dirty_bytes": 0,
                   "hit_fraction": None, "counters": {"requests": 5}, "files": [
                       {"path": "/d/x", "openers": 2, "readable": True, "writable": False, "replica": False,
                        "end_bytes": 10, "dirty_bytes": 0, "errors": 0}]}],
})  # fmt: skip

ARBITRATION = json.dumps({
    "what": "arbitration run", "format": 1, "units": {"_s": "s"}, "environment": {"hosts": ["n1"]},
    "configuration": {"io_nodes": 4},
    "curves": {"small": {"source": "explored", "points": [
        {"io_nodes": 1, "mean_mb_per_s": 10.5, "best_mb_per_s": 11.0, "deviation_mb_per_s": None, "repetitions": 1}]}},
    "policies": {"mckp": {"jobs": {
        "small": {"pattern": "shared,4KiB", "begin_s": 0.0, "end_s": 0.25, "data_bytes": 3000, "verified_bytes": 10,
                  "bandwidth_mb_per_s": 0.012, "remapped_ranges": 2, "slot_s": 0.1, "later": [1],
                  "slots": [{"time_s": 0.0, "data_bytes": 1000}, {"time_s": 0.1, "data_bytes": 2000}]}},
        "map": [{"time_s": -0.5, "io_nodes": {}}, {"time_s": 0.0, "io_nodes": {"small": 4, "large": 0}}],
        "bandwidth_mb_per_s": 0.012}},
})  # fmt: skip


def archive(*parts: tuple[str, str]) -> bytes:
    """Return a tar archive of texts."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        for name, text in parts:
            information = tarfile.TarInfo(name)
            information.size = len(text.encode())
            file.addfile(information, io.BytesIO(text.encode()))
    return out.getvalue()


#: Source -> an input of it; all are recognised by their contents.
TEXTS: dict[str, bytes] = {
    "mmperfmon": USAGE.encode(),
    "lfs-df": LFS_DF.encode(),
    "lctl-dl": LCTL_DL.encode(),
    "xtdb2proc": XTDB2PROC.encode(),
    "ggiostat": GGIOSTAT.encode(),
    "prometheus": PROMETHEUS.encode(),
    "csv": SERIES.encode(),
    "slurm": TOKIO_JOBS.encode(),
    "arbiter": ARBITER.encode(),
    "delegates": DELEGATES.encode(),
    "arbitration": ARBITRATION.encode(),
}
#: Further forms of some sources.
FORMS: dict[str, tuple[str, bytes]] = {
    **{source: (source, text) for source, text in TEXTS.items()},
    "sacct": ("slurm", SACCT.encode()),
    "map": ("arbiter", ARBITER_MAP),
    "archive": ("mmperfmon", archive(("day/a.out", USAGE), ("day/b.out", USAGE.replace("io1", "io2")))),
}
