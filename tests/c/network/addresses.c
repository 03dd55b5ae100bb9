/*
 * addresses.c - the addresses that a listener names to other hosts.
 *
 *   addresses [INTERFACES]...   a line of addresses for each list of interfaces ("": any), or "none: ERRNO"
 */
#include <stdio.h>
#include <unistd.h>

#include "mpiox_rendezvous.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        mpiox_rendezvous_place place = {.loopback = false};
        mpiox_rendezvous_address address;
        mpiox_error error;
        int fd;
        snprintf(place.interfaces, sizeof place.interfaces, "%s", argv[i]);
        if (mpiox_rendezvous_bind(&place, &fd, &address, &error) != MPIOX_OK) {
            printf("none: %d\n", error.sys_errno);
            continue;
        }
        for (int each = 0; each < address.count; each++)
            printf("%s%s", each > 0 ? " " : "", address.host[each]);
        printf("\n");
        close(fd);
    }
    return 0;
}
