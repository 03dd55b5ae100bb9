/*
 * test_target.c - which server has a page: as a Lustre layout says, and where there is none. This program's own fstatfs
 * and fgetxattr take the place of the C library's.
 */
#include <errno.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#include "check.h"
#include "mpiox_server_target.h"

/* stripe_size 64 KiB, stripe_count 3, objects on targets 9, 4 and 12 */
static const unsigned char lov[104] = {0xD0, 0x0B, 0xD1, 0x0B, 1, [26] = 1, [28] = 3, [52] = 9, [76] = 4, [100] = 12};
static long magic = 0x0BD00BD0;
static int asked;

int fstatfs(int fd, struct statfs *status)
{
    (void)fd;
    memset(status, 0, sizeof *status);
    status->f_type = magic;
    asked++;
    return 0;
}

ssize_t fgetxattr(int fd, const char *name, void *value, size_t size)
{
    (void)fd;
    if (strcmp(name, "lustre.lov") != 0 || size < sizeof lov) {
        errno = ENODATA;
        return -1;
    }
    memcpy(value, lov, sizeof lov);
    return sizeof lov;
}

int main(void)
{
    enum { KIB = 1024 };
    const mpiox_storage storage = {.fd = 3}, other = {.fd = -1};
    mpiox_server_targets targets;

    mpiox_server_targets_find("twins", &storage, &targets); /* hints may have set units of another size */
    CHECK_EQUAL(targets.count, 3);
    CHECK_EQUAL(mpiox_server_target_of(&targets, 0, 4 * KIB, 7), 9);
    CHECK_EQUAL(mpiox_server_target_of(&targets, 64 * KIB - 1, 4 * KIB, 7), 9);
    CHECK_EQUAL(mpiox_server_target_of(&targets, 64 * KIB, 4 * KIB, 7), 4);
    CHECK_EQUAL(mpiox_server_target_of(&targets, 5 * 64 * KIB, 4 * KIB, 7), 12);
    mpiox_server_targets_free(&targets);
    CHECK_EQUAL(targets.count, 0);

    asked = 0; /* nobody else wants to know */
    mpiox_server_targets_find("wfq", &storage, &targets);
    CHECK(asked == 0 && targets.count == 0);
    mpiox_server_targets_find("twins", &other, &targets);
    CHECK(asked == 0 && targets.count == 0);

    magic = 0xEF53;
    mpiox_server_targets_find("twins", &storage, &targets);
    CHECK(asked == 1 && targets.count == 0);
    CHECK_EQUAL(mpiox_server_target_of(&targets, 8 * KIB, 4 * KIB, 7), 2);
    CHECK_EQUAL(mpiox_server_target_of(&targets, 36 * KIB, 4 * KIB, 7), 2);
    CHECK_EQUAL(mpiox_server_target_of(&targets, 8 * KIB, 4 * KIB, 0), -1);
    mpiox_server_targets_free(&targets);
    return check_exit();
}
