/*
 * mpiox_rendezvous_socket.c - the listening socket, the addresses by which other hosts reach it, options of sockets.
 *
 * All interfaces that are up are offered, fast ones first: only an attempt shows which of them leads to a host. The
 * loopback is not offered, nor are networks of containers and virtual machines, whose addresses exist on every host:
 * bridges (other than those with a network card, bond or VLAN in them) and interfaces with such names. If the user
 * names interfaces, those are offered, and no others.
 */
#include "mpiox_rendezvous.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef union any_address {
    struct sockaddr head;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} any_address;

/* ---- the addresses of this host ---------------------------------------------------------------------------------- */

/* Mbit/s by the driver, or 0. */
static long speed_of(const char *interface)
{
    char path[128];
    long speed = 0;
    snprintf(path, sizeof path, "/sys/class/net/%s/speed", interface);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld", &speed) != 1 || speed < 0)
        speed = 0;
    fclose(file);
    return speed;
}

static bool has(const char *interface, const char *what)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/sys/class/net/%s/%s", interface, what);
    return access(path, F_OK) == 0;
}

static bool is_vlan(const char *interface)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/net/vlan/%s", interface);
    return access(path, F_OK) == 0;
}

/* Of a bridge: has it no way out of this host? */
static bool is_private(const char *interface)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/sys/class/net/%s/brif", interface);
    DIR *ports = opendir(path);
    const struct dirent *port;
    bool way_out = false;
    while (ports != NULL && !way_out && (port = readdir(ports)) != NULL)
        way_out = port->d_name[0] != '.' &&
                  (has(port->d_name, "device") || has(port->d_name, "bonding") || is_vlan(port->d_name));
    if (ports != NULL)
        closedir(ports);
    return !way_out;
}

static bool is_virtual(const char *interface)
{
    static const char *const prefixes[] = {"docker", "virbr",  "br-",   "veth",    "cni",     "lxc",
                                           "lxd",    "podman", "vmnet", "vbox",    "flannel", "cali",
                                           "kube",   "tap",    "vnet",  "nerdctl", "incusbr"};
    if (has(interface, "bridge"))
        return is_private(interface); /* whatever its name */
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(interface, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

/* Is it in the list a,b,c or a;b;c? */
static bool is_named(const char *list, const char *interface)
{
    const size_t length = strlen(interface);
    while (*list != '\0') {
        const size_t part = strcspn(list, ",;");
        if (part == length && memcmp(list, interface, length) == 0)
            return true;
        list += part + (list[part] != '\0');
    }
    return false;
}

bool mpiox_rendezvous_has_interface(const char *list)
{
    struct if_nameindex *all = if_nameindex();
    bool found = all == NULL; /* not known */

    for (size_t k = 0; all != NULL && all[k].if_name != NULL && !found; k++)
        found = is_named(list, all[k].if_name);
    if_freenameindex(all);
    return found;
}

/* Higher is better; negative: of no use to other hosts. */
static long rank_of(const struct ifaddrs *each, const char *wanted)
{
    static const long fastest = 10000000; /* Mbit/s */
    if (each->ifa_addr == NULL || !(each->ifa_flags & IFF_UP) || (each->ifa_flags & IFF_LOOPBACK))
        return -1;
    if (wanted[0] != '\0' ? !is_named(wanted, each->ifa_name) : is_virtual(each->ifa_name))
        return -1;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6)
        return -1;
    const any_address *address = (const any_address *)(const void *)each->ifa_addr;
    if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address->v6.sin6_addr))
        return -1; /* needs the name that the interface has on the other host */
    const long speed = speed_of(each->ifa_name);
    return 2 * (speed < fastest ? speed : fastest) + (family == AF_INET);
}

static void add_host(mpiox_rendezvous_address *address, const struct sockaddr *from)
{
    char *text = address->host[address->count];
    const any_address *any = (const any_address *)(const void *)from;
    const void *bytes = from->sa_family == AF_INET ? (const void *)&any->v4.sin_addr : (const void *)&any->v6.sin6_addr;
    if (inet_ntop(from->sa_family, bytes, text, sizeof address->host[0]) != NULL)
        address->count++;
}

/* The best addresses of the family (AF_UNSPEC: of both), in order; wanted: names of interfaces, "": any. */
static void list_hosts(mpiox_rendezvous_address *address, int family, const char *wanted)
{
    struct ifaddrs *all;
    long below = LONG_MAX;
    if (getifaddrs(&all) != 0)
        return;
    for (;;) { /* all of the next lower rank */
        long best = -1;
        for (const struct ifaddrs *each = all; each != NULL; each = each->ifa_next) {
            const long rank = rank_of(each, wanted);
            if (rank > best && rank < below)
                best = rank;
        }
        if (best < 0)
            break;
        for (const struct ifaddrs *each = all; each != NULL; each = each->ifa_next) {
            if (address->count < MPIOX_RENDEZVOUS_ADDRESSES && rank_of(each, wanted) == best &&
                (family == AF_UNSPEC || each->ifa_addr->sa_family == family))
                add_host(address, each->ifa_addr);
        }
        below = best;
    }
    freeifaddrs(all);
}

/* ---- the socket -------------------------------------------------------------------------------------------------- */

/* Listen on a free port; both families where `to` is of IPv6 and that is possible. Returns a socket or -1 (errno). */
static int listen_on(const any_address *to, bool both, int *port)
{
    const int off = 0;
    any_address bound;
    const socklen_t to_bytes = to->head.sa_family == AF_INET ? sizeof to->v4 : sizeof to->v6;
    socklen_t bytes = sizeof bound;
    const int fd = socket(to->head.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if ((both && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) ||
        bind(fd, &to->head, to_bytes) != 0 || listen(fd, 1024) != 0 || getsockname(fd, &bound.head, &bytes) != 0) {
        const int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    *port = ntohs(bound.head.sa_family == AF_INET ? bound.v4.sin_port : bound.v6.sin6_port);
    return fd;
}

int mpiox_rendezvous_bind(const mpiox_rendezvous_place *place, int *fd, mpiox_rendezvous_address *address,
                          mpiox_error *error)
{
    const bool loopback = place->loopback;
    const any_address v4 = {
        .v4 = {.sin_family = AF_INET, .sin_addr = {htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY)}}};
    const any_address v6 = {.v6 = {.sin6_family = AF_INET6, .sin6_addr = loopback ? in6addr_loopback : in6addr_any}};
    int port = 0;
    bool both = !loopback;
    memset(address, 0, sizeof *address);
    *fd = both ? listen_on(&v6, true, &port) : -1;
    if (*fd < 0) {
        both = false;
        *fd = listen_on(&v4, false, &port);
    }
    if (*fd < 0 && loopback)
        *fd = listen_on(&v6, false, &port);
    if (*fd < 0)
        return mpiox_error_set(error, MPIOX_E_IO, errno, -1, -1, "listen");
    address->port = port;
    if (!loopback)
        list_hosts(address, both ? AF_UNSPEC : AF_INET, place->interfaces);
    if (!loopback && address->count == 0 && place->interfaces[0] != '\0') {
        close(*fd);
        *fd = -1;
        return mpiox_error_set(error, MPIOX_E_IO, ENODEV, -1, -1, "finding an address of mpiox_delegate_interface");
    }
    if (address->count == 0) { /* a host without a network has its own clients at least */
        any_address bound;
        socklen_t bytes = sizeof bound;
        getsockname(*fd, &bound.head, &bytes);
        snprintf(address->host[address->count++], sizeof address->host[0], "%s",
                 bound.head.sa_family == AF_INET || both ? "127.0.0.1" : "::1");
    }
    return MPIOX_OK;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static void set_option(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof value); /* each option is only an improvement */
}

bool mpiox_rendezvous_set_blocking(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

void mpiox_rendezvous_tune(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 5);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 2);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 5);
}

void mpiox_rendezvous_limit(int fd, double seconds)
{
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)(seconds * 1e3));
}
