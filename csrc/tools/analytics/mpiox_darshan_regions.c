/*
 * mpiox_darshan_regions.c - which regions of a Darshan log are whole.
 *
 * Problem. Where the compressed bytes of a region end too early, libdarshan-util takes the records so far for all of
 * them, and reads the next region into the same stream: too few records, or numbers that nobody wrote, and no error.
 *
 * Algorithm. The header says where each region lies. A region that ends behind the file is cut. One that is used is
 * inflated, by the zlib under the library: it is one or more streams, and the last one ends where the region ends.
 *
 * Guarantees. A region that is called whole has the bytes that were written, by zlib's checksum. Memory does not depend
 * on the log. Logs in bzip2 or without compression are only looked at for cuts.
 *
 * Source: darshan-util, darshan-log-format.h; RFC 1950.
 */
#include "mpiox_darshan_regions.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OLD_MODULES = 16, NEW_MODULES = 64, OLD_MAP = 24, NEW_MAP = 32, COMPRESSION = 16, PIECE = 1 << 16 };
enum { MODULE_H5D = 4, MODULE_NC_VAR = 6 };
enum { STREAM_END = 1 };

/* z_stream of zlib.h. */
typedef struct zlib_stream {
    const unsigned char *next_in;
    unsigned int avail_in;
    unsigned long total_in;
    unsigned char *next_out;
    unsigned int avail_out;
    unsigned long total_out;
    const char *message;
    void *state, *allocate, *release, *opaque;
    int data_type;
    unsigned long adler, reserved;
} zlib_stream;

typedef struct zlib {
    int (*init)(zlib_stream *stream, const char *version, int bytes);
    int (*inflate)(zlib_stream *stream, int flush);
    int (*reset)(zlib_stream *stream);
    int (*end)(zlib_stream *stream);
} zlib;

/* dlsym looks into what the library is linked to, too. */
static int find_zlib(void *handle, zlib *found)
{
    const struct {
        const char *symbol;
        void *to;
    } functions[] = {
        {"inflateInit_", &found->init},
        {"inflate", &found->inflate},
        {"inflateReset", &found->reset},
        {"inflateEnd", &found->end},
    };

    for (size_t k = 0; k < sizeof(functions) / sizeof(functions[0]); k++) {
        void *symbol = dlsym(handle, functions[k].symbol);
        if (symbol == NULL)
            return -1;
        memcpy(functions[k].to, &symbol, sizeof(symbol));
    }
    return 0;
}

/* Feed one piece; 1: a stream has ended with it, 0: it goes on, -1: no bytes of zlib. */
static int feed(const zlib *functions, zlib_stream *stream, unsigned char *out, volatile int64_t *beat)
{
    int ended = 0;

    while (stream->avail_in > 0 || stream->avail_out == 0) {
        if (ended && functions->reset(stream) != 0)
            return -1;
        stream->next_out = out;
        stream->avail_out = PIECE;
        const int code = functions->inflate(stream, 0);
        ++*beat;
        ended = code == STREAM_END;
        if (code < 0 && !(stream->avail_in == 0 && stream->avail_out == PIECE)) /* nothing was left to come out */
            return -1;
        if (ended && stream->avail_in == 0)
            return 1;
        if (code < 0)
            return 0;
    }
    return ended;
}

static int is_whole(const zlib *functions, int fd, uint64_t offset, uint64_t bytes, volatile int64_t *beat)
{
    unsigned char in[PIECE], out[PIECE];
    zlib_stream stream = {0};
    int state = 0;

    if (functions->init(&stream, "1.2.0", (int)sizeof(stream)) != 0)
        return 1;
    while (bytes > 0 && state >= 0) {
        const ssize_t got = pread(fd, in, bytes < PIECE ? (size_t)bytes : PIECE, (off_t)offset);
        if (got <= 0 || (state == 1 && functions->reset(&stream) != 0)) {
            state = -1;
            break;
        }
        stream.next_in = in;
        stream.avail_in = (unsigned int)got;
        stream.avail_out = PIECE;
        state = feed(functions, &stream, out, beat);
        offset += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    functions->end(&stream);
    return state == 1;
}

/* The library's index of a module of the header, whose formats before 3.41 lack some. */
static int index_of(int at, const char *version)
{
    const int before_3_20 = strcmp(version, "3.00") == 0 || strcmp(version, "3.10") == 0;
    int index = at;

    if (before_3_20 && index >= MODULE_H5D)
        index++;
    if ((before_3_20 || strcmp(version, "3.20") == 0 || strcmp(version, "3.21") == 0) && index >= MODULE_NC_VAR)
        index++;
    return index;
}

/* Darshan writes regions one behind the other, up to the end of the file. */
static int has_gap(const uint64_t *maps, int count, int at, uint64_t file_bytes)
{
    const uint64_t end = maps[2 * at] + maps[2 * at + 1];

    for (int k = 0; k < count; k++)
        if (maps[2 * k] == end && maps[2 * k + 1] > 0)
            return 0;
    return end != file_bytes;
}

static int state_of(const zlib *functions, int fd, uint64_t file_bytes, const uint64_t *map, volatile int64_t *beat)
{
    if (map[1] == 0)
        return MPIOX_DARSHAN_WHOLE;
    if (map[0] > file_bytes || map[1] > file_bytes - map[0])
        return MPIOX_DARSHAN_CUT;
    return functions == NULL || is_whole(functions, fd, map[0], map[1], beat) ? MPIOX_DARSHAN_WHOLE
                                                                              : MPIOX_DARSHAN_DAMAGED;
}

void mpiox_darshan_regions_check(const mpiox_darshan_library *library, const char *path, uint64_t inflated,
                                 volatile int64_t *beat, mpiox_darshan_regions *found)
{
    unsigned char head[NEW_MAP + 16 * (NEW_MODULES + 1)] = {0};
    uint64_t map[2 * (NEW_MODULES + 1)] = {0}, magic = 0;
    char version[8] = "";
    struct stat info;
    zlib functions;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    memset(found, 0, sizeof(*found));
    if (fd < 0 || fstat(fd, &info) != 0 || pread(fd, head, sizeof(head), 0) <= 0) {
        if (fd >= 0)
            close(fd);
        return;
    }
    memcpy(version, head, sizeof(version) - 1);
    memcpy(&magic, head + 8, sizeof(magic));
    const int is_new = strcmp(version, "3.41") >= 0, count = is_new ? NEW_MODULES : OLD_MODULES;
    const int swap = magic >> 32 != 0; /* the magic number is small */
    memcpy(map, head + (is_new ? NEW_MAP : OLD_MAP), 16 * (size_t)(count + 1));
    for (int k = 0; swap && k < 2 * (count + 1); k++)
        map[k] = __builtin_bswap64(map[k]);
    const int can_inflate = head[COMPRESSION] == 0 && find_zlib(library->handle, &functions) == 0;
    const uint64_t bytes = (uint64_t)info.st_size;
    found->names = state_of(can_inflate ? &functions : NULL, fd, bytes, map, beat);
    for (int k = 0; k < count; k++) {
        const int index = index_of(k, version);
        if (index < MPIOX_DARSHAN_MAX_MODULES)
            found->modules[index] = state_of(can_inflate && inflated >> index & 1 ? &functions : NULL, fd, bytes,
                                             map + 2 * (k + 1), beat);
        if (index < MPIOX_DARSHAN_MAX_MODULES && found->modules[index] == MPIOX_DARSHAN_WHOLE &&
            map[2 * (k + 1) + 1] > 0 && has_gap(map, count + 1, k + 1, bytes))
            found->modules[index] = MPIOX_DARSHAN_GAP;
    }
    close(fd);
}
