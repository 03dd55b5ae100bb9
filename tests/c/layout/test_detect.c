/*
 * test_detect.c - mpiox_layout_detect() on file systems that are not at hand: this program's own fstatfs, fgetxattr and
 * fstat take the place of the C library's.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#include "check.h"
#include "mpiox_layout.h"
#include "mpiox_layout_beegfs.h"

static struct {
    long magic;
    int statfs_errno, interruptions;
    const void *lov;
    size_t lov_bytes;
    long block;
    const char *xattr; /* the one attribute that may be asked for */
    unsigned chunk;    /* of BeeGFS */
    unsigned short targets;
    int calls; /* beyond fstatfs and fstat */
} pretend = {.xattr = "lustre.lov"};

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
    pretend.calls++;
    CHECK(strcmp(name, pretend.xattr) == 0);
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

int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    (void)fd;
    pretend.calls++;
    CHECK_EQUAL(request & 0xFFFF, 'f' << 8 | 25);
    va_start(arguments, request);
    mpiox_beegfs_stripes *stripes = va_arg(arguments, mpiox_beegfs_stripes *);
    va_end(arguments);
    *stripes = (mpiox_beegfs_stripes){MPIOX_BEEGFS_RAID0, pretend.chunk, pretend.targets};
    return pretend.chunk == 0 ? -1 : 0;
}

static mpiox_layout detect(int64_t unit, int32_t factor)
{
    mpiox_layout layout;
    errno = 4711;
    mpiox_layout_detect(3, unit, factor, &layout);
    CHECK_EQUAL(errno, 4711);
    return layout;
}

/* Stripe size 1 MiB; objects on these targets. */
static mpiox_layout on_targets(const unsigned char *targets, int count)
{
    unsigned char lov[32 + 24 * 8] = {0xD0, 0x0B, 0xD1, 0x0B, 1, 2, [26] = 0x10};
    lov[28] = (unsigned char)count;
    for (int i = 0; i < count; i++)
        lov[32 + 24 * i + 20] = targets[i];
    pretend.lov = lov;
    pretend.lov_bytes = 32 + 24 * (size_t)count;
    return detect(0, 0);
}

/* In turns the different servers count; otherwise every object is one. */
static void test_overstriped(void)
{
    pretend.magic = 0x0BD00BD0;
    mpiox_layout layout = on_targets((const unsigned char[]){7, 2, 5, 7, 2, 5}, 6);
    CHECK(layout.stripe_known && layout.servers == 3 && layout.stripe_count == 6 && layout.start == 7);
    layout = on_targets((const unsigned char[]){7, 7, 2, 2, 5, 5}, 6);
    CHECK(layout.servers == 6 && layout.stripe_count == 6);
    layout = on_targets((const unsigned char[]){4, 1, 3}, 3);
    CHECK(layout.servers == 3 && layout.stripe_count == 3 && layout.start == 4);
}

static void test_ceph_and_beegfs(void)
{
    static const char text[] = "stripe_unit=1048576 stripe_count=6 object_size=4194304 pool=data";
    pretend.magic = 0x00C36400;
    pretend.xattr = "ceph.file.layout";
    pretend.lov = text;
    pretend.lov_bytes = sizeof text - 1;
    mpiox_layout layout = detect(0, 0);
    CHECK(layout.fs == MPIOX_FS_CEPH && layout.stripe_known && layout.stripe_size == 1 << 20 && layout.servers == 6);
    CHECK(layout.hashed && layout.stripe_count == 6);
    pretend.lov_bytes = 20;
    layout = detect(0, 0);
    CHECK(!layout.stripe_known && layout.servers == 1 && layout.stripe_count == 0 && layout.start == -1);
    CHECK(!layout.hashed);
    pretend.magic = 0x19830326;
    pretend.chunk = 524288;
    pretend.targets = 4;
    layout = detect(0, 0);
    CHECK(layout.fs == MPIOX_FS_BEEGFS && layout.stripe_known && layout.stripe_size == 524288 && layout.servers == 4 &&
          !layout.hashed);
    pretend.chunk = 0;
    layout = detect(0, 0);
    CHECK(!layout.stripe_known && layout.servers == 1);
}

/* Opening a file on a local file system costs nothing more. */
static void test_local(void)
{
    static const long magics[] = {0x01021994, 0xEF53, 0x58465342, 0x9123683E, 0x794C7630, 0x6969};
    pretend.calls = 0;
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        pretend.magic = magics[i];
        CHECK(!detect(0, 0).stripe_known);
    }
    CHECK_EQUAL(pretend.calls, 0);
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

    test_overstriped();
    test_ceph_and_beegfs();
    test_local();
    pretend.statfs_errno = EIO;
    layout = detect(0, 0);
    CHECK(layout.fs == MPIOX_FS_UNKNOWN && layout.lock == MPIOX_LOCK_NONE && !layout.coherent && !layout.stripe_known);
    return check_exit();
}
