/*
 * mpiox_layout_facts.h - the full description of a file's layout: facts with their sources, components, targets.
 *
 * Each fact is a text with its source; a fact without a source is absent, never guessed. Numbers are decimal, sizes in
 * bytes, yes/no facts "true" and "false". A description lives on the heap: create, fill, read, free. If memory runs out
 * while it is filled, `incomplete` is set and the rest is missing.
 */
#ifndef MPIOX_LAYOUT_FACTS_H
#define MPIOX_LAYOUT_FACTS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum mpiox_fact {
    MPIOX_FACT_FILE_SYSTEM = 0,
    MPIOX_FACT_MOUNT_TYPE,
    MPIOX_FACT_MOUNT_POINT,
    MPIOX_FACT_MOUNT_SOURCE,
    MPIOX_FACT_STRIPE_SIZE,
    MPIOX_FACT_STRIPE_COUNT,
    MPIOX_FACT_SERVERS,
    MPIOX_FACT_TARGETS,
    MPIOX_FACT_START_DEVICE,
    MPIOX_FACT_PATTERN,
    MPIOX_FACT_POOL,
    MPIOX_FACT_OBJECT_SIZE,
    MPIOX_FACT_REDUNDANCY,
    MPIOX_FACT_BLOCK_SIZE,
    MPIOX_FACT_READ_SIZE,
    MPIOX_FACT_WRITE_SIZE,
    MPIOX_FACT_PNFS,
    MPIOX_FACT_LOCK_PROTOCOL,
    MPIOX_FACT_LOCK_GRANULARITY,
    MPIOX_FACT_COHERENT,
    MPIOX_FACTS
} mpiox_fact;

#define MPIOX_FACT_VALUE_BYTES 1024
#define MPIOX_FACT_SOURCE_BYTES 96

typedef struct mpiox_fact_text {
    char value[MPIOX_FACT_VALUE_BYTES];   /* "": not known */
    char source[MPIOX_FACT_SOURCE_BYTES]; /* "hint striping_unit", "xattr lustre.lov", "statfs" ... */
} mpiox_fact_text;

typedef struct mpiox_layout_component { /* a part of the file with a striping of its own */
    int64_t start, end;                 /* bytes of the file, half open; INT64_MAX: without end */
    int64_t stripe_size;                /* bytes; 0: not known */
    int32_t stripe_count;               /* 0: not known; -1: all servers */
    int32_t servers;                    /* different targets; 0: not known */
    int32_t mirror;
    int32_t first_target, targets; /* range in the description's targets, in the order of the stripes */
    char pattern[64], flags[96], pool[64];
} mpiox_layout_component;

typedef struct mpiox_layout_facts {
    mpiox_fact_text fact[MPIOX_FACTS];  /* by index */
    mpiox_layout_component *components; /* [n_components]; owned */
    char **targets;                     /* names: an OST's index, "host:brick", a BeeGFS target's number */
    int32_t n_components, n_targets;    /* components; entries of `targets` */
    bool is_folder;                     /* the facts describe new files in this folder */
    bool incomplete;
} mpiox_layout_facts;

/* Name, unit ("bytes", "count", "boolean", "text") and meaning of a fact; NULL: no fact has this index. */
const char *mpiox_fact_name(int index);
const char *mpiox_fact_unit(int index);
const char *mpiox_fact_meaning(int index);

/* NULL: no memory. NULL-safe free. */
mpiox_layout_facts *mpiox_layout_facts_create(void);
void mpiox_layout_facts_free(mpiox_layout_facts *facts);

/* Set a fact. A later source replaces an earlier one: probes go from weak to strong. */
__attribute__((format(printf, 4, 5))) void mpiox_facts_set(mpiox_layout_facts *facts, mpiox_fact fact,
                                                           const char *source, const char *format, ...);
void mpiox_facts_set_number(mpiox_layout_facts *facts, mpiox_fact fact, const char *source, int64_t value);
/* Add to the source of a default stripe size why only the default is known. */
void mpiox_facts_default_because(mpiox_layout_facts *facts, const char *reason);
bool mpiox_facts_has(const mpiox_layout_facts *facts, mpiox_fact fact);
/* Remove components and targets. */
void mpiox_facts_clear_components(mpiox_layout_facts *facts);
/* The new component's targets begin behind the present ones. NULL: no memory. Valid until the next component is
 * added. */
mpiox_layout_component *mpiox_facts_add_component(mpiox_layout_facts *facts, const mpiox_layout_component *component);
/* Add a target to the last component, or, if there is no component yet, to the description alone. */
__attribute__((format(printf, 2, 3))) void mpiox_facts_add_target(mpiox_layout_facts *facts, const char *format, ...);
/* How many different names the targets of a component have. */
int32_t mpiox_facts_distinct(const mpiox_layout_facts *facts, const mpiox_layout_component *component);

#endif
