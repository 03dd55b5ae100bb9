/*
 * mpiox_layout_probe_beegfs.c - BeeGFS: pattern, chunk size and targets of a file by the client's ioctls.
 */
#include "mpiox_layout_probe.h"

#include <string.h>

#include "mpiox_layout_beegfs.h"

enum { MOST_TARGETS = 4096 }; /* at most so many are listed; a file has a few */

static const char *pattern_name(unsigned pattern)
{
    static const char *const names[] = {"unknown", "raid0", "raid10", "buddy-mirror"};
    return names[pattern <= MPIOX_BEEGFS_BUDDY ? pattern : 0];
}

/* "target 5 on storage01"; of a mirrored file the target that is written first. */
static bool add_target(int fd, int index, mpiox_layout_facts *facts)
{
    mpiox_beegfs_target2 two = {.index = (uint32_t)index};
    mpiox_beegfs_target one = {.index = (uint16_t)index};
    if (ioctl(fd, MPIOX_BEEGFS_GET_TARGET2, &two) == 0) {
        two.primary_alias[MPIOX_BEEGFS_NAME_BYTES - 1] = '\0';
        mpiox_facts_add_target(facts, "%u@%s", two.primary != 0 ? two.primary : two.target_or_group, two.primary_alias);
        return true;
    }
    if (ioctl(fd, MPIOX_BEEGFS_GET_TARGET, &one) != 0)
        return false;
    one.alias[MPIOX_BEEGFS_NAME_BYTES - 1] = '\0';
    mpiox_facts_add_target(facts, "%u@%s", one.target, one.alias);
    return true;
}

void mpiox_layout_probe_beegfs(int fd, const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    static const char source[] = "ioctl BEEGFS_IOC_GET_STRIPEINFO";
    mpiox_beegfs_stripes stripes = {.pattern = 0};
    (void)mount;
    if (ioctl(fd, MPIOX_BEEGFS_GET_STRIPES, &stripes) != 0 || stripes.chunk_bytes == 0)
        return;
    mpiox_layout_component part = {
        .end = INT64_MAX, .stripe_size = stripes.chunk_bytes, .stripe_count = stripes.targets};
    strcpy(part.pattern, pattern_name(stripes.pattern));
    mpiox_facts_set(facts, MPIOX_FACT_PATTERN, source, "%s", part.pattern);
    mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, source, stripes.chunk_bytes);
    if (stripes.targets == 0)
        return;
    mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_COUNT, source, stripes.targets);
    if (stripes.pattern == MPIOX_BEEGFS_BUDDY)
        mpiox_facts_set(facts, MPIOX_FACT_REDUNDANCY, source, "mirrors 2");
    mpiox_layout_component *added = mpiox_facts_add_component(facts, &part);
    for (int i = 0; added != NULL && i < stripes.targets && i < MOST_TARGETS && add_target(fd, i, facts); i++)
        ;
    if (added == NULL || added->targets < stripes.targets)
        return;
    added->servers = mpiox_facts_distinct(facts, added);
    mpiox_facts_set_number(facts, MPIOX_FACT_SERVERS, "ioctl BEEGFS_IOC_GET_STRIPETARGET", added->servers);
}
