/*
 * mpiox_topology_nics.c - the number of cards of a fast network in this host.
 *
 * Problem.   On nodes with several cards one aggregator uses one of them. MPI has no call for cards, and a library that
 *            has one (hwloc) is not on every machine.
 * Algorithm. Linux lists them in sysfs: /sys/class/cxi (Slingshot) has one entry a card. /sys/class/infiniband
 *            (InfiniBand, RoCE, Omni-Path, EFA) has one a card, with the state of each port's link. If there are cards
 *            of the first kind, those of the second serve other purposes.
 * Guarantee. Reads, and waits for, nothing but sysfs. Ethernet without RDMA counts as unknown.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "mpiox_testing.h"
#include "mpiox_topology.h"

typedef bool (*counts_fn)(const char *folder, const char *entry);

static int entries(const char *folder, counts_fn counts)
{
    DIR *listed = opendir(folder);
    const struct dirent *each;
    int n = 0;
    while (listed != NULL && (each = readdir(listed)) != NULL)
        n += each->d_name[0] != '.' && counts(folder, each->d_name);
    if (listed != NULL)
        closedir(listed);
    return n;
}

static bool always(const char *folder, const char *entry)
{
    (void)folder;
    (void)entry;
    return true;
}

/* Of a port: "4: ACTIVE". */
static bool is_active(const char *folder, const char *port)
{
    char path[PATH_MAX], text[32] = "";
    const int length = snprintf(path, sizeof path, "%s/%s/state", folder, port);
    FILE *state = length < (int)sizeof path ? fopen(path, "re") : NULL;
    if (state == NULL)
        return false;
    const bool active = fgets(text, sizeof text, state) != NULL && strstr(text, ": ACTIVE") != NULL;
    fclose(state);
    return active;
}

static bool has_active_port(const char *folder, const char *card)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s/ports", folder, card) < (int)sizeof path && entries(path, is_active) > 0;
}

int mpiox_topology_nics(void)
{
    char path[PATH_MAX];
    const char *classes = "/sys/class";
#ifdef MPIOX_TESTING
    const char *pretended = mpiox_testing_variable("MPIOX_NICS");
    if (pretended != NULL)
        classes = pretended;
#endif
    const bool fits = snprintf(path, sizeof path, "%s/cxi", classes) < (int)sizeof path;
    const int cards = fits ? entries(path, always) : 0;
    if (cards > 0 || snprintf(path, sizeof path, "%s/infiniband", classes) >= (int)sizeof path)
        return cards;
    return entries(path, has_active_port);
}
