/*
 * mpiio_bandwidth_climate.c - the data that a climate model flushes at once: hundreds of 2-D and 3-D variables on an
 * irregular grid.
 *
 * The numbers are those of the E3SM I/O benchmark (github.com/Parallel-NetCDF/E3SM-IO, docs/variables.md): partitioned
 * variables per decomposition map, levels, and types. Vertical levels are the slowest dimension of its cases F
 * (atmosphere, climate_tiny) and I (land, climate_mixed), and the fastest of case G (ocean, climate_long), whose cells
 * are therefore long pieces. Its decompositions are recordings of production runs; here a grid's cells are dealt to the
 * ranks at random, in runs of random length: up to 4 columns in case F, as in its recording for 16 processes.
 */
#include "mpiio_bandwidth_climate.h"

#include <stdlib.h>
#include <string.h>

/* Variables of one kind: [levels][cells * factor] values of `bytes` each. */
typedef struct variables {
    int64_t number, levels, factor, bytes;
} variables;

enum { KINDS = 6 };

typedef struct climate {
    const char *pattern;
    int64_t longest; /* run, in cells */
    int kinds;
    variables kind[KINDS];
} climate;

static const climate climates[] = {
    {"climate_tiny", 4, 2, {{324, 1, 1, 4}, {63, 72, 1, 4}}},
    {"climate_long",
     4,
     6,
     {{6, 1, 1, 8}, {2, 1, 3, 8}, {25, 1, 1, 640}, {2, 1, 3, 640}, {2, 1, 2, 640}, {4, 1, 1, 648}}},
    {"climate_mixed", 16, 5, {{465, 1, 1, 4}, {75, 15, 1, 4}, {4, 10, 1, 4}, {1, 9, 1, 4}, {1, 17, 1, 4}}},
};

static const climate *find(const char *pattern)
{
    for (size_t i = 0; i < sizeof climates / sizeof *climates; i++)
        if (strcmp(climates[i].pattern, pattern) == 0)
            return &climates[i];
    return NULL;
}

bool climate_is(const char *pattern)
{
    return find(pattern) != NULL;
}

/* Cells of the grid, so that the file has about as many bytes as were asked for. */
static int64_t cells_of(const climate *c, const climate_flush *flush)
{
    int64_t cell = 0;
    for (int k = 0; k < c->kinds; k++)
        cell += c->kind[k].number * c->kind[k].levels * c->kind[k].factor * c->kind[k].bytes;
    return flush->bytes / cell > flush->size ? flush->bytes / cell : flush->size;
}

/* Cells of a grid that belong to one rank, the same for all variables and levels on it. */
typedef struct cell_runs {
    int64_t cells;    /* number of cells of the whole grid */
    int64_t n;        /* number of the rank's runs */
    int64_t *starts;  /* first cell of each run, ascending; the caller's, with room for `cells` of them */
    int64_t *lengths; /* number of cells of each run; the caller's, too */
} cell_runs;

/* Fill in the rank's runs of the grid. */
static void deal(const climate *c, const climate_flush *flush, cell_runs *runs)
{
    int64_t n = 0, *starts = runs->starts, *lengths = runs->lengths;
    for (int64_t at = 0, run = 0; at < runs->cells; run++) {
        const uint64_t dice = bandwidth_mix((uint64_t)(run + 1) * 977 + (uint64_t)runs->cells);
        int64_t length = 1 + (int64_t)(dice % (uint64_t)c->longest);
        length = length < runs->cells - at ? length : runs->cells - at;
        if ((int)((dice >> 20) % (uint64_t)flush->size) == flush->rank) {
            if (n && starts[n - 1] + lengths[n - 1] == at) {
                lengths[n - 1] += length;
            } else {
                starts[n] = at;
                lengths[n++] = length;
            }
        }
        at += length;
    }
    runs->n = n;
}

typedef struct place {
    int64_t base;     /* of the variable in the file */
    int64_t position; /* in memory, were it in order */
} place;

static void visit_kind(const climate_flush *flush, const variables *v, const cell_runs *runs, place *p,
                       void (*visit)(void *, int64_t, int64_t, int64_t), void *context)
{
    const int64_t *starts = runs->starts, *lengths = runs->lengths;
    int64_t part = 0;
    for (int64_t i = 0; i < runs->n; i++)
        part += v->levels * lengths[i] * v->bytes;
    for (int64_t number = 0; number < v->number; number++) {
        int64_t at = flush->apart ? flush->room - p->position - part : p->position;
        for (int64_t level = 0; level < v->levels; level++, p->base += runs->cells * v->bytes)
            for (int64_t i = 0; i < runs->n; at += lengths[i++] * v->bytes)
                visit(context, p->base + starts[i] * v->bytes, at, lengths[i] * v->bytes);
        p->position += part + flush->apart;
    }
}

bool climate_each(const climate_flush *flush, void (*visit)(void *, int64_t, int64_t, int64_t), void *context)
{
    enum { MOST_CELLS = 3 }; /* the largest factor */
    const climate *c = find(flush->pattern);
    const int64_t cells = cells_of(c, flush);
    int64_t *memory = malloc(sizeof *memory * (size_t)(2 * MOST_CELLS * cells));
    place p = {0, 0};
    if (!memory)
        return false;
    cell_runs runs = {.starts = memory, .lengths = memory + MOST_CELLS * cells};
    for (int k = 0; k < c->kinds; k++) {
        runs.cells = cells * c->kind[k].factor;
        deal(c, flush, &runs);
        visit_kind(flush, &c->kind[k], &runs, &p, visit, context);
    }
    free(memory);
    return true;
}

/* ---- as datatypes ------------------------------------------------------------------------------------------------ */

/* Pieces in the file and in memory, those in memory joined where they follow each other. */
typedef struct piece_list {
    int64_t n, n_memory, bytes, end; /* end: one past the last byte in memory */
    MPI_Aint *offsets, *places;      /* NULL: only counted */
    int *lengths, *memory_lengths;
} piece_list;

static void list_piece(void *context, int64_t offset, int64_t position, int64_t length)
{
    piece_list *list = context;
    const bool follows = list->n > 0 && position == list->end;
    if (list->offsets) {
        list->offsets[list->n] = (MPI_Aint)offset;
        list->lengths[list->n] = (int)length;
        if (follows) {
            list->memory_lengths[list->n_memory - 1] += (int)length;
        } else {
            list->places[list->n_memory] = (MPI_Aint)position;
            list->memory_lengths[list->n_memory] = (int)length;
        }
    }
    list->n++;
    list->n_memory += !follows;
    list->end = position + length;
    list->bytes += length;
}

static void free_list(piece_list *list)
{
    free(list->offsets);
    free(list->places);
    free(list->lengths);
    free(list->memory_lengths);
}

bool climate_types(const climate_flush *flush, MPI_Datatype *filetype, MPI_Datatype *memory, int64_t *bytes,
                   int64_t *room)
{
    const climate *c = find(flush->pattern);
    climate_flush sized = *flush;
    piece_list count = {0}, list = {0};
    if (!climate_each(flush, list_piece, &count))
        return false;
    *bytes = sized.room = count.bytes;
    for (int k = 0; k < c->kinds; k++)
        sized.room += c->kind[k].number * flush->apart;
    *room = sized.room;
    list.offsets = malloc(sizeof *list.offsets * (size_t)(count.n + 1));
    list.places = malloc(sizeof *list.places * (size_t)(count.n + 1));
    list.lengths = malloc(sizeof *list.lengths * (size_t)(count.n + 1));
    list.memory_lengths = malloc(sizeof *list.memory_lengths * (size_t)(count.n + 1));
    const bool good = list.offsets && list.places && list.lengths && list.memory_lengths &&
                      climate_each(&sized, list_piece, &list);
    if (good)
        MPI_Type_create_hindexed((int)list.n, list.lengths, list.offsets, MPI_BYTE, filetype);
    if (good && flush->apart) {
        MPI_Type_create_hindexed((int)list.n_memory, list.memory_lengths, list.places, MPI_BYTE, memory);
        MPI_Type_commit(memory);
    }
    free_list(&list);
    return good;
}
