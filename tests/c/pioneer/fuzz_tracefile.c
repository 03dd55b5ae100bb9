/*
 * fuzz_tracefile.c - libFuzzer harness of the reader of trace files: whatever a file holds, it is read to its end, and
 * every row that comes out can be used.
 *
 * The input is the bytes of one block (which is given its head and a checksum, so that the fuzzer gets past that), or,
 * where its first byte is odd, of everything behind the header. The header is a right one, but for what the second byte
 * changes; where that says so, calls are under way.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"
#include "mpiox_tracefile_reader.h"

enum { BODY_MAX = 200000, HEAD = MPIOX_TRACEFILE_HEADER_BYTES };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fill_header(mpiox_tracefile_header *header, uint64_t committed)
{
    memcpy(header->magic, MPIOX_TRACEFILE_MAGIC, sizeof header->magic);
    header->version = MPIOX_TRACEFILE_VERSION;
    header->header_bytes = MPIOX_TRACEFILE_HEADER_BYTES;
    header->block_bytes = MPIOX_TRACEFILE_BLOCK_BYTES;
    header->committed = committed;
}

/* Behind `at`: a block with the bytes, finished or not. */
static int64_t put_block(uint8_t *at, const uint8_t *data, size_t size, int finished)
{
    mpiox_tracefile_block block = {.magic = MPIOX_TRACEFILE_BLOCK_MAGIC};

    memcpy(at + sizeof block, data, size);
    block.used = finished ? (uint32_t)(sizeof block + size) : 0;
    memcpy(at, &block, sizeof block);
    if (finished) {
        _Alignas(8) static uint8_t copy[MPIOX_TRACEFILE_BLOCK_BYTES];
        memcpy(copy, at, sizeof block + size);
        block.checksum = mpiox_tracefile_checksum((const mpiox_tracefile_block *)(const void *)copy, block.used);
        memcpy(at, &block, sizeof block);
    }
    return (int64_t)(sizeof block + size);
}

static void use(const mpiox_tracefile_reader *reader, int64_t rows)
{
    const int32_t *offsets;
    const char *extras = mpiox_tracefile_reader_extras(reader, &offsets);
    const int64_t *operation = mpiox_tracefile_reader_column(reader, MPIOX_COLUMN_OPERATION);
    const int64_t *file = mpiox_tracefile_reader_column(reader, MPIOX_COLUMN_FILE);
    const int64_t *layer = mpiox_tracefile_reader_column(reader, MPIOX_COLUMN_LAYER);
    const int64_t *time = mpiox_tracefile_reader_column(reader, MPIOX_COLUMN_TIMESTAMP);

    for (int64_t i = 0; i < rows; i++) {
        if (mpiox_tracefile_reader_operation(reader, operation[i]) == NULL ||
            (file[i] >= 0 && mpiox_tracefile_reader_file(reader, file[i]) == NULL) || layer[i] < 0 ||
            layer[i] >= MPIOX_TRACEFILE_LAYERS || offsets[i] > offsets[i + 1] || (i > 0 && time[i] < time[i - 1]))
            abort();
        if (offsets[i] < offsets[i + 1] && (extras[offsets[i]] != '{' || extras[offsets[i + 1] - 1] != '}'))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mpiox_tracefile_reader *reader = NULL;
    int64_t bytes = HEAD, rows;

    if (size < 2 || size > BODY_MAX)
        return 0;
    uint8_t *file = calloc(1, HEAD + BODY_MAX + MPIOX_TRACEFILE_BLOCK_BYTES);
    if (file == NULL)
        return 0;
    const int raw = data[0] & 1, finished = data[0] & 2, change = data[1];
    if (raw) {
        memcpy(file + HEAD, data + 2, size - 2);
        bytes += (int64_t)size - 2;
    } else if (size < 60000) {
        bytes += put_block(file + HEAD, data + 2, size - 2, finished);
    }
    fill_header((mpiox_tracefile_header *)(void *)file, (uint64_t)(bytes + (change & 1) * 1000 - (change & 2)));
    for (size_t i = 2; (change & 4) && i < size && i < MPIOX_TRACEFILE_SLOTS * sizeof(mpiox_tracefile_slot); i++)
        file[MPIOX_TRACEFILE_SLOTS_AT + i] = data[i];
    file[8 + (change >> 4)] ^= (uint8_t)(change & 8);
    const int code = mpiox_tracefile_reader_open_memory(file, bytes, &reader);
    if (code != MPIOX_OK && (code != MPIOX_E_CORRUPT || reader != NULL))
        abort();
    for (int64_t sum = 0; reader != NULL && (rows = mpiox_tracefile_reader_next(reader, 16)) > 0; sum += rows) {
        use(reader, rows);
        if (sum > (int64_t)size + MPIOX_TRACEFILE_SLOTS)
            abort(); /* more rows than bytes, and calls under way */
    }
    mpiox_tracefile_reader_free(reader);
    free(file);
    return 0;
}
