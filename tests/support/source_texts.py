"""Small inputs of every monitoring source, as the tools print them."""

from __future__ import annotations

import io
import json
import tarfile

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

_MMDF = """disk                disk size  failure holds    holds              free KB             free KB
name                    in KB    group metadata data        in full blocks        in fragments
--------------- ------------- -------- -------- ----- -------------------- -------------------
Disks in storage pool: system (Maximum disk size allowed is 242 GB)
meta1                 2097152      101 Yes      No           966656 ( 46%)          3424 ( 0%)
                -------------                         -------------------- -------------------
(pool total)          2097152                                966656 ( 46%)          3424 ( 0%)

Disks in storage pool: data (Maximum disk size allowed is 242 GB)
data1                 4194304       -1 No       Yes         1048576 ( 25%)          1888 ( 0%)
data2                 4194304      103 No       Yes         3145728 ( 75%)          1888 ( 0%)
                -------------                         -------------------- -------------------
(pool total)          8388608                               4194304 ( 50%)          3776 ( 0%)

                =============                         ==================== ===================
(data)                8388608                               4194304 ( 50%)          3776 ( 0%)
(metadata)            2097152                                966656 ( 46%)          3424 ( 0%)
                =============                         ==================== ===================
(total)              10485760                               5160960 ( 49%)          7200 ( 0%)

Inode Information
-----------------
Number of used inodes:            4041
Number of free inodes:           62519
Number of allocated inodes:      66560
Maximum number of inodes:        66560
"""
_LATER = _MMDF.replace("966656 ", "900000 ").replace("5160960", "5094304")
MMDF = f"BEGIN 1489998203\n{_MMDF}BEGIN 1489999103\n{_LATER}"
MMDF_Y = """mmdf:nsd:HEADER:version:reserved:reserved:nsdName:storagePool:diskSize:failureGroup:metadata:data:\
freeBlocks:\
freeBlocksPct:freeFragments:freeFragmentsPct:diskAvailableForAlloc:
mmdf:poolTotal:HEADER:version:reserved:reserved:poolName:poolSize:freeBlocks:freeBlocksPct:freeFragments:\
freeFragmentsPct:maxDiskSize:
mmdf:fsTotal:HEADER:version:reserved:reserved:fsSize:freeBlocks:freeBlocksPct:freeFragments:freeFragmentsPct:
mmdf:inode:HEADER:version:reserved:reserved:usedInodes:freeInodes:allocatedInodes:maxInodes:
mmdf:nsd:0:1:::P_META:system:771751936:300:Yes:No:320274944:41:5005384:1::
mmdf:nsd:0:1:::P_DATA:da%3Ata:46766489600:200:No:Yes:6092915712:13:154966272:0::
mmdf:poolTotal:0:1:::da%3Ata:46766489600:6092915712:13:154966272:0:3860104580096:
mmdf:fsTotal:0:1:::47538241536:6413190656:13:159971656:0:
mmdf:inode:0:1:::430741822:484301506:915043328:1332164000:
"""

#: One disk is down in the second snapshot, and one is emptied.
MMLSDISK = """BEGIN 1489998203
disk         driver   sector     failure holds    holds                            storage
name         type       size       group metadata data  status        availability pool
------------ -------- ------ ----------- -------- ----- ------------- ------------ ------------
meta1        nsd         512         101 Yes      No    ready         up           system
data1        nsd         512          -1 No       Yes   ready         up           data
data2        nsd         512         103 No       Yes   ready         up           data
BEGIN 1489999103
disk         driver   sector     failure holds    holds                            storage
name         type       size       group metadata data  status        availability pool
------------ -------- ------ ----------- -------- ----- ------------- ------------ ------------
meta1        nsd         512         101 Yes      No    ready         up           system
data1        nsd         512          -1 No       Yes   being emptied up           data
data2        nsd         512         103 No       Yes   ready         down         data
"""
MMLSDISK_L = """disk         driver   sector     failure holds    holds                                    storage
name         type       size       group metadata data  status        availability disk id pool         remarks
------------ -------- ------ ----------- -------- ----- ------------- ------------ ------- ------------ ---------
meta1        nsd         512         101 yes      no    ready         up                 1 system       desc
data1        nsd         512          -1 no       yes   suspended     recovering         2 data
Number of quorum disks: 3
Read quorum value:      2
Write quorum value:     2
"""
MMLSDISK_Y = """mmlsdisk::HEADER:version:reserved:reserved:nsdName:driverType:sectorSize:failureGroup:metadata:\
data:status:\
availability:diskID:storagePool:remarks:numQuorumDisks:readQuorumValue:writeQuorumValue:diskSizeKB:diskUID:thinDiskType:
mmlsdisk::0:1:::RG001VS003:nsd:512:1:yes:yes:ready:up:1:system:desc:3:2:2:130518089728:C0A82D155E83D23B::
mmlsdisk::0:1:::RG003VS004:nsd:512:1:no:yes:to be emptied:up:3:data::3:2:2:2227566542848:C0A82D155E83D23C::
"""

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

SERIES = """# made by hand
time,read [B/s],"busy, all [%]"
2018-01-28T00:00:00Z,1,2.5
2018-01-28 00:00:05,,nan
1517126410,3e2,0
"""

TOKIO_JOBS = json.dumps(
    {
        name: {
            "jobidraw": name,
            "start": "2017-03-20T01:59:02",
            "end": "2017-03-20T02:11:39",
            "nodelist": ["nid05000", "nid05001"],
        }
        for name in ("4478544", "4478544.0")
    }
)

SACCT = """JobIDRaw|State|Start|End|NodeList|
100|COMPLETED|2018-01-28T01:00:00|2018-01-28T02:00:30|nid0[0001-0003]|
100.0|COMPLETED|2018-01-28T01:00:10|2018-01-28T02:00:00|nid0[0001-0003]|
"""

COBALT = """JOB_NAME,COBALT_JOBID,MACHINE_NAME,QUEUED_TIMESTAMP,START_TIMESTAMP,END_TIMESTAMP,USERNAME_GENID,\
PROJECT_NAME_GENID,QUEUE_NAME,WALLTIME_SECONDS,RUNTIME_SECONDS,NODES_USED,NODES_REQUESTED,CORES_USED,CORES_REQUESTED,\
LOCATION,EXIT_STATUS,QUEUED_WAIT_SECONDS,USED_CORE_HOURS,MODE,COBALT_NUM_TASKS
1204001.mira,1204001,mira,2017-06-01 10:00:00,2017-06-01 10:30:00.5,2017-06-01 11:30:00,77,88,prod-short,7200.0,3599.5,\
4096.0,4096.0,65536.0,65536.0,MIR-08800-3BFF1-3-4096,0,1800.5,65526.9,script,3
205001.theta,205001,theta,2017-06-01 10:00:00,2017-06-01 10:45:00,2017-06-01 10:50:00,79,88,default,600,300,3,3,\
192,192,\
"3-4,10",-1,2700,16.0,script,0
"""
_RESOURCES = "Resource_List.ncpus=4096 Resource_List.nodect=4096 Resource_List.walltime=00:20:00"
COBALT_RECORDS = f"""11/07/2014 20:41:00;Q;359758;Resource_List.nodect=4096 queue=default resource=mira user=anna
11/07/2014 22:58:40;S;359758;account=P1 ctime=1415414459.0 exec_host=MIR-08800-3BFF1-3-4096 {_RESOURCES} \
start=1415422720.9
11/07/2014 22:58:41;TS;359758;location=MIR-08800-3BFF1-3-4096 start=1415422721.0 task_id=1
11/07/2014 23:02:10;E;359758;Exit_status=143 args="-x \\"a b\\"" end=1415422930.0 jobname=N/A mode=c16 \
{_RESOURCES} user=anna
11/07/2014 23:05:00;B;17;owner=root queue=R.maint
11/07/2014 23:06:00;S;359760;exec_host=3-6,10 {_RESOURCES} start=1415423160 user="b,c"
"""
COBALT_QSTAT = """JobID   User   WallTime  QueuedTime  RunTime   Nodes  State    Location                StartTime
================================================================================================================
359758  anna   00:20:00  02:17:41    00:03:29  4096   running  MIR-08800-3BFF1-3-4096  Fri Nov 07 22:58:40 2014
359799  bernd  06:00:00  00:01:00    N/A       512    queued   None                    N/A
"""
COBALT_LONG = """JobID: 359758
    User             : anna
    WallTime         : 00:20:00
    Nodes            : 4096
    State            : running
    Location         : MIR-08800-3BFF1-3-4096
    StartTime        : Fri Nov 07 22:58:40 2014 +0000 (UTC)

JobID: 359799
    User             : bernd
    Nodes            : 512
    State            : queued
"""


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
    "mmdf": MMDF.encode(),
    "mmlsdisk": MMLSDISK.encode(),
    "lfs-df": LFS_DF.encode(),
    "lctl-dl": LCTL_DL.encode(),
    "xtdb2proc": XTDB2PROC.encode(),
    "ggiostat": GGIOSTAT.encode(),
    "csv": SERIES.encode(),
    "slurm": TOKIO_JOBS.encode(),
    "cobalt": COBALT.encode(),
}
#: Further forms of some sources.
FORMS: dict[str, tuple[str, bytes]] = {
    **{source: (source, text) for source, text in TEXTS.items()},
    "mmdf-Y": ("mmdf", MMDF_Y.encode()),
    "mmlsdisk-L": ("mmlsdisk", MMLSDISK_L.encode()),
    "mmlsdisk-Y": ("mmlsdisk", MMLSDISK_Y.encode()),
    "sacct": ("slurm", SACCT.encode()),
    "cobalt-records": ("cobalt", COBALT_RECORDS.encode()),
    "qstat": ("cobalt", COBALT_QSTAT.encode()),
    "qstat-l": ("cobalt", COBALT_LONG.encode()),
    "archive": ("mmperfmon", archive(("day/a.out", USAGE), ("day/b.out", USAGE.replace("io1", "io2")))),
}
