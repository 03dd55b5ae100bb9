/*
 * mpiox_darshan_files.c - joins the records of one log to one row a file.
 *
 * Problem. A file has a record for each module that saw it, and either one shared record, when every rank opened it, or
 * one for each rank. The store has one row a file.
 *
 * Algorithm. A hash map finds the row of a record's ID; the rules of mpiox_darshan_library.c say what each counter does
 * to the row: added up, highest, first (the smallest time but 0, which means never), last. A negative counter is absent
 * (Darshan's -1, also for what the log's version lacks) and changes nothing, so that a column which no record has stays
 * absent. Ranks are counted by sorting the pairs (file, rank) of the records that say "opened". A file is written until
 * its last sync ends, as far as the time in its writes tells.
 *
 * Guarantees. Sums do not overflow: they stay at the highest number. Cost O(r log r) for r records.
 */
#include "mpiox_darshan_files.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"

enum { FIRST_FILES = 64, FIRST_SLOTS = 256 };

/* ---- from IDs to indexes ---- */

static uint64_t mixed(uint64_t id)
{
    id ^= id >> 33;
    id *= 0xff51afd7ed558ccdULL;
    return id ^ id >> 29;
}

int64_t mpiox_darshan_map_find(const mpiox_darshan_map *map, uint64_t id)
{
    if (map->capacity == 0)
        return -1;
    for (uint64_t at = mixed(id);; at++) {
        const struct mpiox_darshan_entry *entry = &map->entries[at & (uint64_t)(map->capacity - 1)];

        if (entry->value == 0)
            return -1;
        if (entry->id == id)
            return entry->value - 1;
    }
}

static void place(mpiox_darshan_map *map, uint64_t id, int64_t value)
{
    uint64_t at = mixed(id);

    while (map->entries[at & (uint64_t)(map->capacity - 1)].value != 0)
        at++;
    map->entries[at & (uint64_t)(map->capacity - 1)] = (struct mpiox_darshan_entry){id, value};
}

int mpiox_darshan_map_add(mpiox_darshan_map *map, uint64_t id, int64_t index)
{
    if ((map->count + 1) * 2 > map->capacity) {
        mpiox_darshan_map grown = {NULL, map->capacity > 0 ? map->capacity * 2 : FIRST_SLOTS, map->count};

        grown.entries = calloc((size_t)grown.capacity, sizeof(*grown.entries));
        if (grown.entries == NULL)
            return MPIOX_E_NOMEM;
        for (int64_t k = 0; k < map->capacity; k++)
            if (map->entries[k].value != 0)
                place(&grown, map->entries[k].id, map->entries[k].value);
        free(map->entries);
        *map = grown;
    }
    place(map, id, index + 1);
    map->count++;
    return MPIOX_OK;
}

void mpiox_darshan_map_free(mpiox_darshan_map *map)
{
    free(map->entries);
    memset(map, 0, sizeof(*map));
}

/* ---- the table ---- */

void mpiox_darshan_files_clear(mpiox_darshan_files *files)
{
    if (files->map.capacity > 0)
        memset(files->map.entries, 0, (size_t)files->map.capacity * sizeof(*files->map.entries));
    files->map.count = 0;
    files->count = files->opener_count = files->ost_count = 0;
}

void mpiox_darshan_files_release(mpiox_darshan_files *files)
{
    mpiox_darshan_map_free(&files->map);
    free(files->files);
    free(files->openers);
    free(files->osts);
    memset(files, 0, sizeof(*files));
}

mpiox_darshan_file *mpiox_darshan_files_at(mpiox_darshan_files *files, uint64_t id)
{
    const int64_t index = mpiox_darshan_map_find(&files->map, id);

    if (index >= 0)
        return &files->files[index];
    if (files->count == files->capacity) {
        const int64_t capacity = files->capacity > 0 ? files->capacity * 2 : FIRST_FILES;
        mpiox_darshan_file *grown = realloc(files->files, (size_t)capacity * sizeof(*grown));

        if (grown == NULL)
            return NULL;
        files->files = grown;
        files->capacity = capacity;
    }
    if (mpiox_darshan_map_add(&files->map, id, files->count) != MPIOX_OK)
        return NULL;
    mpiox_darshan_file *file = &files->files[files->count++];
    memset(file, 0, sizeof(*file));
    for (int k = 0; k < MPIOX_DARSHAN_FILE_WIDTH; k++)
        file->slots[k].i = MPIOX_DARSHAN_NONE;
    file->id = id;
    return file;
}

static int add_opener(mpiox_darshan_files *files, const mpiox_darshan_file *file, int64_t rank)
{
    if (files->opener_count == files->opener_capacity) {
        const int64_t capacity = files->opener_capacity > 0 ? files->opener_capacity * 2 : FIRST_FILES;
        mpiox_darshan_opener *grown = realloc(files->openers, (size_t)capacity * sizeof(*grown));

        if (grown == NULL)
            return MPIOX_E_NOMEM;
        files->openers = grown;
        files->opener_capacity = capacity;
    }
    files->openers[files->opener_count++] = (mpiox_darshan_opener){file - files->files, rank};
    return MPIOX_OK;
}

/* ---- counters ---- */

static int64_t sum(int64_t a, int64_t b)
{
    int64_t result;

    return __builtin_add_overflow(a, b, &result) ? INT64_MAX : result;
}

static void join_integer(mpiox_darshan_slot *slot, int how, int64_t value)
{
    if (slot->i == MPIOX_DARSHAN_NONE)
        slot->i = value;
    else if (how == MPIOX_DARSHAN_SUM)
        slot->i = sum(slot->i, value);
    else if (value > slot->i)
        slot->i = value;
}

static void join_double(mpiox_darshan_slot *slot, int how, double value)
{
    if (how != MPIOX_DARSHAN_SUM && value <= 0.0)
        return;   /* never */
    value += 0.0; /* no -0.0 */
    if (slot->i == MPIOX_DARSHAN_NONE)
        slot->f = value;
    else if (how == MPIOX_DARSHAN_SUM)
        slot->f += value;
    else if (how == MPIOX_DARSHAN_FIRST ? value < slot->f : value > slot->f)
        slot->f = value;
}

static double as_double(int64_t bits)
{
    mpiox_darshan_slot slot = {.i = bits};

    return slot.f;
}

static void set_integer(mpiox_darshan_file *file, int column, const mpiox_darshan_record *record, int counter)
{
    if (counter >= 0 && record->counters[counter] >= 0)
        file->slots[column].i = record->counters[counter];
}

static void set_double(mpiox_darshan_file *file, int column, const mpiox_darshan_record *record, int counter)
{
    const double value = counter >= 0 ? as_double(record->counters[counter]) : -1.0;

    if (isfinite(value) && value >= 0.0)
        file->slots[column].f = value + 0.0;
}

/* The fastest and slowest rank of a shared record; of POSIX, which is read first, or else of STDIO. */
static void take_extremes(mpiox_darshan_file *file, const mpiox_darshan_kind *kind, const mpiox_darshan_record *record)
{
    if (file->has_extremes)
        return;
    file->has_extremes = 1;
    set_double(file, MPIOX_DARSHAN_FILE_fastest_rank_time, record, kind->fastest_time);
    set_double(file, MPIOX_DARSHAN_FILE_slowest_rank_time, record, kind->slowest_time);
    set_integer(file, MPIOX_DARSHAN_FILE_fastest_rank_bytes, record, kind->fastest_bytes);
    set_integer(file, MPIOX_DARSHAN_FILE_slowest_rank_bytes, record, kind->slowest_bytes);
    set_integer(file, MPIOX_DARSHAN_FILE_slowest_rank, record, kind->slowest_rank);
    if (file->slots[MPIOX_DARSHAN_FILE_slowest_rank].i > INT32_MAX)
        file->slots[MPIOX_DARSHAN_FILE_slowest_rank].i = MPIOX_DARSHAN_NONE;
}

static void join_data(mpiox_darshan_file *file, const mpiox_darshan_kind *kind, const mpiox_darshan_record *record)
{
    for (int k = 0; k < 2; k++)
        if (kind->syncs[k] >= 0 && record->counters[kind->syncs[k]] > 0)
            file->synced = 1;
    if (record->rank < 0) {
        file->shared = 1;
        take_extremes(file, kind, record);
        return;
    }
    file->private = 1;
    if (record->rank == 0 && kind->bytes_written >= 0 && record->counters[kind->bytes_written] > 0)
        file->root_bytes = sum(file->root_bytes, record->counters[kind->bytes_written]);
}

int mpiox_darshan_files_join(mpiox_darshan_files *files, const mpiox_darshan_library *library, int kind_index,
                             const mpiox_darshan_record *record)
{
    const mpiox_darshan_kind *kind = &library->kinds[kind_index];
    mpiox_darshan_file *file = mpiox_darshan_files_at(files, record->id);
    int opened = 0;

    if (file == NULL)
        return MPIOX_E_NOMEM;
    file->records = (int8_t)(file->records | 1 << kind_index);
    for (int k = 0; k < kind->rules; k++) {
        const mpiox_darshan_rule *rule = &kind->rule[k];
        const int64_t value = record->counters[rule->counter];

        if (rule->is_double) {
            if (isfinite(as_double(value)) && as_double(value) >= 0.0)
                join_double(&file->slots[rule->column], rule->how, as_double(value));
        } else if (rule->how == MPIOX_DARSHAN_OPENS) {
            opened |= value > 0;
        } else if (value >= 0) {
            join_integer(&file->slots[rule->column], rule->how, value);
        }
    }
    if (kind_index != MPIOX_DARSHAN_MPIIO)
        join_data(file, kind, record);
    if (!opened)
        return MPIOX_OK;
    file->opened = 1;
    if (record->rank < 0)
        file->opened_by_all = 1;
    return record->rank < 0 ? MPIOX_OK : add_opener(files, file, record->rank);
}

static int by_file_and_rank(const void *a, const void *b)
{
    const mpiox_darshan_opener *left = a, *right = b;

    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static double known(const mpiox_darshan_file *file, int column)
{
    return file->slots[column].i == MPIOX_DARSHAN_NONE ? 0.0 : file->slots[column].f;
}

/* Darshan adds the time of syncs to that of writes, and does not move the end of the last write. The file is written at
 * least for the time that its slowest rank writes and syncs: analytics/diagnosis/ranks.py has the same of any calls. */
static void extend_to_syncs(mpiox_darshan_file *file, int64_t processes, double run_time)
{
    const mpiox_darshan_slot *slots = file->slots;
    const int64_t ranks = slots[MPIOX_DARSHAN_FILE_ranks].i;
    const double share = (double)(ranks > 0 ? ranks : processes > 0 ? processes : 1);
    const double written = known(file, MPIOX_DARSHAN_FILE_write_time);
    double busy = written / share;

    if (!file->synced || slots[MPIOX_DARSHAN_FILE_write_start].i == MPIOX_DARSHAN_NONE)
        return;
    if (slots[MPIOX_DARSHAN_FILE_slowest_rank_time].i != MPIOX_DARSHAN_NONE) {
        const double other = known(file, MPIOX_DARSHAN_FILE_meta_time) + known(file, MPIOX_DARSHAN_FILE_read_time);

        busy = fmin(fmax(slots[MPIOX_DARSHAN_FILE_slowest_rank_time].f - other / share, busy), written);
    }
    double until = slots[MPIOX_DARSHAN_FILE_write_start].f + busy;
    if (run_time >= 0.0)
        until = fmin(until, run_time);
    join_double(&file->slots[MPIOX_DARSHAN_FILE_write_end], MPIOX_DARSHAN_LAST, until);
}

void mpiox_darshan_files_finish(mpiox_darshan_files *files, int64_t processes, double start, double run_time)
{
    static const int times[] = {MPIOX_DARSHAN_FILE_read_start, MPIOX_DARSHAN_FILE_read_end,
                                MPIOX_DARSHAN_FILE_write_start, MPIOX_DARSHAN_FILE_write_end};
    const mpiox_darshan_opener *openers = files->openers;

    if (files->opener_count > 1)
        qsort(files->openers, (size_t)files->opener_count, sizeof(*openers), by_file_and_rank);
    for (int64_t k = 0; k < files->count; k++) {
        mpiox_darshan_file *file = &files->files[k];

        if (file->records != 0)
            file->slots[MPIOX_DARSHAN_FILE_ranks].i = file->opened_by_all ? processes : 0;
        if (file->private && !file->shared)
            file->slots[MPIOX_DARSHAN_FILE_root_bytes_written].i = file->root_bytes;
    }
    for (int64_t k = 0; k < files->opener_count; k++) {
        mpiox_darshan_file *file = &files->files[openers[k].file];

        if (!file->opened_by_all && (k == 0 || by_file_and_rank(&openers[k - 1], &openers[k]) != 0))
            file->slots[MPIOX_DARSHAN_FILE_ranks].i++;
    }
    for (int64_t k = 0; k < files->count; k++) {
        mpiox_darshan_file *file = &files->files[k];

        extend_to_syncs(file, processes, run_time);
        for (size_t t = 0; t < sizeof(times) / sizeof(times[0]); t++)
            if (file->slots[times[t]].i != MPIOX_DARSHAN_NONE)
                file->slots[times[t]].f += start;
    }
}
