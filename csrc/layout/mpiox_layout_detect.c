/*
 * mpiox_layout_detect.c - which file system a descriptor lives on, and how that file system stripes and locks the file.
 *
 * The family comes from statfs(2): one table row for each magic number, with the lock protocol and whether one page
 * cache serves everybody who can see the file. The stripe size comes from the strongest source that knows it: the hint,
 * the Lustre layout of the file, the block size of GPFS (its lock granularity), and otherwise a default that is only
 * good for alignment. A descriptor that cannot be inspected is treated as an unknown remote file system: no coherence.
 */
#include "mpiox_layout.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#define LOV_XATTR "lustre.lov"
#define GLUSTER_XATTR "glusterfs.gfid.string" /* GlusterFS' client answers it for every file */
#define LOV_XATTR_MAX_BYTES 65536             /* limit of the kernel's xattr interface */

typedef struct fs_row {
    uint32_t magic; /* statfs(2) f_type, low 32 bits */
    mpiox_fs fs;
    mpiox_lock_protocol lock;
    bool coherent;
} fs_row;

/* Values: linux/magic.h, statfs(2), and the headers of the file systems outside the kernel tree. */
static const fs_row fs_table[] = {
    {0x01021994u, MPIOX_FS_TMPFS, MPIOX_LOCK_LOCAL, true},    {0x858458F6u, MPIOX_FS_TMPFS, MPIOX_LOCK_LOCAL, true},
    {0x0000EF53u, MPIOX_FS_EXT, MPIOX_LOCK_LOCAL, true},      {0x58465342u, MPIOX_FS_XFS, MPIOX_LOCK_LOCAL, true},
    {0x9123683Eu, MPIOX_FS_BTRFS, MPIOX_LOCK_LOCAL, true},    {0x794C7630u, MPIOX_FS_OVERLAY, MPIOX_LOCK_LOCAL, true},
    {0x2FC12FC1u, MPIOX_FS_ZFS, MPIOX_LOCK_LOCAL, true},      {0xF2F52010u, MPIOX_FS_F2FS, MPIOX_LOCK_LOCAL, true},
    {0x0BD00BD0u, MPIOX_FS_LUSTRE, MPIOX_LOCK_SERVER, false}, {0x47504653u, MPIOX_FS_GPFS, MPIOX_LOCK_TOKEN, false},
    {0x00006969u, MPIOX_FS_NFS, MPIOX_LOCK_NONE, false},      {0x65735546u, MPIOX_FS_FUSE, MPIOX_LOCK_NONE, false},
    {0xAAD7AAEAu, MPIOX_FS_PANFS, MPIOX_LOCK_NONE, false},    {0x20030528u, MPIOX_FS_PVFS, MPIOX_LOCK_NONE, false},
    {0x00C36400u, MPIOX_FS_CEPH, MPIOX_LOCK_NONE, false},     {0x19830326u, MPIOX_FS_BEEGFS, MPIOX_LOCK_NONE, false},
    {0xFF534D42u, MPIOX_FS_SMB, MPIOX_LOCK_NONE, false},      {0xFE534D42u, MPIOX_FS_SMB, MPIOX_LOCK_NONE, false},
};

static const char *const lock_names[] = {
    [MPIOX_LOCK_LOCAL] = "local",
    [MPIOX_LOCK_SERVER] = "server",
    [MPIOX_LOCK_TOKEN] = "token",
    [MPIOX_LOCK_NONE] = "none",
};

#define LOCK_NAMES ((int)(sizeof lock_names / sizeof lock_names[0]))

int mpiox_layout_lock_find(const char *name, mpiox_lock_protocol *out)
{
    for (int i = 0; name != NULL && i < LOCK_NAMES; i++) {
        if (strcmp(lock_names[i], name) == 0) {
            *out = (mpiox_lock_protocol)i;
            return MPIOX_OK;
        }
    }
    return MPIOX_E_ARG;
}

void mpiox_layout_from_magic(uint64_t f_type, mpiox_layout *out)
{
    *out = (mpiox_layout){
        .fs = MPIOX_FS_UNKNOWN, .lock = MPIOX_LOCK_NONE, .servers = 1, .stripe_size = MPIOX_LAYOUT_DEFAULT_STRIPE_SIZE};
    for (size_t i = 0; i < sizeof fs_table / sizeof fs_table[0]; i++) {
        /* f_type is signed on some kernels: magics above 2^31 arrive sign-extended. */
        if (fs_table[i].magic != (uint32_t)f_type)
            continue;
        out->fs = fs_table[i].fs;
        out->lock = fs_table[i].lock;
        out->coherent = fs_table[i].coherent;
        return;
    }
}

/* The stripes as the file system itself reports them. */
static void detect_stripes(int fd, mpiox_layout *out)
{
    if (out->fs == MPIOX_FS_LUSTRE) {
        char value[LOV_XATTR_MAX_BYTES];
        ssize_t bytes = fgetxattr(fd, LOV_XATTR, value, sizeof value);
        if (bytes > 0 && mpiox_layout_parse_lov(value, bytes, &out->stripe_size, &out->servers) == MPIOX_OK) {
            out->stripe_known = true;
            return;
        }
    }
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_blksize <= 0)
        return;
    if (out->fs == MPIOX_FS_GPFS) {
        out->stripe_size = status.st_blksize;
        out->stripe_known = true;
    } else if (status.st_blksize > out->stripe_size) {
        out->stripe_size = status.st_blksize;
    }
}

static bool detect_family(int fd, mpiox_layout *out)
{
    struct statfs status;
    int rc;
    do
        rc = fstatfs(fd, &status);
    while (rc != 0 && errno == EINTR);
    mpiox_layout_from_magic(rc == 0 ? (uint64_t)status.f_type : 0, out);
    out->refreshable = out->fs == MPIOX_FS_FUSE && fgetxattr(fd, GLUSTER_XATTR, NULL, 0) > 0;
    return rc == 0;
}

void mpiox_layout_detect_family(int fd, mpiox_layout *out)
{
    const int saved_errno = errno;
    detect_family(fd, out);
    errno = saved_errno;
}

void mpiox_layout_detect(int fd, int64_t striping_unit, int32_t striping_factor, mpiox_layout *out)
{
    const int saved_errno = errno;
    if (detect_family(fd, out))
        detect_stripes(fd, out);
    if (striping_unit > 0 && striping_unit <= MPIOX_LAYOUT_MAX_STRIPE_SIZE) {
        out->stripe_size = striping_unit;
        out->stripe_known = true;
    }
    if (striping_factor > 0)
        out->servers = striping_factor;
    errno = saved_errno;
}

int32_t mpiox_layout_targets(int fd, int64_t *stripe_size, int32_t most, int32_t *targets)
{
    const int saved_errno = errno;
    mpiox_layout layout;
    char value[LOV_XATTR_MAX_BYTES];
    int32_t count = 0, servers;
    if (detect_family(fd, &layout) && layout.fs == MPIOX_FS_LUSTRE) {
        ssize_t bytes = fgetxattr(fd, LOV_XATTR, value, sizeof value);
        if (bytes > 0 && mpiox_layout_parse_lov(value, bytes, stripe_size, &servers) == MPIOX_OK)
            count = mpiox_layout_lov_targets(value, bytes, most, targets);
    }
    errno = saved_errno;
    return count;
}
