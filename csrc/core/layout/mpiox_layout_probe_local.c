/*
 * mpiox_layout_probe_local.c - file systems of one kernel or without a layout of their own: XFS, ext4, NFS, MooseFS.
 *
 * XFS and ext4 know the stripe of the array under them: XFS by ioctl_xfs_fsgeometry(2), ext4 by its mount option. NFS
 * has no stripes that a process can see; how large its requests are and which kind of pNFS layout the server offers is
 * in /proc/self/mountstats. MooseFS and its relatives cut files into chunks of 64 MiB, each on servers of its own.
 */
#include "mpiox_layout_probe.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "mpiox_layout_span.h"

#define MOOSE_CHUNK (INT64_C(64) << 20)
#define MOUNTSTATS_BYTES (1 << 20)

typedef struct xfs_geometry { /* struct xfs_fsop_geom_v1 */
    uint32_t block_bytes, rt_extent, group_blocks, groups, log_blocks, sector_bytes, inode_bytes, inode_percent;
    uint64_t data_blocks, rt_blocks, rt_extents, log_start;
    unsigned char uuid[16];
    uint32_t stripe_blocks, width_blocks; /* sunit, swidth */
    int32_t version;
    uint32_t flags, log_sector_bytes, rt_sector_bytes, folder_block_bytes;
} xfs_geometry;

#define XFS_GET_GEOMETRY _IOR('X', 100, xfs_geometry)

void mpiox_layout_probe_xfs(int fd, const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    xfs_geometry geometry = {.block_bytes = 0};
    (void)mount;
    if (ioctl(fd, XFS_GET_GEOMETRY, &geometry) != 0 || geometry.stripe_blocks == 0)
        return;
    const int64_t stripe = (int64_t)geometry.stripe_blocks * geometry.block_bytes;
    mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, "ioctl XFS_IOC_FSGEOMETRY (sunit)", stripe);
    if (geometry.width_blocks >= geometry.stripe_blocks)
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_COUNT, "ioctl XFS_IOC_FSGEOMETRY (swidth / sunit)",
                               geometry.width_blocks / geometry.stripe_blocks);
}

/* The number of an option "name=NUMBER" of the mount; 0: none. */
static int64_t option_number(const mpiox_layout_mount *mount, const char *prefix)
{
    mpiox_span rest = {mount->options, (int64_t)strlen(mount->options)};
    int64_t number = 0;
    while (rest.bytes > 0) {
        mpiox_span option = mpiox_span_cut(&rest, ',');
        if (mpiox_span_skip(&option, prefix) && mpiox_span_number(option, &number))
            return number;
    }
    return 0;
}

void mpiox_layout_probe_ext(int fd, const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    struct statfs status;
    int64_t blocks = option_number(mount, "stripe=");
    if (blocks > 1 && blocks < 1 << 20 && fstatfs(fd, &status) == 0 && status.f_bsize > 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, "mountinfo option stripe", blocks * status.f_bsize);
}

void mpiox_layout_probe_moose(int fd, const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    (void)fd;
    (void)mount;
    mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, "protocol: chunks of 64 MiB", MOOSE_CHUNK);
    mpiox_facts_set_number(facts, MPIOX_FACT_OBJECT_SIZE, "protocol: chunks of 64 MiB", MOOSE_CHUNK);
}

static void add_nfs(const mpiox_layout_nfs *nfs, mpiox_layout_facts *facts)
{
    static const char source[] = "/proc/self/mountstats";
    if (nfs->read_bytes > 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_READ_SIZE, source, nfs->read_bytes);
    if (nfs->write_bytes > 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_WRITE_SIZE, source, nfs->write_bytes);
    if (nfs->pnfs[0] != '\0' && nfs->layouts_got >= 0 && nfs->devices_got >= 0)
        mpiox_facts_set(facts, MPIOX_FACT_PNFS, source, "%s (%lld layouts, %lld devices fetched)", nfs->pnfs,
                        (long long)nfs->layouts_got, (long long)nfs->devices_got);
    else if (nfs->pnfs[0] != '\0' && nfs->layouts_got >= 0)
        mpiox_facts_set(facts, MPIOX_FACT_PNFS, source, "%s (%lld layouts fetched)", nfs->pnfs,
                        (long long)nfs->layouts_got);
    else if (nfs->pnfs[0] != '\0')
        mpiox_facts_set(facts, MPIOX_FACT_PNFS, source, "%s", nfs->pnfs);
}

void mpiox_layout_probe_nfs(int fd, const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    char *text = malloc(MOUNTSTATS_BYTES);
    int stats = text != NULL ? open("/proc/self/mountstats", O_RDONLY | O_CLOEXEC) : -1;
    int64_t used = 0, size;
    mpiox_layout_nfs nfs;
    (void)fd;
    if ((size = option_number(mount, "rsize=")) > 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_READ_SIZE, "mountinfo option rsize", size);
    if ((size = option_number(mount, "wsize=")) > 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_WRITE_SIZE, "mountinfo option wsize", size);
    while (stats >= 0 && used < MOUNTSTATS_BYTES) {
        ssize_t bytes = read(stats, text + used, (size_t)(MOUNTSTATS_BYTES - used));
        if (bytes <= 0)
            break;
        used += bytes;
    }
    if (stats >= 0)
        close(stats);
    if (used > 0 && mpiox_layout_parse_mountstats(text, used, mount->point, &nfs) == MPIOX_OK)
        add_nfs(&nfs, facts);
    free(text);
}
