/*
 * mpiox_layout_facts.c - the description of a layout: one table of all facts, the rest is storage.
 */
#include "mpiox_layout_facts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fact_row {
    const char *name, *unit, *meaning;
} fact_row;

static const fact_row fact_table[MPIOX_FACTS] = {
    [MPIOX_FACT_FILE_SYSTEM] = {"file_system", "text", "kind of file system"},
    [MPIOX_FACT_MOUNT_TYPE] = {"mount_type", "text", "type of the mount, as the kernel calls it"},
    [MPIOX_FACT_MOUNT_POINT] = {"mount_point", "text", "where it is mounted"},
    [MPIOX_FACT_MOUNT_SOURCE] = {"mount_source", "text", "device or server behind it"},
    [MPIOX_FACT_STRIPE_SIZE] = {"stripe_size", "bytes", "what lies together on one server"},
    [MPIOX_FACT_STRIPE_COUNT] = {"stripe_count", "count", "stripes until the first object comes again"},
    [MPIOX_FACT_SERVERS] = {"servers", "count", "different servers or targets of these stripes"},
    [MPIOX_FACT_TARGETS] = {"targets", "count", "targets that whole files lie on, each file on one chosen by its name"},
    [MPIOX_FACT_START_DEVICE] = {"start_device", "count", "target of the first stripe"},
    [MPIOX_FACT_PATTERN] = {"pattern", "text", "how stripes go over targets"},
    [MPIOX_FACT_POOL] = {"pool", "text", "pool of targets that the file is limited to"},
    [MPIOX_FACT_OBJECT_SIZE] = {"object_size", "bytes", "bytes after which the file continues in other objects"},
    [MPIOX_FACT_REDUNDANCY] = {"redundancy", "text", "copies or erasure code"},
    [MPIOX_FACT_BLOCK_SIZE] = {"block_size", "bytes", "preferred size of a request"},
    [MPIOX_FACT_READ_SIZE] = {"read_size", "bytes", "largest read request to a server"},
    [MPIOX_FACT_WRITE_SIZE] = {"write_size", "bytes", "largest write request to a server"},
    [MPIOX_FACT_PNFS] = {"pnfs", "text", "layout type of parallel NFS"},
    [MPIOX_FACT_LOCK_PROTOCOL] = {"lock_protocol", "text",
                                  "which process grants locks for writes: local, server, "
                                  "token, none"},
    [MPIOX_FACT_LOCK_GRANULARITY] = {"lock_granularity", "bytes", "smallest part of a file that a lock covers"},
    [MPIOX_FACT_COHERENT] = {"coherent", "boolean", "one page cache for all processes that can see the file"},
};

static const fact_row *row(int index)
{
    return index >= 0 && index < MPIOX_FACTS ? &fact_table[index] : NULL;
}

const char *mpiox_fact_name(int index)
{
    return row(index) != NULL ? row(index)->name : NULL;
}

const char *mpiox_fact_unit(int index)
{
    return row(index) != NULL ? row(index)->unit : NULL;
}

const char *mpiox_fact_meaning(int index)
{
    return row(index) != NULL ? row(index)->meaning : NULL;
}

mpiox_layout_facts *mpiox_layout_facts_create(void)
{
    return calloc(1, sizeof(mpiox_layout_facts));
}

void mpiox_facts_clear_components(mpiox_layout_facts *facts)
{
    for (int32_t i = 0; i < facts->n_targets; i++)
        free(facts->targets[i]);
    facts->n_targets = facts->n_components = 0;
}

void mpiox_layout_facts_free(mpiox_layout_facts *facts)
{
    if (facts == NULL)
        return;
    mpiox_facts_clear_components(facts);
    free(facts->targets);
    free(facts->components);
    free(facts);
}

void mpiox_facts_set(mpiox_layout_facts *facts, mpiox_fact fact, const char *source, const char *format, ...)
{
    mpiox_fact_text *text = &facts->fact[fact];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text->value, sizeof text->value, format, arguments);
    va_end(arguments);
    snprintf(text->source, sizeof text->source, "%s", source);
}

void mpiox_facts_set_number(mpiox_layout_facts *facts, mpiox_fact fact, const char *source, int64_t value)
{
    mpiox_facts_set(facts, fact, source, "%" PRId64, value);
}

void mpiox_facts_default_because(mpiox_layout_facts *facts, const char *reason)
{
    mpiox_fact_text *text = &facts->fact[MPIOX_FACT_STRIPE_SIZE];
    if (strncmp(text->source, "default", strlen("default")) == 0)
        snprintf(text->source, sizeof text->source, "default (%s)", reason);
}

bool mpiox_facts_has(const mpiox_layout_facts *facts, mpiox_fact fact)
{
    return facts->fact[fact].value[0] != '\0';
}

/* Room for one more of `bytes` each; storage grows at powers of two. */
static void *grown(void *items, int32_t count, size_t bytes)
{
    if (count > 0 && (count & (count - 1)) != 0)
        return items;
    return realloc(items, (count > 0 ? 2 * (size_t)count : 1) * bytes);
}

mpiox_layout_component *mpiox_facts_add_component(mpiox_layout_facts *facts, const mpiox_layout_component *component)
{
    mpiox_layout_component *room = grown(facts->components, facts->n_components, sizeof *room);
    if (room == NULL) {
        facts->incomplete = true;
        return NULL;
    }
    facts->components = room;
    room += facts->n_components++;
    *room = *component;
    room->first_target = facts->n_targets;
    room->targets = 0;
    return room;
}

void mpiox_facts_add_target(mpiox_layout_facts *facts, const char *format, ...)
{
    char **room = grown(facts->targets, facts->n_targets, sizeof *room), *name = NULL;
    va_list arguments;
    if (room != NULL)
        facts->targets = room;
    va_start(arguments, format);
    if (room == NULL || vasprintf(&name, format, arguments) < 0)
        facts->incomplete = true;
    else
        facts->targets[facts->n_targets++] = name;
    va_end(arguments);
    if (!facts->incomplete && facts->n_components > 0)
        facts->components[facts->n_components - 1].targets++;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int32_t mpiox_facts_distinct(const mpiox_layout_facts *facts, const mpiox_layout_component *component)
{
    const size_t bytes = (size_t)component->targets * sizeof *facts->targets;
    char **names = component->targets > 0 ? malloc(bytes) : NULL;
    int32_t distinct = 0;
    if (names == NULL)
        return 0;
    memcpy(names, facts->targets + component->first_target, bytes);
    qsort(names, (size_t)component->targets, sizeof *names, compare_names);
    for (int32_t i = 0; i < component->targets; i++)
        distinct += i == 0 || strcmp(names[i], names[i - 1]) != 0;
    free(names);
    return distinct;
}
