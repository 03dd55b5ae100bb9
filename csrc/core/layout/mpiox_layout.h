/*
 * mpiox_layout.h - the layout of a file on its file system: stripe size, servers, lock protocol.
 *
 * Sources, strongest first: hints (striping_unit, striping_factor), the file's own layout (Lustre: the lustre.lov
 * extended attribute, plain and composite; CephFS: ceph.file.layout; BeeGFS: its ioctl), the file system's block size.
 * Opening a file reads only these facts; mpiox_layout_inspect.h returns all. No MPI.
 */
#ifndef MPIOX_LAYOUT_H
#define MPIOX_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"

#define MPIOX_LAYOUT_DEFAULT_STRIPE_SIZE (INT64_C(1) << 20) /* bytes, where nothing better is known */
#define MPIOX_LAYOUT_MAX_STRIPE_SIZE (INT64_C(1) << 62)     /* larger hint values are ignored */

typedef enum mpiox_fs { /* file-system families that are treated differently */
                        MPIOX_FS_UNKNOWN = 0,
                        MPIOX_FS_TMPFS,
                        MPIOX_FS_EXT,
                        MPIOX_FS_XFS,
                        MPIOX_FS_BTRFS,
                        MPIOX_FS_LUSTRE,
                        MPIOX_FS_GPFS,
                        MPIOX_FS_NFS,
                        MPIOX_FS_FUSE,
                        MPIOX_FS_PANFS,
                        MPIOX_FS_PVFS,
                        MPIOX_FS_OVERLAY,
                        MPIOX_FS_ZFS,
                        MPIOX_FS_F2FS,
                        MPIOX_FS_CEPH,
                        MPIOX_FS_BEEGFS,
                        MPIOX_FS_SMB
} mpiox_fs;

typedef enum mpiox_lock_protocol {
    MPIOX_LOCK_LOCAL = 0, /* one kernel: no lock traffic (tmpfs, ext4, xfs...) */
    MPIOX_LOCK_SERVER,    /* extent locks granted by each server (Lustre) */
    MPIOX_LOCK_TOKEN,     /* byte-range tokens from a distributed manager (GPFS) */
    MPIOX_LOCK_NONE       /* no extent locks on behalf of a write: PVFS, NFS and the like (close-to-open at most) */
} mpiox_lock_protocol;

typedef struct mpiox_layout {
    mpiox_fs fs;              /* kind of file system */
    mpiox_lock_protocol lock; /* who grants locks */
    int64_t stripe_size;      /* bytes, > 0 */
    int32_t servers; /* I/O servers that the stripes go round, >= 1: unless `hashed`, stripes i and i + servers are
                           * on the same server */
    /* `servers` objects are written side by side, but a hash chooses their servers, and other objects follow when the
     * objects are full: the server of a stripe is unknown (CephFS) */
    bool hashed;
    bool stripe_known;    /* false: stripe_size is only the default for this file system */
    bool coherent;        /* all processes of all nodes that can see the file see one page cache (a local fs) */
    bool refreshable;     /* not coherent, but mpiox_storage_refresh() works there: GlusterFS, ceph-fuse, MooseFS */
    int32_t stripe_count; /* objects that the stripes go round, each with its own locks; >= servers; 0: not known */
    int32_t start;        /* number, in the file system's count, of the server of the first stripe; -1: not known */
    bool container;       /* the file is stored as several (mpiox_storage_container.h): a stripe is a unit, a server is
                           * one of these files; lock, coherent and so on are those of each file */
} mpiox_layout;

/* Set only the kind of file system: fs, lock and coherent; the rest keeps its defaults. One system call, on FUSE more;
 * never fails. */
void mpiox_layout_detect_family(int fd, mpiox_layout *out);
/* Inspect an open descriptor. striping_unit/striping_factor: hint values, or <= 0 when not given.
 * Never fails: unknown values keep their defaults (stripe_size 1 MiB or the preferred block size if that is larger,
 * servers 1). Blocking system calls; errno is kept. */
void mpiox_layout_detect(int fd, int64_t striping_unit, int32_t striping_factor, mpiox_layout *out);

/* Family, lock protocol and coherence from a statfs(2) f_type; sets stripe_size and servers to their defaults. Pure. */
void mpiox_layout_from_magic(uint64_t f_type, mpiox_layout *out);

/* Stripe size and targets of an open file, as far as the file system reports them. Returns the number of targets; 0:
 * not known. One or two blocking system calls; errno stays. */
int32_t mpiox_layout_targets(int fd, int64_t *stripe_size, int32_t most, int32_t *targets);

/* Names of a family and of a protocol; never NULL. */
const char *mpiox_layout_fs_name(mpiox_fs fs);
const char *mpiox_layout_lock_name(mpiox_lock_protocol lock);
/* The protocol called "local", "server", "token" or "none". 0 or MPIOX_E_ARG. */
int mpiox_layout_lock_find(const char *name, mpiox_lock_protocol *out);

#endif
