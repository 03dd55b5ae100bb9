/*
 * mpiox_layout_mounts.h - facts of a mount in /proc: mountinfo, fdinfo and mountstats as texts. Pure; fuzzed.
 */
#ifndef MPIOX_LAYOUT_MOUNTS_H
#define MPIOX_LAYOUT_MOUNTS_H

#include <stdint.h>

#include "mpiox_error.h"

typedef struct mpiox_layout_mount { /* texts that do not fit are cut */
    char type[64];                  /* as in mount(8): "ext4", "nfs4", "fuse.glusterfs" */
    char point[1024];               /* folder where it is mounted */
    char source[512];               /* device, or the file system's name for it */
    char options[512];              /* of the superblock */
} mpiox_layout_mount;

typedef struct mpiox_layout_nfs {
    char version[16];    /* "4.1", "3"; "": unknown */
    int64_t read_bytes;  /* rsize, 0: unknown */
    int64_t write_bytes; /* wsize */
    char pnfs[64];       /* "LAYOUT_NFSV4_1_FILES" ...; "": not configured, or a client without pNFS */
    int64_t layouts_got; /* number of operations LAYOUTGET so far, -1: unknown */
    int64_t devices_got; /* GETDEVICEINFO: data servers (or sets of them) in the layouts, -1: unknown */
} mpiox_layout_nfs;

/* The number of the mount in a text of /proc/self/fdinfo/FD, -1: none. */
int64_t mpiox_layout_parse_fdinfo(const void *text, int64_t text_bytes);
/* The mount of that number in a text of /proc/self/mountinfo. MPIOX_E_ARG: the text has no readable line of it; *out is
 * undefined then. */
int mpiox_layout_parse_mountinfo(const void *text, int64_t text_bytes, int64_t mount, mpiox_layout_mount *out);
/* The NFS mount at `point`, the last of that name, in a text of /proc/self/mountstats. MPIOX_E_ARG: no such mount. */
int mpiox_layout_parse_mountstats(const void *text, int64_t text_bytes, const char *point, mpiox_layout_nfs *out);

#endif
