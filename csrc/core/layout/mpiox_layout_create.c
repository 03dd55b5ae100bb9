/*
 * mpiox_layout_create.c - creating a file with the striping that a program requests.
 *
 * Problem.    A file's striping is settled when it is made (Lustre, BeeGFS) or while it is empty (CephFS). MPI
 *             libraries that know a file system do so themselves; those that open by POSIX calls take the striping
 *             of the folder.
 * Algorithm.  O_CREAT | O_EXCL selects the process that creates the file, so an existing one is never touched.
 *             Lustre:  open with O_LOV_DELAY_CREATE, which leaves the objects out, then the ioctl LL_IOC_LOV_SETSTRIPE
 *                      (liblustreapi's llapi_file_open, ROMIO's ad_lustre).
 *             CephFS:  an empty file's attribute ceph.file.layout; it needs the client's right `p`.
 *             BeeGFS:  the ioctl BEEGFS_IOC_MKFILE_STRIPEHINTS of the folder; chunks are powers of two from 64 KiB on.
 *             All servers (striping_factor -1): only Lustre has a value for it; other file systems use the folder's
 *             striping.
 * Guarantee.  If the file system refuses the striping, the file is created with its folder's.
 */
#include "mpiox_layout_create.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "mpiox_layout.h"
#include "mpiox_layout_beegfs.h"
#include "mpiox_layout_ceph.h"
#include "mpiox_layout_lustre.h"

/* The one bit of Lustre before 2.4 and the two of later ones; harmless for each other, and for other file systems. */
#define O_LOV_DELAY_CREATE (0100000000 | O_NOCTTY | O_ASYNC)
#define LL_IOC_LOV_SETSTRIPE _IOW('f', 154, long)
#define CEPH_LAYOUT "ceph.file.layout"
#define CEPH_FOLDER "ceph.dir.entries" /* every folder of CephFS has it */
#define BEEGFS_LEAST_CHUNK 65536
#define BEEGFS_MOST_CHUNK (INT64_C(1) << 31)

enum { PERMISSIONS = 0666, TEMPLATE_BYTES = 32, TEXT_BYTES = 256, CREATE = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC };

static mpiox_layout_made create_lustre(int folder, const char *name, const mpiox_layout_wish *wish)
{
    unsigned char value[TEMPLATE_BYTES];
    mpiox_layout_made made = MPIOX_MADE_FILE;
    int fd = openat(folder, name, CREATE | O_LOV_DELAY_CREATE, PERMISSIONS);
    if (fd < 0)
        return MPIOX_MADE_NOTHING;
    mpiox_lustre_template(wish->striping_unit, wish->striping_factor, wish->start_device, value);
    if (ioctl(fd, LL_IOC_LOV_SETSTRIPE, value) == 0)
        made = MPIOX_MADE_STRIPED;
    close(fd);
    return made;
}

/* The new file's layout, overridden by the request: the object size has to be a multiple of the stripe unit. */
static bool set_ceph(int fd, const mpiox_layout_wish *wish)
{
    char text[TEXT_BYTES];
    mpiox_layout_ceph layout;
    ssize_t bytes = fgetxattr(fd, CEPH_LAYOUT, text, sizeof text);
    if (bytes <= 0 || mpiox_layout_parse_ceph(text, bytes, &layout) != MPIOX_OK)
        return false;
    if (wish->striping_unit > 0)
        layout.stripe_unit = wish->striping_unit;
    if (wish->striping_factor > 0)
        layout.stripe_count = wish->striping_factor;
    if (layout.object_size % layout.stripe_unit != 0 || layout.object_size < layout.stripe_unit)
        layout.object_size = (layout.object_size / layout.stripe_unit + 1) * layout.stripe_unit;
    snprintf(text, sizeof text, "stripe_unit=%" PRId64 " stripe_count=%" PRId64 " object_size=%" PRId64,
             layout.stripe_unit, layout.stripe_count, layout.object_size);
    return fsetxattr(fd, CEPH_LAYOUT, text, strlen(text), 0) == 0;
}

static mpiox_layout_made create_ceph(int folder, const char *name, const mpiox_layout_wish *wish)
{
    int fd = openat(folder, name, CREATE, PERMISSIONS);
    if (fd < 0)
        return MPIOX_MADE_NOTHING;
    mpiox_layout_made made = set_ceph(fd, wish) ? MPIOX_MADE_STRIPED : MPIOX_MADE_FILE;
    close(fd);
    return made;
}

static mpiox_layout_made create_beegfs(int folder, const char *name, const mpiox_layout_wish *wish)
{
    int64_t chunk = wish->striping_unit > 0 ? BEEGFS_LEAST_CHUNK : 0;
    while (chunk > 0 && chunk < wish->striping_unit && chunk < BEEGFS_MOST_CHUNK)
        chunk *= 2;
    const mode_t mask = umask(0);
    umask(mask);
    mpiox_beegfs_file file = {.name = name,
                              .mode = PERMISSIONS & ~mask,
                              .targets = wish->striping_factor > 0 ? (unsigned)wish->striping_factor : 0,
                              .chunk_bytes = (unsigned)chunk};
    return ioctl(folder, MPIOX_BEEGFS_MAKE_FILE, &file) == 0 ? MPIOX_MADE_STRIPED : MPIOX_MADE_NOTHING;
}

static mpiox_layout_made create_in(int folder, const char *name, const mpiox_layout_wish *wish)
{
    mpiox_layout layout;
    mpiox_layout_detect_family(folder, &layout);
    switch (layout.fs) {
    case MPIOX_FS_LUSTRE:
        return create_lustre(folder, name, wish);
    case MPIOX_FS_CEPH:
        return create_ceph(folder, name, wish);
    case MPIOX_FS_BEEGFS:
        return create_beegfs(folder, name, wish);
    case MPIOX_FS_FUSE:
        return fgetxattr(folder, CEPH_FOLDER, NULL, 0) > 0 ? create_ceph(folder, name, wish) : MPIOX_MADE_NOTHING;
    default:
        return MPIOX_MADE_NOTHING;
    }
}

mpiox_layout_made mpiox_layout_create(const char *path, const mpiox_layout_wish *wish)
{
    const int saved_errno = errno;
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    char folder[PATH_MAX];
    struct stat status;
    mpiox_layout_made made = MPIOX_MADE_NOTHING;
    if (wish->striping_unit <= 0 && wish->striping_factor == 0 && wish->start_device < 0)
        return made;
    if (*name == '\0' || (slash != NULL && slash - path >= (long)sizeof folder))
        return made;
    snprintf(folder, sizeof folder, "%.*s", slash == NULL || slash == path ? 1 : (int)(slash - path),
             slash != NULL ? path : ".");
    if (lstat(path, &status) != 0 && errno == ENOENT) {
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            made = create_in(fd, name, wish);
            close(fd);
        }
    }
    errno = saved_errno;
    return made;
}
