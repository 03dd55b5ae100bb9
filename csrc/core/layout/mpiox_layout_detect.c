/*
 * mpiox_layout_detect.c - the file system of a descriptor, and how it stripes and locks the file.
 *
 * The family comes from statfs(2): one table row for each magic number, with the lock protocol and whether one page
 * cache serves all processes that can see the file. The stripe size comes from the strongest source that has it: the
 * hint, the layout of the file (Lustre, CephFS, BeeGFS), the block size of GPFS (its lock granularity), and otherwise a
 * default that is only good for alignment. A descriptor that cannot be inspected is treated as an unknown remote file
 * system: no coherence. For local file systems the library calls only statfs(2) and fstat(2).
 *
 * A file of Lustre may have more stripes than there are targets (overstriping): then several of its objects are on one
 * server. If the stripes are on n servers in a fixed order that repeats, `servers` is n, and stripes i and i + n are on
 * one server. If the order does not repeat, each object counts as a server of its own: locks belong to objects.
 *
 * CephFS puts stripe_count objects side by side, each on servers that a hash chooses: the servers of that many requests
 * work in parallel, but it is unknown which they are. ceph-fuse is recognized by its attribute.
 */
#include "mpiox_layout.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "mpiox_layout_beegfs.h"
#include "mpiox_layout_ceph.h"
#include "mpiox_layout_find_mount.h"
#include "mpiox_layout_lustre.h"

#define LOV_XATTR "lustre.lov"
#define CEPH_XATTR "ceph.file.layout"
#define SHARDS "/.shard"
#define GLUSTER_XATTR "glusterfs.gfid.string" /* GlusterFS' client answers it for every file */
#define LOV_XATTR_MAX_BYTES 65536             /* limit of the kernel's xattr interface */
#define CEPH_XATTR_MAX_BYTES 1024

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

static const char *const fs_names[] = {
    [MPIOX_FS_UNKNOWN] = "unknown", [MPIOX_FS_TMPFS] = "tmpfs", [MPIOX_FS_EXT] = "ext",
    [MPIOX_FS_XFS] = "xfs",         [MPIOX_FS_BTRFS] = "btrfs", [MPIOX_FS_LUSTRE] = "lustre",
    [MPIOX_FS_GPFS] = "gpfs",       [MPIOX_FS_NFS] = "nfs",     [MPIOX_FS_FUSE] = "fuse",
    [MPIOX_FS_PANFS] = "panfs",     [MPIOX_FS_PVFS] = "pvfs",   [MPIOX_FS_OVERLAY] = "overlay",
    [MPIOX_FS_ZFS] = "zfs",         [MPIOX_FS_F2FS] = "f2fs",   [MPIOX_FS_CEPH] = "ceph",
    [MPIOX_FS_BEEGFS] = "beegfs",   [MPIOX_FS_SMB] = "smb",
};

const char *mpiox_layout_fs_name(mpiox_fs fs)
{
    return (size_t)fs < sizeof fs_names / sizeof fs_names[0] ? fs_names[fs] : "unknown";
}

const char *mpiox_layout_lock_name(mpiox_lock_protocol lock)
{
    return (int)lock >= 0 && (int)lock < LOCK_NAMES ? lock_names[lock] : "none";
}

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
    *out = (mpiox_layout){.fs = MPIOX_FS_UNKNOWN,
                          .lock = MPIOX_LOCK_NONE,
                          .servers = 1,
                          .stripe_size = MPIOX_LAYOUT_DEFAULT_STRIPE_SIZE,
                          .start = -1};
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

/* Different servers, if the stripes go round them in turns; otherwise as many as there are objects. */
static int32_t lov_servers(const mpiox_lustre_component *c)
{
    int32_t distinct = mpiox_lustre_distinct(c);
    if (distinct == 0 || distinct == c->stripe_count)
        return c->stripe_count;
    for (int32_t i = distinct; i < c->object_count; i++) {
        if (mpiox_lustre_target(c, i) != mpiox_lustre_target(c, i - distinct))
            return c->stripe_count;
    }
    return distinct;
}

/* The file's size, where the choice among components asks for it: Lustre may have to ask every server for it. */
static int64_t bytes_of_file(int fd, const void *value, int64_t value_bytes)
{
    struct stat status;
    return mpiox_lustre_count(value, value_bytes) > 1 && fstat(fd, &status) == 0 ? status.st_size : 0;
}

static bool detect_lustre(int fd, mpiox_layout *out)
{
    char value[LOV_XATTR_MAX_BYTES];
    mpiox_lustre_component c;
    ssize_t bytes = fgetxattr(fd, LOV_XATTR, value, sizeof value);
    if (bytes <= 0 || mpiox_lustre_choose(value, bytes, bytes_of_file(fd, value, bytes), &c) != MPIOX_OK)
        return false;
    out->stripe_size = c.stripe_size;
    out->stripe_count = c.stripe_count;
    out->servers = lov_servers(&c);
    out->start = c.first;
    return true;
}

static bool detect_ceph(int fd, mpiox_layout *out)
{
    char value[CEPH_XATTR_MAX_BYTES];
    mpiox_layout_ceph ceph;
    ssize_t bytes = fgetxattr(fd, CEPH_XATTR, value, sizeof value);
    if (bytes <= 0 || mpiox_layout_parse_ceph(value, bytes, &ceph) != MPIOX_OK)
        return false;
    out->stripe_size = ceph.stripe_unit;
    out->stripe_count = out->servers = (int32_t)ceph.stripe_count;
    out->hashed = true;
    return true;
}

static bool detect_beegfs(int fd, mpiox_layout *out)
{
    mpiox_beegfs_stripes stripes = {.pattern = 0};
    if (ioctl(fd, MPIOX_BEEGFS_GET_STRIPES, &stripes) != 0 || stripes.chunk_bytes == 0 || stripes.targets == 0)
        return false;
    out->stripe_size = stripes.chunk_bytes;
    out->stripe_count = out->servers = stripes.targets;
    return true;
}

/* The stripes as the file system itself reports them. */
static void detect_stripes(int fd, mpiox_layout *out)
{
    out->stripe_known = (out->fs == MPIOX_FS_LUSTRE && detect_lustre(fd, out)) ||
                        ((out->fs == MPIOX_FS_CEPH || out->fs == MPIOX_FS_FUSE) && detect_ceph(fd, out)) ||
                        (out->fs == MPIOX_FS_BEEGFS && detect_beegfs(fd, out));
    if (out->stripe_known)
        return;
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

/* Is it a GlusterFS volume whose files are cut in shards? Its client caches the files' sizes and parts, even if its
 * other caches are dropped (features/shard), and refuses the name .shard at the mount point to other callers. */
static bool is_sharded(int fd)
{
    char path[PATH_MAX], link[40];
    struct stat here, above;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, path, sizeof path - sizeof SHARDS);
    if (bytes <= 0 || path[0] != '/' || fstat(fd, &here) != 0)
        return false;
    path[bytes] = '\0';
    for (char *slash = strrchr(path, '/'); slash != NULL; slash = strrchr(path, '/')) {
        strcpy(slash, SHARDS);
        if (stat(path, &above) != 0 && errno == EPERM)
            return true;
        *slash = '\0';
        if (slash == path || stat(path, &above) != 0 || above.st_dev != here.st_dev)
            return false;
    }
    return false;
}

/* FUSE clients for which mpiox_storage_refresh() was tried (docs/explanation/coherence.md). */
static bool is_refreshable(int fd)
{
    if (fgetxattr(fd, GLUSTER_XATTR, NULL, 0) > 0)
        return !is_sharded(fd);
    if (fgetxattr(fd, CEPH_XATTR, NULL, 0) > 0) /* ceph-fuse: the kernel's pages outlive its capabilities */
        return true;
    mpiox_layout_mount mount;
    mpiox_layout_find_mount(fd, &mount); /* MooseFS has no attribute of its own */
    return mpiox_layout_is_moose(&mount);
}

static bool detect_family(int fd, mpiox_layout *out)
{
    struct statfs status;
    int rc;
    do
        rc = fstatfs(fd, &status);
    while (rc != 0 && errno == EINTR);
    mpiox_layout_from_magic(rc == 0 ? (uint64_t)status.f_type : 0, out);
    out->refreshable = out->fs == MPIOX_FS_FUSE && is_refreshable(fd);
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
        out->servers = out->stripe_count = striping_factor;
    errno = saved_errno;
}

int32_t mpiox_layout_targets(int fd, int64_t *stripe_size, int32_t most, int32_t *targets)
{
    const int saved_errno = errno;
    mpiox_layout layout;
    char value[LOV_XATTR_MAX_BYTES];
    int32_t count = 0;
    mpiox_lustre_component c;
    if (detect_family(fd, &layout) && layout.fs == MPIOX_FS_LUSTRE) {
        ssize_t bytes = fgetxattr(fd, LOV_XATTR, value, sizeof value);
        if (bytes > 0 && mpiox_lustre_choose(value, bytes, bytes_of_file(fd, value, bytes), &c) == MPIOX_OK) {
            *stripe_size = c.stripe_size;
            count = mpiox_lustre_targets(&c, most, targets);
        }
    }
    errno = saved_errno;
    return count;
}
