"""Advice: the hint, the strategy of this library, the command, and the page that describes them.

Every hint that this module names exists (``mpiio-ext hints``): a test checks each of them.
"""

from __future__ import annotations

import math

from mpiio_ext.analytics.diagnosis.model import Advice

#: Find out what helps instead of guessing.
MEASURE = Advice(
    "Let the tuner search for hints for this program, and measure their effect.",
    "mpiio-ext tune -- mpirun -n RANKS PROGRAM",
    "docs/howto/find-hints.md",
)
#: Small independent pieces.
DELEGATES = Advice(
    "Without changing the program: let delegates collect the small independent accesses. Delegates are processes that"
    " access files for the ranks.",
    "mpirun -n RANKS mpiio-ext run -H mpiox_delegates=per_node=1 -- PROGRAM",
    "docs/explanation/delegates.md",
)
#: Collective calls that aggregators carry out with a small buffer.
LARGER_ROUNDS = Advice(
    "Give aggregators a larger buffer: no request, and no round of the exchange, is larger than the buffer.",
    "mpiio-ext run -H cb_buffer_size=16777216 -- PROGRAM",
    "docs/howto/hints.md",
)
#: Collective writes that leave gaps.
WHOLE_RECORDS = Advice(
    "Write what lies in the gaps with the rest (whole records), or give each field a part of the file of its own:"
    " pieces without gaps become few large requests."
)
#: Chunks of HDF5 that the program accesses in parts, and that its cache has no room for.
CHUNK_CACHE = Advice(
    "Access whole chunks at once, make each chunk as large as one access of the program (H5Pset_chunk), or"
    " give the cache of a dataset room for the chunks in use (H5Pset_chunk_cache; rdcc_nbytes of h5py).",
    see="docs/howto/hdf5.md",
)
#: Fill values, which data then replace.
NO_FILL = Advice(
    "Write no fill values where data follow: H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER), nc_set_fill(NC_NOFILL).",
    see="docs/howto/hdf5.md",
)
#: Read-modify-write.
NO_SIEVING = (
    Advice(
        "Let mpiio_ext carry out the calls: it writes pieces as they are, and never reads in order to write.",
        "mpirun -n RANKS mpiio-ext run -- PROGRAM",
        "docs/reference/rules.md",
    ),
    Advice(
        "Or forbid read-modify-write by a hint of ROMIO, which other MPI libraries ignore.",
        "mpiio-ext run -H romio_ds_write=disable -- PROGRAM",
        "docs/howto/hints.md",
    ),
)
#: Blocks that the program reads before it overwrites them.
WRITE_WITHOUT_READING = Advice(
    "Do not read a block that the program overwrites as a whole. If a part of a block changes, keep the block in"
    " memory, and write it once, when all its changes are known."
)
#: The program reads what it has just written.
CHECK_IN_MEMORY = Advice(
    "Compute checksums of data in memory, before the data are written, and read a file back only now and then. If the"
    " program needs the data again, keep them in memory."
)
#: A library moves the data of a file since its header grows.
DEFINE_FIRST = Advice(
    "Define all variables and attributes before the first data are written, or reserve space for the header"
    " (h_minfree of nc__enddef; the hint nc_header_align_size of PnetCDF)."
)
#: The same places are written again and again.
WRITE_ONCE = Advice(
    "Keep data that change in memory, and write them once at the end; or write only data that have changed. If the"
    " program writes all of a variable, turn fill values off (H5Pset_fill_time with H5D_FILL_TIME_NEVER, nc_set_fill"
    " with NC_NOFILL)."
)
#: Small files on many OSTs.
FEWER_STRIPES = Advice(
    "Give small files one stripe: set the stripe count of their folder before the files are created.",
    "lfs setstripe -c 1 DIRECTORY",
)
#: Many small files.
BUNDLE = Advice("Bundle small files: one shared file (HDF5, PnetCDF), or an archive that is unpacked on local storage.")
#: Ranks write between one another.
OWN_REGIONS = Advice(
    "Let each rank write a region of its own, which begins at a boundary of blocks or stripes, or use collective calls."
    " If the pieces of several ranks alternate in the file, a write may wait for a lock of the file system that the"
    " node of another rank owns (Lustre, GPFS, BeeGFS).",
    see="docs/explanation/file-domains.md",
)
#: Calls that wait for locks.
NO_LOCKS = Advice(
    "Let each rank write blocks of its own, or use collective calls, which need no locks. If the program sets atomic"
    " mode (MPI_File_set_atomicity), switch it off.",
    see="docs/howto/what-to-do.md",
)
#: Syncs after writes.
FEWER_SYNCS = Advice(
    "Sync once, after all writes. Or sync rarely, for instance after each 100 MB. Do not sync after each piece."
)
FEWER_MPI_SYNCS = Advice(
    f"{FEWER_SYNCS.text} If no other rank reads the file before it is closed, do not call MPI_File_sync."
)
#: Reads at the end of a file until it grows.
NO_POLLING = Advice(
    "Do not read again and again until a file grows: let the process that writes the file send a message."
)
#: Load by others, or a fault of the storage.
OTHER_LOAD = Advice(
    "Compare with other runs of the program, and with the bytes that the servers moved at that time: this shows whether"
    " other jobs loaded the storage, or the storage has a fault.",
    "mpiio-ext analyze umami --help",
    "docs/howto/program-or-system.md",
)


def use_collective(direction: str) -> Advice:
    """Collective calls instead of independent ones."""
    return Advice(
        f"Use collective calls (MPI_File_{direction}_all, HDF5 with H5FD_MPIO_COLLECTIVE): ranks then exchange their"
        " pieces and aggregators make few large requests.",
        see="docs/howto/what-to-do.md",
    )


def collective_buffering(direction: str) -> Advice:
    """Collective calls that are carried out as they are."""
    return Advice(
        "Switch collective buffering on: the calls are collective, but small requests reach the file system.",
        f"mpiio-ext run -H romio_cb_{direction}=enable -H mpiox_exchange=two_phase -- PROGRAM",
        "docs/howto/hints.md",
    )


def open_once(*, again: bool = True) -> Advice:
    """Opens and closes by MPI-IO, which a process makes of a file several times (`again`), or once."""
    check = "heck whether ranks arrive at these calls at the same time (measure an MPI_Barrier before such a call)."
    return Advice(f"Open each file once, and keep it open; c{check}" if again else f"C{check}")


def hdf5_metadata(direction: str, *, flushed: bool) -> Advice:
    """HDF5's own metadata, which a program may flush again and again."""
    flush = " Flush (H5Fflush) when a step is done, not after each object." if flushed else ""
    together = "H5Pset_coll_metadata_write" if direction == "write" else "H5Pset_all_coll_metadata_ops"
    return Advice(
        f"Let HDF5 collect its metadata: {together}, H5Pset_libver_bounds (V110), and a larger"
        f" H5Pset_meta_block_size; put values of many small attributes and groups into one dataset.{flush}",
        see="docs/howto/hdf5.md",
    )


def larger_requests(direction: str, *, mpiio: bool = False, hdf5: bool = False, alone: bool = False) -> Advice:
    """Small requests of MPI-IO, of HDF5 without it, or of POSIX; `alone`: of a program that MPI-IO does not help."""
    if mpiio:
        return Advice(
            "Give each call more bytes: make one call with a datatype or a view instead of many small calls.",
            see="docs/howto/what-to-do.md",
        )
    reads, speed = direction == "read", "mpiio_ext can then speed up the program by hints alone"
    if hdf5:
        workers = " Let few workers read the same file: each fills a chunk cache of its own." if reads else ""
        return Advice(
            f"{direction.capitalize()} many samples, or whole chunks, by one call; put many small datasets into one;"
            f" make chunks of what one call {direction}s (H5Pset_chunk; chunks of h5py), and give the chunk cache room"
            " for the chunks in use (H5Pset_chunk_cache; rdcc_nbytes of h5py)"
            f"{'.' + workers if alone else f'. Or open the file by MPI-IO (driver mpio): {speed}.'}",
            see="docs/howto/python-loaders.md",
        )
    buffered = (
        "Read at least 1 MB at once, and take the records from memory"
        if reads
        else "Collect data in a buffer of at least 1 MB before writing"
    )
    return Advice(
        f"{buffered}{'' if alone else f'. Or use MPI-IO, HDF5 or PnetCDF: {speed}'}.", see="docs/howto/what-to-do.md"
    )


def larger_pieces(*, flushed: bool, plain: bool) -> Advice:
    """Tiny pieces, through the C library, or `plain`, by POSIX."""
    if plain:
        return Advice(
            "Put pieces together in a buffer of at least 1 MB. Avoid flush=True and buffering=0 (Python), and flush and"
            " endl (C++) after each piece."
        )
    if flushed:
        return Advice("Flush when a step is done, not after each piece (fflush, setvbuf with _IONBF or _IOLBF).")
    return Advice(
        "Collect many values in memory (an array, a line buffer), and write or read them with one fwrite or fread. Or"
        " use binary data instead of text."
    )


def come_together(rank: int | None = None) -> Advice:
    """A rank arrives late at collective calls; None: perhaps one does."""
    if rank is None:
        return Advice(
            "Check whether ranks arrive at these calls at the same time (measure an MPI_Barrier before such a call),"
            " and how many bytes they exchange. The ranks do not wait for the storage."
        )
    return Advice(
        f"Find out what rank {rank} does before the calls (more work, output, a slow node): in the collective calls the"
        " other ranks wait for this rank, not for the storage."
    )


def own_offsets(direction: str) -> Advice:
    """A shared file pointer."""
    logs = " Or give each rank a file of its own for logs." if direction == "write" else ""
    return Advice(
        f"Let each rank compute its place (MPI_Exscan of the sizes) and {direction} there"
        f" (MPI_File_{direction}_at_all); the shared pointer makes ranks wait for one another.{logs}"
    )


def read_once(*, again: bool = False, alone: bool = False) -> Advice:
    """Ranks read the same data; `alone`: there is one process."""
    keep = "Keep in memory the data that a rank needs again. " if again else ""
    if alone:
        return Advice(keep.strip())
    return Advice(
        f"{keep}Let one rank of the job, or of each node, read the data and broadcast them (MPI_Bcast). Or use"
        " collective calls (MPI_File_read_all): the storage then delivers the data once.",
        see="docs/howto/what-to-do.md",
    )


def stripes(processes: float, now: float, osts: int | None) -> list[Advice]:
    """Too many processes per OST; no advice if the file lies on all of the `osts` that are known to exist."""
    if osts is not None and now >= osts:
        return []
    wanted = int(min(max(2, min(processes, 8 * max(now, 1))), osts or math.inf))
    return [
        Advice(
            "Stripe the file over more OSTs before it is created (an existing file keeps its stripes).",
            f"lfs setstripe -c {wanted} -S 4M DIRECTORY",
        ),
        Advice(
            "For files that MPI-IO creates, hints set the stripes; another hint lets few aggregators use each OST.",
            f"mpiio-ext run -H striping_factor={wanted} -H striping_unit=4M -H mpiox_partition=group_cyclic -- PROGRAM",
            "docs/explanation/file-domains.md",
        ),
    ]


def contact(osts: list[str]) -> list[Advice]:
    """A bad storage target."""
    return [
        Advice(
            "Report the OST to the administrators: they can see degraded disks, a rebuild or a full target.",
            "lfs df -h MOUNT; lctl get_param obdfilter.*.degraded" if osts else "",
        ),
        Advice("Until the OST is repaired, create no new files on it.", "lfs setstripe -o LIST_OF_GOOD_OSTS DIRECTORY"),
    ]


def aggregators(direction: str, wanted: int, *, fewer: bool = False) -> Advice:
    """One aggregator for all; or `fewer` are better."""
    return Advice(
        "Let fewer processes carry out the collective calls: one for each OST."
        if fewer
        else "Let more processes carry out the collective calls: one or two for each OST, on several nodes.",
        f"mpiio-ext run -H cb_nodes={wanted} -H romio_cb_{direction}=enable -- PROGRAM",
        "docs/howto/hints.md",
    )


def parallel_root(direction: str, *, filled: bool = False) -> Advice:
    """One rank or a few ranks do all the work; `filled`: no MPI-IO call requests the bytes."""
    instead = "gathering it in few ranks" if direction == "write" else "getting it from few ranks"
    return Advice(
        f"If the other ranks wait meanwhile, let all ranks {direction} their part (collective MPI-IO, parallel HDF5,"
        f" PnetCDF) instead of {instead}."
        + (" Do not fill the file before: with MPI_File_preallocate one rank writes all of it." if filled else ""),
        see="docs/howto/what-to-do.md",
    )


NO_COPY = Advice(
    "If the rank copies files: rename or link them instead, or let each rank copy a part. If it gathers files of other"
    " ranks: let each rank write its part of one file (MPI_File_write_at_all).",
    see="docs/howto/what-to-do.md",
)


def overlap(direction: str = "write", *, mpi: bool = True) -> Advice:
    """Files one after the other; `mpi`: by MPI-IO."""
    ways = ["groups of ranks each with a file of its own"]
    ways += [f"nonblocking calls (MPI_File_i{direction}_all)"] if mpi else []
    one = "; or write into one file" if direction == "write" else ""
    return Advice(
        f"{direction.capitalize()} the files at the same time: {', or '.join(ways)}{one}. Search for barriers between"
        " the files."
    )


def at_once(direction: str) -> Advice:
    """Ranks in turn."""
    return Advice(
        f"Let ranks {direction} at the same time, each its own part of the file. Search for the code that makes one"
        " rank wait for another: messages from rank to rank, a loop over ranks with a barrier, a lock."
    )


def metadata(
    *, again: bool, many: bool = False, stats: bool = False, polled: bool = False, renames: bool = False
) -> Advice:
    """Opens and the like: the same files again and again, many files, stats (`polled`: very many of few files)."""
    sentences = [
        text
        for text, it in (
            ("Open files once, before the loop, and keep them open", again),
            ("Put the data of many small files into few large ones", many),
            ("Call stat once, keep its result, and let one rank send this result to the others", stats and not polled),
            ("Do not call stat until a file changes: let the rank that writes the file send a message", polled),
            (
                "Put the step (or the step modulo the number of files) into the names of files, and do not rename"
                " files",
                renames,
            ),
        )
        if it
    ]
    return Advice(
        f"{'. '.join(sentences or ['Make fewer of these calls: let one rank make them, and send others the result'])}."
    )


def imbalance(by_bytes: bool, collective: bool = True) -> Advice:
    """One rank takes longer than the others; no hint helps a program without collective calls."""
    if by_bytes and not collective:
        return Advice(
            "Spread the data more evenly over ranks; or use collective calls (MPI-IO, parallel HDF5):"
            " aggregators get equal shares, however many bytes each rank has.",
            see="docs/howto/what-to-do.md",
        )
    if by_bytes:
        return Advice(
            "Spread the data more evenly over ranks. In collective calls aggregators get equal shares, however many"
            " bytes each rank has.",
            "mpiio-ext run -H mpiox_exchange=two_phase -- PROGRAM",
            "docs/howto/hints.md",
        )
    return Advice(
        "The slow rank moves no more bytes than other ranks, but takes longer: check the node and the network of this"
        " rank, and the storage of its files (file system, OSTs)."
    )


#: Files that are slower than others.
SLOW_FILES = Advice(
    "Check the storage of the slow files (file system, OSTs), and the nodes and the network of the ranks that access"
    " these files."
)


def other_folder() -> Advice:
    """One folder is slower than another."""
    return Advice("Put the files of the slow folder into the fast folder, or on storage that is as fast.")


def align(*, collective: bool) -> Advice:
    """Requests across blocks; hints move only those of collective calls."""
    if not collective:
        return Advice(
            "Begin requests at stripe boundaries (H5Pset_alignment in HDF5), or use collective calls: their file"
            " domains are cut at stripes.",
            see="docs/explanation/file-domains.md",
        )
    return Advice(
        "Begin requests at stripe boundaries: use H5Pset_alignment in HDF5, and file domains that end at stripes.",
        "mpiio-ext run -H mpiox_partition=aligned -H mpiox_stripe_size_io=true -- PROGRAM",
        "docs/explanation/file-domains.md",
    )
