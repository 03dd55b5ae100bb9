/*
 * mpiox_trace_names.c - see mpiox_trace_names.h.
 *
 * Algorithm. A hash table of texts in memory of its own, taken from the kernel: malloc() may be what called the tracer.
 *            A text is defined in a trace file when it is first used there.
 */
#include "mpiox_trace_names.h"

#include <fnmatch.h>
#include <string.h>

#include "mpiox_trace_file.h"
#include "mpiox_trace_system.h"

enum { CHUNK_BYTES = 1 << 18, FIRST_SLOTS = 1024, PATTERN_BYTES = 1024 };

typedef struct name {
    uint64_t hash;
    int32_t generation; /* of the trace file that has it, of the recording that `records` are of */
    uint32_t records[MPIOX_TRACE_NAME_RECORDS];
    char text[];
} name;

static bool keep_system;
static const char *only_these, *skip_these; /* patterns, one a line */
static name **names;                        /* by number */
static int32_t *slots, n_slots, n_names;
static char *chunk, *chunk_end;
static const char *others; /* the name that all further ones get; NULL: there is no bound */
static int64_t bytes_left;

void mpiox_trace_names_keep_system(bool keep)
{
    keep_system = keep;
}

void mpiox_trace_names_select(const char *only, const char *skip)
{
    only_these = only != NULL && only[0] != '\0' ? only : NULL;
    skip_these = skip != NULL && skip[0] != '\0' ? skip : NULL;
}

void mpiox_trace_names_bound(int64_t bytes, const char *name)
{
    bytes_left = bytes;
    others = name;
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    while (*text != '\0')
        hash = (hash ^ (uint8_t)*text++) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

static void *take(size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (chunk == NULL || (size_t)(chunk_end - chunk) < bytes) {
        const size_t all = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

        chunk = mpiox_trace_map(-1, 0, (int64_t)all);
        chunk_end = chunk != NULL ? chunk + all : NULL;
    }
    if (chunk == NULL)
        return NULL;
    void *taken = chunk;
    chunk += bytes;
    return taken;
}

static void put_slot(uint64_t hash, int32_t number)
{
    uint64_t at = hash & (uint64_t)(n_slots - 1);

    while (slots[at] != 0)
        at = (at + 1) & (uint64_t)(n_slots - 1);
    slots[at] = number;
}

/* Twice the room; what was there before stays in its chunk, which is as much again. */
static bool grow(void)
{
    const int32_t more = n_slots == 0 ? FIRST_SLOTS : n_slots * 2;
    int32_t *new_slots = mpiox_trace_map(-1, 0, (int64_t)more * (int64_t)sizeof *new_slots);
    name **new_names = mpiox_trace_map(-1, 0, (int64_t)more * (int64_t)sizeof *new_names);

    if (new_slots == NULL || new_names == NULL)
        return false;
    if (n_names > 0)
        memcpy(new_names, names, ((size_t)n_names + 1) * sizeof *names);
    mpiox_trace_unmap(slots, (int64_t)n_slots * (int64_t)sizeof *slots);
    mpiox_trace_unmap(names, (int64_t)n_slots * (int64_t)sizeof *names);
    slots = new_slots;
    names = new_names;
    n_slots = more;
    for (int32_t number = 1; number <= n_names; number++)
        put_slot(names[number]->hash, number);
    return true;
}

static int32_t find(const char *text, uint64_t hash)
{
    if (n_slots == 0)
        return 0;
    for (uint64_t at = hash & (uint64_t)(n_slots - 1); slots[at] != 0; at = (at + 1) & (uint64_t)(n_slots - 1)) {
        const int32_t number = slots[at];

        if (names[number]->hash == hash && strcmp(names[number]->text, text) == 0)
            return number;
    }
    return 0;
}

int32_t mpiox_trace_names_number(const char *text)
{
    const uint64_t hash = hash_of(text);
    int32_t number = find(text, hash);

    if (number == 0) {
        const size_t bytes = strlen(text) + 1;

        if (others != NULL && text != others && (bytes_left -= (int64_t)(sizeof(name) + bytes)) < 0)
            return mpiox_trace_names_others();
        name *made = take(sizeof *made + bytes);

        if (made == NULL || (n_names + 2 > n_slots / 2 && !grow()))
            return 0;
        made->hash = hash;
        memcpy(made->text, text, bytes);
        number = ++n_names;
        names[number] = made;
        put_slot(hash, number);
    }
    return number;
}

int32_t mpiox_trace_names_others(void)
{
    return others != NULL ? mpiox_trace_names_number(others) : 0;
}

uint32_t *mpiox_trace_names_records(int32_t number, int32_t generation)
{
    name *n = number > 0 && number <= n_names ? names[number] : NULL;

    if (n != NULL && n->generation != generation) {
        memset(n->records, 0, sizeof n->records);
        n->generation = generation;
    }
    return n != NULL ? n->records : NULL;
}

const char *mpiox_trace_names_text(int32_t number)
{
    return number > 0 && number <= n_names ? names[number]->text : NULL;
}

bool mpiox_trace_names_define(int32_t number)
{
    if (number <= 0 || number > n_names || names[number]->generation == mpiox_trace_file_generation())
        return true;
    if (!mpiox_trace_file_text(number, names[number]->text))
        return false;
    names[number]->generation = mpiox_trace_file_generation();
    return true;
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

/* A file-system type in front of a name, as MPI-IO libraries take it: "ufs:name". */
static const char *without_type(const char *text)
{
    const char *at = text;

    while (*at >= 'a' && *at <= 'z')
        at++;
    return *at == ':' && at - text >= 2 ? at + 1 : text;
}

void mpiox_trace_names_absolute(const char *given, const char *folder, char *text)
{
    char here[MPIOX_TRACE_NAME_BYTES];
    size_t used = 0;

    given = without_type(given);
    if (given[0] != '/') {
        if (folder == NULL && mpiox_trace_folder(here, sizeof here) > 0)
            folder = here;
        if (folder != NULL && folder[0] == '/') {
            used = strnlen(folder, MPIOX_TRACE_NAME_BYTES / 2);
            memcpy(text, folder, used);
            while (used > 1 && text[used - 1] == '/')
                used--;
            text[used++] = '/';
        }
    }
    while (*given != '\0' && used + 1 < MPIOX_TRACE_NAME_BYTES) {
        const bool at_start = used == 0 ? given[0] == '/' : text[used - 1] == '/';

        if (at_start && used > 0 && given[0] == '/')
            given++;
        else if (at_start && given[0] == '.' && (given[1] == '/' || (given[1] == '\0' && used > 1)))
            given += given[1] == '/' ? 2 : 1;
        else
            text[used++] = *given++;
    }
    while (used > 1 && text[used - 1] == '/')
        used--;
    text[used] = '\0';
}

static bool ends_with(const char *path, const char *end)
{
    const size_t length = strlen(path), tail = strlen(end);

    return length >= tail && strcmp(path + length - tail, end) == 0;
}

static bool matches(const char *patterns, const char *path)
{
    char pattern[PATTERN_BYTES];

    while (*patterns != '\0') {
        const size_t length = strcspn(patterns, "\n");
        if (length > 0 && length < sizeof pattern) {
            memcpy(pattern, patterns, length);
            pattern[length] = '\0';
            if (fnmatch(pattern, path, 0) == 0)
                return true;
        }
        patterns += length + (patterns[length] == '\n');
    }
    return false;
}

/* Files that MPI libraries keep for themselves, below /tmp and in memory, and beside the program's. */
static bool is_of_mpi(const char *path)
{
    static const char *const parts[] = {"/ompi.", "/openmpi-sessions", "/prte.", "/pmix.", "/pmix-", "/pmix_"};
    static const char *const begins[] = {"/dev/shm/vader_segment.", "/dev/shm/sm_segment.", "/dev/shm/open_mpi.",
                                         "/dev/shm/sem.", "/dev/shm/mpich_"};
    const char *lock = strstr(path, ".locktest.");

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *found = strstr(path, parts[i]);

        if (found != NULL && strchr(found + 1, '/') != NULL)
            return true;
    }
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(path, begins[i], strlen(begins[i])) == 0)
            return true;
    return lock != NULL && lock[strlen(".locktest.")] != '\0' &&
           lock[strspn(lock + strlen(".locktest."), "0123456789") + strlen(".locktest.")] == '\0';
}

static bool is_system(const char *path)
{
    static const char *const folders[] = {"/proc",  "/sys", "/dev",  "/etc", "/usr",  "/lib",    "/lib64",
                                          "/lib32", "/bin", "/sbin", "/run", "/boot", "/var/lib"};
    static const char *const parts[] = {"/lib/python3", "/lib64/python3", "/site-packages", "/dist-packages",
                                        "/__pycache__", ".so.",           "/pyvenv.cfg",    "/bin/python"};
    static const char *const ends[] = {".so", ".py", ".pyc", ".pth", "._pth"};

    if (keep_system)
        return false;
    if (path[0] != '/' || strcmp(path, "/") == 0)
        return true; /* a socket, a pipe; what /proc says of them */
    if (is_of_mpi(path))
        return true;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const size_t length = strlen(folders[i]);

        if (strncmp(path, folders[i], length) == 0 && (path[length] == '/' || path[length] == '\0'))
            return strncmp(path, "/dev/shm/", 9) != 0;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(path, parts[i]) != NULL)
            return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(path, ends[i]))
            return true;
    return false;
}

bool mpiox_trace_names_left_out(const char *path)
{
    if (skip_these != NULL && matches(skip_these, path))
        return true;
    return only_these != NULL ? !matches(only_these, path) : is_system(path);
}
