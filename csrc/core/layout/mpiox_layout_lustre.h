/*
 * mpiox_layout_lustre.h - the value of the lustre.lov extended attribute, component by component.
 *
 * Pure functions over bytes that come from outside; fuzzed (tests/c/layout/fuzz_layout_lustre.c). A plain layout is one
 * component that covers the whole file. Nothing is copied: a component points into the value, which must live on.
 */
#ifndef MPIOX_LAYOUT_LUSTRE_H
#define MPIOX_LAYOUT_LUSTRE_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"

#define MPIOX_LUSTRE_NO_END INT64_MAX
#define MPIOX_LUSTRE_POOL_BYTES 17 /* a pool's name has 15 bytes; the field has 16, and a NUL is added */

/* Bits of a component's flags. */
#define MPIOX_LUSTRE_STALE 0x01u
#define MPIOX_LUSTRE_PREFER_READ 0x02u
#define MPIOX_LUSTRE_PREFER_WRITE 0x04u
#define MPIOX_LUSTRE_OFFLINE 0x08u
#define MPIOX_LUSTRE_INIT 0x10u      /* the component has its objects */
#define MPIOX_LUSTRE_NOSYNC 0x20u    /* a mirror that Lustre does not update */
#define MPIOX_LUSTRE_EXTENSION 0x40u /* the reserve of a self-extending layout: its stripe size means something else */
#define MPIOX_LUSTRE_PARITY 0x80u    /* erasure code, no data */

/* Bits of a component's pattern. */
#define MPIOX_LUSTRE_RAID0 0x001u
#define MPIOX_LUSTRE_RAID1 0x002u
#define MPIOX_LUSTRE_MDT 0x100u /* data on the metadata server */
#define MPIOX_LUSTRE_OVERSTRIPED 0x200u
#define MPIOX_LUSTRE_FOREIGN 0x400u
#define MPIOX_LUSTRE_COMPRESSED 0x800u
#define MPIOX_LUSTRE_UNREADABLE 0x20000000u /* not Lustre's: the entry points at a layout of unknown form */
#define MPIOX_LUSTRE_HOLE 0x40000000u
#define MPIOX_LUSTRE_RELEASED 0x80000000u

typedef struct mpiox_lustre_component {
    uint32_t id;          /* 0: a plain layout */
    int32_t mirror;       /* number of the component's mirror, from the id */
    uint32_t flags;       /* MPIOX_LUSTRE_STALE ...; MPIOX_LUSTRE_INIT of a plain layout with objects */
    uint32_t pattern;     /* MPIOX_LUSTRE_RAID0 ... */
    int64_t start, end;   /* bytes of the file, half open; MPIOX_LUSTRE_NO_END */
    int64_t stripe_size;  /* bytes; 0: a template that leaves the size to the file system */
    int32_t stripe_count; /* 0: a template that leaves the count to the file system, or no striping; -1: all servers */
    int32_t first; /* without objects (also a template): the OST to begin with, -1: any; else the OST of the first
                    * stripe, -1: none */
    char pool[MPIOX_LUSTRE_POOL_BYTES]; /* "": none */
    const unsigned char *objects;       /* 24 bytes each */
    int32_t object_count;               /* 0 (also if the entry only has room for them) or stripe_count */
} mpiox_lustre_component;

/* Number of components. MPIOX_E_CORRUPT: the value is no layout, or its list of components is damaged. */
int32_t mpiox_lustre_count(const void *value, int64_t value_bytes);
/* Component `index` < mpiox_lustre_count(). MPIOX_E_CORRUPT: its entry is damaged; *out is undefined then. If an entry
 * of a composite layout points at a layout that cannot be read, the component has the pattern
 * MPIOX_LUSTRE_UNREADABLE. */
int mpiox_lustre_get(const void *value, int64_t value_bytes, int32_t index, mpiox_lustre_component *out);
/* The target (OST) of a component's stripe < object_count, -1: damaged. */
int32_t mpiox_lustre_target(const mpiox_lustre_component *component, int32_t stripe);
/* How many different targets the objects of a component have; 0: not known (none, or damaged). */
int32_t mpiox_lustre_distinct(const mpiox_lustre_component *component);
/* Mirrors of the file; 1 unless a composite layout has another number. */
int32_t mpiox_lustre_mirrors(const void *value, int64_t value_bytes);

/* The targets of the component's stripes in turn. Returns their number; 0: not known, a damaged index, or more than
 * `most`. */
int32_t mpiox_lustre_targets(const mpiox_lustre_component *component, int32_t most, int32_t *targets);

/* The component that counts for a file of file_bytes: the component that covers most of the file and contains the place
 * of data. For file_bytes 0, or if no component has data there, the component with the largest extent. Of equal ones
 * the first, which is the first mirror. Stale, foreign and metadata-server components and templates without numbers do
 * not count. MPIOX_E_CORRUPT: no component is left. */
int mpiox_lustre_choose(const void *value, int64_t value_bytes, int64_t file_bytes, mpiox_lustre_component *out);

/* The length of the value that liblustreapi has written to the start of a block of zeros, behind the file's name:
 * computed from the heads in the block. The plain value of a folder ends with its head, and so does a value without
 * bytes at its first object's place. MPIOX_E_CORRUPT: no layout. */
int64_t mpiox_lustre_length(const void *block, int64_t block_bytes, const char *name, bool is_folder);

/* Write the value that requests a striping for a new file into 32 bytes. stripe_size 0, stripe_count 0: the default of
 * the file system; stripe_count -1: all; first -1: any. The function moves arguments into their range. Returns 32. */
int32_t mpiox_lustre_template(int64_t stripe_size, int32_t stripe_count, int32_t first, unsigned char *value);

#endif
