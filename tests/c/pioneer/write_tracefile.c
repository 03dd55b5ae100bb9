/*
 * write_tracefile.c - a trace file of drawn records, and what was drawn: PROGRAM FILE RECORDS SEED prints a line for
 * each record, in the order in which they must be read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpiox_tracefile.h"

#define NONE MPIOX_TRACEFILE_NONE

static uint64_t state;

static uint64_t draw(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * UINT64_C(2685821657736338717);
}

/* Small numbers mostly, now and then of any size. */
static int64_t number(void)
{
    const int64_t any = (int64_t)draw();

    switch (draw() % 8) {
    case 0:
        return NONE;
    case 1:
        return any == NONE ? 0 : any;
    case 2:
        return any % 100000;
    default:
        return 4096;
    }
}

static void print_number(int64_t value, int last)
{
    if (value == NONE)
        printf("null%c", last ? '\n' : ' ');
    else
        printf("%" PRId64 "%c", value, last ? '\n' : ' ');
}

static mpiox_tracefile_record draw_record(int64_t *now)
{
    mpiox_tracefile_record r = {.operation = (uint8_t)(MPIOX_TRACEFILE_FIRST + draw() % 3),
                                .start = *now += 1 + (int64_t)(draw() % 10000),
                                .duration = (int64_t)(draw() % 3000000),
                                .thread = (int64_t)(draw() % 2),
                                .depth = (int64_t)(draw() % 2),
                                .handle = number(),
                                .file = (int64_t)(draw() % 3),
                                .offset = number(),
                                .size = number()};

    r.layer = (uint8_t)(r.operation - MPIOX_TRACEFILE_FIRST);
    r.result = draw() % 2 ? r.size : number();
    r.extras = draw() % 3 == 0 ? (int)(draw() % (MPIOX_TRACEFILE_EXTRAS + 1)) : 0;
    for (int i = 0; i < r.extras; i++)
        r.extra[i] = (mpiox_tracefile_extra){.key = MPIOX_KEY_FLAGS, .value = (int64_t)draw() >> draw() % 60};
    return r;
}

static void print_record(const mpiox_tracefile_record *r)
{
    const int64_t numbers[] = {r->start,    r->duration, r->operation - MPIOX_TRACEFILE_FIRST,
                               r->file - 1, r->offset,   r->size,
                               r->handle,   r->result,   r->thread,
                               r->depth};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        print_number(numbers[i], i + 1 == sizeof numbers / sizeof *numbers);
}

static uint8_t *definitions(uint8_t *at)
{
    for (int i = 0; i < 3; i++) {
        *at++ = MPIOX_TRACEFILE_OPERATION;
        *at++ = (uint8_t)(MPIOX_TRACEFILE_FIRST + i);
        *at++ = (uint8_t)i;
        at += sprintf((char *)at, "%cop%d", 3, i);
    }
    for (int i = 1; i < 3; i++) {
        *at++ = MPIOX_TRACEFILE_TEXT;
        *at++ = (uint8_t)i;
        at += sprintf((char *)at, "%c/f%d", 3, i - 1);
    }
    return at;
}

int main(int argc, char **argv)
{
    static mpiox_tracefile_header header = {.magic = MPIOX_TRACEFILE_MAGIC,
                                            .version = MPIOX_TRACEFILE_VERSION,
                                            .header_bytes = MPIOX_TRACEFILE_HEADER_BYTES,
                                            .block_bytes = MPIOX_TRACEFILE_BLOCK_BYTES,
                                            .state = MPIOX_TRACEFILE_CLOSED,
                                            .ranks = 1,
                                            .host = "drawn"};
    _Alignas(8) static uint8_t bytes[MPIOX_TRACEFILE_BLOCK_BYTES];
    mpiox_tracefile_block *block = (mpiox_tracefile_block *)(void *)bytes;
    const int records = argc > 3 ? atoi(argv[2]) : 0;
    FILE *file = argc > 3 ? fopen(argv[1], "wb") : NULL;
    int64_t now = 0, offset = MPIOX_TRACEFILE_HEADER_BYTES;
    mpiox_tracefile_state deltas;

    if (file == NULL)
        return 2;
    state = strtoull(argv[3], NULL, 10) * 2 + 1;
    for (int done = 0; done < records; offset += MPIOX_TRACEFILE_BLOCK_BYTES) {
        uint8_t *at = bytes + sizeof *block;
        memset(bytes, 0, sizeof bytes);
        *block = (mpiox_tracefile_block){.magic = MPIOX_TRACEFILE_BLOCK_MAGIC, .first = (uint64_t)done, .time = now};
        mpiox_tracefile_reset(&deltas, now);
        at = done == 0 ? definitions(at) : at;
        for (; done < records && bytes + sizeof bytes - at >= MPIOX_TRACEFILE_ITEM_MAX; done++) {
            const mpiox_tracefile_record record = draw_record(&now);
            print_record(&record);
            at = mpiox_tracefile_encode(&deltas, &record, at);
        }
        block->used = (uint32_t)(at - bytes);
        block->checksum = mpiox_tracefile_checksum(block, block->used);
        fseek(file, offset, SEEK_SET);
        fwrite(bytes, 1, block->used, file);
        header.committed = (uint64_t)offset + block->used;
    }
    rewind(file);
    fwrite(&header, 1, sizeof header, file);
    return fclose(file) != 0;
}
