/* mpiox_witness.c - see mpiox_witness.h. */
#include "mpiox_witness.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *name_of_witness(void)
{
    const char *name = getenv("MPIOX_STATS_WITNESS");

    return name != NULL && name[0] != '\0' ? name : NULL;
}

bool mpiox_witness_is_there(void)
{
    return name_of_witness() != NULL;
}

void mpiox_witness_report(mpiox_witnessed what)
{
    static const char *const ends[MPIOX_WITNESSED] = {"init", "file"};
    static atomic_bool reported[MPIOX_WITNESSED];
    const char *name = name_of_witness();
    struct sockaddr_un address = {.sun_family = AF_UNIX}; /* an abstract name begins with a zero byte */
    int bytes, fd;

    if (name == NULL || atomic_exchange(&reported[what], true))
        return;
    bytes = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s.%s", name, ends[what]);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bytes > 0 && bytes < (int)sizeof address.sun_path - 1)
        sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)bytes));
    if (fd >= 0)
        close(fd);
}
