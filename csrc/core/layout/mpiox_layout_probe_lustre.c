/*
 * mpiox_layout_probe_lustre.c - Lustre: the file's layout from lustre.lov, else from liblustreapi.
 *
 * Everybody who may read the file can read the attribute. If it cannot be read (an old client, a policy) and
 * liblustreapi is installed, llapi_file_get_stripe(3) queries the metadata server through the folder. Its answer has
 * the same format, in a larger buffer of zeros. The format itself contains the length of the answer: beyond it the
 * zeros would be objects on target 0. A folder has the layout of new files, if the user has set one.
 */
#include "mpiox_layout_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "mpiox_layout_library.h"
#include "mpiox_layout_lustre.h"

#define LOV_XATTR "lustre.lov"
#define VALUE_BYTES 65536 /* limit of the kernel's xattr interface */

typedef struct bit_name {
    uint32_t bit;
    const char *name;
} bit_name;

static const bit_name pattern_names[] = {
    {MPIOX_LUSTRE_RAID0, "raid0"},
    {MPIOX_LUSTRE_RAID1, "raid1"},
    {MPIOX_LUSTRE_MDT, "mdt"},
    {MPIOX_LUSTRE_OVERSTRIPED, "overstriped"},
    {MPIOX_LUSTRE_FOREIGN, "foreign"},
    {MPIOX_LUSTRE_COMPRESSED, "compressed"},
    {MPIOX_LUSTRE_HOLE, "hole"},
    {MPIOX_LUSTRE_RELEASED, "released"},
    {MPIOX_LUSTRE_UNREADABLE, "unreadable"},
    {0, NULL},
};
static const bit_name flag_names[] = {
    {MPIOX_LUSTRE_STALE, "stale"},
    {MPIOX_LUSTRE_PREFER_READ, "prefer-read"},
    {MPIOX_LUSTRE_PREFER_WRITE, "prefer-write"},
    {MPIOX_LUSTRE_OFFLINE, "offline"},
    {MPIOX_LUSTRE_INIT, "init"},
    {MPIOX_LUSTRE_NOSYNC, "nosync"},
    {MPIOX_LUSTRE_EXTENSION, "extension"},
    {MPIOX_LUSTRE_PARITY, "parity"},
    {0, NULL},
};

static void put_names(uint32_t bits, const bit_name *names, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; names[i].name != NULL && used < bytes; i++) {
        if ((bits & names[i].bit) != 0)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used > 0 ? "," : "", names[i].name);
    }
}

static void add_component(const mpiox_lustre_component *c, mpiox_layout_facts *facts)
{
    mpiox_layout_component part = {.start = c->start,
                                   .end = c->end,
                                   .stripe_size = c->stripe_size,
                                   .stripe_count = c->stripe_count,
                                   .servers = mpiox_lustre_distinct(c),
                                   .mirror = c->mirror};
    put_names(c->pattern, pattern_names, part.pattern, sizeof part.pattern);
    put_names(c->flags, flag_names, part.flags, sizeof part.flags);
    snprintf(part.pool, sizeof part.pool, "%s", c->pool);
    if (mpiox_facts_add_component(facts, &part) == NULL)
        return;
    for (int32_t i = 0; part.servers > 0 && i < c->object_count; i++)
        mpiox_facts_add_target(facts, "%d", mpiox_lustre_target(c, i));
}

/* The facts of the component that counts for the whole file; of a template without numbers, those that it has. */
static void add_chosen(const mpiox_lustre_component *c, const char *source, mpiox_layout_facts *facts)
{
    char pattern[64];
    put_names(c->pattern, pattern_names, pattern, sizeof pattern);
    mpiox_facts_set(facts, MPIOX_FACT_PATTERN, source, "%s%s", pattern, facts->n_components > 1 ? ",composite" : "");
    if (c->stripe_size > 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, source, c->stripe_size);
    if (c->stripe_count != 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_COUNT, source, c->stripe_count);
    if (mpiox_lustre_distinct(c) > 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_SERVERS, source, mpiox_lustre_distinct(c));
    else if (c->stripe_count > 0 && (c->pattern & MPIOX_LUSTRE_OVERSTRIPED) == 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_SERVERS, source, c->stripe_count);
    if (c->first >= 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_START_DEVICE, source, c->first);
    if (c->pool[0] != '\0')
        mpiox_facts_set(facts, MPIOX_FACT_POOL, source, "%s", c->pool);
}

/* file_bytes: of the file, 0 for a folder. */
static bool add_layout(const void *value, int64_t bytes, int64_t file_bytes, const char *source,
                       mpiox_layout_facts *facts)
{
    mpiox_lustre_component c, chosen;
    int32_t count = mpiox_lustre_count(value, bytes);
    for (int32_t i = 0; i < count; i++) {
        if (mpiox_lustre_get(value, bytes, i, &c) != MPIOX_OK) {
            mpiox_facts_clear_components(facts);
            return false;
        }
        add_component(&c, facts);
    }
    if (count <= 0)
        return false;
    if (mpiox_lustre_choose(value, bytes, file_bytes, &chosen) == MPIOX_OK ||
        mpiox_lustre_get(value, bytes, 0, &chosen) == MPIOX_OK)
        add_chosen(&chosen, source, facts);
    if (mpiox_lustre_mirrors(value, bytes) > 1)
        mpiox_facts_set(facts, MPIOX_FACT_REDUNDANCY, source, "mirrors %d", mpiox_lustre_mirrors(value, bytes));
    return true;
}

static void ask_library(int fd, char *value, int64_t file_bytes, mpiox_layout_facts *facts)
{
    static const char *const libraries[] = {"liblustreapi.so.1", "liblustreapi.so", NULL};
    int (*get_stripe)(const char *path, void *layout) = NULL;
    void *function = mpiox_layout_library_function(libraries, "llapi_file_get_stripe");
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, path, sizeof path - 1);
    if (function == NULL || bytes <= 0)
        return;
    path[bytes] = '\0';
    if (strchr(path, '/') == NULL) /* not the name of a file */
        return;
    memcpy(&get_stripe, &function, sizeof get_stripe);
    memset(value, 0, VALUE_BYTES);
    if (get_stripe(path, value) != 0)
        return;
    const int64_t length = mpiox_lustre_length(value, VALUE_BYTES, strrchr(path, '/') + 1, facts->is_folder);
    if (length > 0)
        add_layout(value, length, file_bytes, "llapi_file_get_stripe", facts);
}

void mpiox_layout_probe_lustre(int fd, const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    struct stat status;
    const int64_t file_bytes = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
    char *value = malloc(VALUE_BYTES);
    (void)mount;
    if (value == NULL) {
        facts->incomplete = true;
        return;
    }
    ssize_t bytes = fgetxattr(fd, LOV_XATTR, value, VALUE_BYTES);
    if (bytes <= 0 || !add_layout(value, bytes, file_bytes, "xattr " LOV_XATTR, facts)) {
        if (bytes > 0)
            mpiox_facts_default_because(facts, "xattr " LOV_XATTR " not understood");
        ask_library(fd, value, file_bytes, facts);
    }
    mpiox_facts_set_number(facts, MPIOX_FACT_LOCK_GRANULARITY, "protocol: extent locks cover whole pages",
                           sysconf(_SC_PAGESIZE));
    free(value);
}
