/*
 * mpiox_layout_probe_daos.c - DAOS through dfuse: which pool and container.
 *
 * The class and the chunk size of the file's object are known to libdfs only; `daos filesystem get-attr` prints them.
 * What dfuse itself answers is its ioctl DFUSE_IOCTL_IL (dfuse_ioctl.h, version 7), which is for the user who runs
 * dfuse, and the attribute user.daos at the root of a container ("DAOS.POSIX://pool/container").
 */
#include "mpiox_layout_probe.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

enum { VERSION = 7, UUID_BYTES = 16, UUID_TEXT = 37, VALUE_BYTES = 512 };

typedef struct dfuse_reply {
    int version;
    uint64_t object[2];
    unsigned char pool[UUID_BYTES], container[UUID_BYTES];
    uint64_t flags;
} dfuse_reply;

#define GET_OBJECT _IOR(0xA3, 0xC1, dfuse_reply)

static const char *uuid_text(const unsigned char *uuid, char *text)
{
    static const char digits[] = "0123456789abcdef";
    char *at = text;
    for (int i = 0; i < UUID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[uuid[i] >> 4];
        *at++ = digits[uuid[i] & 15];
    }
    *at = '\0';
    return text;
}

void mpiox_layout_probe_daos(int fd, const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    dfuse_reply reply = {.version = 0};
    char pool[UUID_TEXT], container[UUID_TEXT], value[VALUE_BYTES];
    (void)mount;
    ssize_t bytes = fgetxattr(fd, "user.daos", value, sizeof value - 1);
    if (bytes > 0) {
        value[bytes] = '\0';
        mpiox_facts_set(facts, MPIOX_FACT_POOL, "xattr user.daos", "%s", value);
    }
    if (ioctl(fd, GET_OBJECT, &reply) == 0 && reply.version == VERSION)
        mpiox_facts_set(facts, MPIOX_FACT_POOL, "ioctl DFUSE_IOCTL_IL", "%s/%s", uuid_text(reply.pool, pool),
                        uuid_text(reply.container, container));
}
