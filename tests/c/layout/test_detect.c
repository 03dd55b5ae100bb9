/*
 * test_detect.c - mpiox_layout_detect() on file systems that are not at hand: this program's own fstatfs, fgetxattr and
 * fstat take the place of the C library's.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#include "check.h"
#include "mpiox_layout.h"

static struct {
    long magic;
    int statfs_errno, interruptions;
    const void *lov;
    size_t lov_bytes;
    long block;
} pretend;

int fstatfs(int fd, struct statfs *status)
{
    (void)fd;
    memset(status, 0, sizeof *status);
    status->f_type = pretend.magic;
    errno = pretend.interruptions > 0 ? EINTR : pretend.statfs_errno;
    return pretend.interruptions-- > 0 || pretend.statfs_errno != 0 ? -1 : 0;
}

ssize_t fgetxattr(int fd, const char *name, void *value, size_t size)
{
    (void)fd;
    CHECK(strcmp(name, "lustre.lov") == 0);
    if (pretend.lov == NULL || size < pretend.lov_bytes) {
        errno = pretend.lov == NULL ? ENODATA : ERANGE;
        return -1;
    }
    memcpy(value, pretend.lov, pretend.lov_bytes);
    return (ssize_t)pretend.lov_bytes;
}

int fstat(int fd, struct stat *status)
{
    (void)fd;
    memset(status, 0, sizeof *status);
    status->st_blksize = pretend.block;
    return 0;
}

static mpiox_layout detect(int64_t unit, int32_t factor)
{
    mpiox_layout layout;
    errno = 4711;
    mpiox_layout_detect(3, unit, factor, &layout);
    CHECK_EQUAL(errno, 4711);
    return layout;
}

int main(void)
{
    /* stripe_size 2 MiB, stripe_count 3, no objects */
    static const unsigned char lov[32] = {0xD0, 0x0B, 0xD1, 0x0B, 1, [26] = 0x20, [28] = 3};

    pretend.magic = 0x0BD00BD0;
    pretend.block = 4 << 20;
    pretend.lov = lov;
    pretend.lov_bytes = sizeof lov;
    pretend.interruptions = 2;
    mpiox_layout layout = detect(0, 0);
    CHECK(layout.fs == MPIOX_FS_LUSTRE && layout.lock == MPIOX_LOCK_SERVER && layout.stripe_known && !layout.coherent);
    CHECK_EQUAL(layout.stripe_size, 2 << 20);
    CHECK_EQUAL(layout.servers, 3);

    layout = detect(65536, 5); /* hints are stronger */
    CHECK_EQUAL(layout.stripe_size, 65536);
    CHECK_EQUAL(layout.servers, 5);

    pretend.lov_bytes = 31; /* damaged: the default, which a larger block size raises */
    layout = detect(0, 0);
    CHECK(!layout.stripe_known);
    CHECK_EQUAL(layout.stripe_size, 4 << 20);
    CHECK_EQUAL(layout.servers, 1);

    pretend.lov = NULL;
    pretend.block = 4096;
    layout = detect(0, 0);
    CHECK_EQUAL(layout.stripe_size, 1 << 20);

    pretend.magic = 0x47504653; /* GPFS locks its blocks */
    pretend.block = 262144;
    layout = detect(0, 0);
    CHECK(layout.lock == MPIOX_LOCK_TOKEN && layout.stripe_known);
    CHECK_EQUAL(layout.stripe_size, 262144);

    /* stripe_size 2 MiB, stripe_count 2, objects on targets 9 and 4 */
    static const unsigned char placed[80] = {0xD0, 0x0B, 0xD1, 0x0B, 1, [26] = 0x20, [28] = 2, [52] = 9, [76] = 4};
    int32_t targets[3] = {-1, -1, -1};
    int64_t stripe_size = 0;
    pretend.lov = placed;
    pretend.lov_bytes = sizeof placed;
    CHECK_EQUAL(mpiox_layout_targets(3, &stripe_size, 3, targets), 0); /* GPFS does not say */
    pretend.magic = 0x0BD00BD0;
    CHECK_EQUAL(mpiox_layout_targets(3, &stripe_size, 3, targets), 2);
    CHECK_EQUAL(stripe_size, 2 << 20);
    CHECK(targets[0] == 9 && targets[1] == 4 && targets[2] == -1);
    CHECK_EQUAL(mpiox_layout_targets(3, &stripe_size, 1, targets), 0);

    pretend.statfs_errno = EIO;
    layout = detect(0, 0);
    CHECK(layout.fs == MPIOX_FS_UNKNOWN && layout.lock == MPIOX_LOCK_NONE && !layout.coherent && !layout.stripe_known);
    return check_exit();
}
