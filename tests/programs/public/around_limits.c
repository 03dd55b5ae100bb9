/*
 * around_limits.c - every call of MPI-IO with offsets, pieces, holes and totals around 2^31 and 2^32.
 *
 * Reported as open-mpi/ompi #14379 (an offset in a view with long pieces), pmodels/mpich #2886 to #2888 (pieces near
 * 2 GiB), diatomic/diy #75 and others of the kind: a number is narrowed to an int in one of many calls.
 *
 * far:         few bytes across a limit, by each data access (explicit offset, individual and shared pointer; blocking,
 *              nonblocking, split; large counts where there are), through each kind of view. The file is sparse.
 *              Checked: bytes where they belong in the file, bytes read back, statuses, file pointers, byte offsets.
 * sizes:       set_size, get_size, seeking from each place, the end of views; few bytes.
 * preallocate: the space is really taken.
 * totals:      each data access moves as many bytes as a limit says, in one call, from and to addresses that share
 *              little memory but around the limits.
 *
 * usage: around_limits GROUP,GROUP... FILE LIMIT,LIMIT... [STEP]
 *        STEP: of totals every STEPth data access, from the first on for the first limit, the second for the second...
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../codes/codes.h"

enum { BYTES = 40, BEFORE = 16, HOLE = 24, MIB = 1 << 20, PERIOD = (16 << 20) + 4096, WINDOW = 64 * 1024 };

typedef enum pointer { NONE, INDIVIDUAL, COMMON } pointer;
typedef enum way {
    AT,
    AT_ALL,
    LATER_AT,
    LATER_AT_ALL,
    AT_ALL_SPLIT,
    POINTER,
    POINTER_ALL,
    LATER,
    LATER_ALL,
    POINTER_SPLIT,
    SHARED,
    LATER_SHARED,
    ORDERED,
    ORDERED_SPLIT,
    WAYS
} way;
static const char *const WAY_NAMES[WAYS] = {
    "at",      "at_all",       "nonblocking at",  "nonblocking at_all", "at_all_begin", "at the pointer",
    "all",     "nonblocking",  "nonblocking all", "all_begin",          "shared",       "nonblocking shared",
    "ordered", "ordered_begin"};

/* PLAIN: no view. SHIFTED: displacement just below the limit. PIECES: of `limit` bytes, with holes of HOLE bytes.
 * HOLES: pieces of BEFORE bytes that begin every `limit` bytes. ETYPES: of 8 bytes, `limit` of them. APART: no view,
 * two halves of the memory are `limit` bytes apart. */
typedef enum view { PLAIN, SHIFTED, PIECES, HOLES, ETYPES, APART, VIEWS } view;
static const char *const VIEW_NAMES[VIEWS] = {"no view", "displacement", "pieces", "holes", "etypes", "memory"};

typedef struct call {
    MPI_File file;
    way way;
    int write, large; /* large: by the function with _c */
    MPI_Offset at;    /* in etypes */
    char *data;
    MPI_Count count;
    MPI_Datatype type;
    MPI_Status *status;
} call;

typedef struct scene { /* the file as it is open, and where the ranks' bytes are in the stream of its view */
    MPI_File file;
    int fd;
    view view;
    MPI_Offset limit, etype, first, own, bytes, all;
    char *memory;
} scene;

static const char *path;
static char now[120]; /* what is being checked */
static int wrong, checks, seed;

#define NUMBER int
#define FORM(name) name
#include "around_limits_calls.h"
#if MPI_VERSION >= 4
#define NUMBER MPI_Count
#define FORM(name) name##_c
#include "around_limits_calls.h"
#endif

static void expect(int fine, const char *what)
{
    checks++;
    if (fine)
        return;
    wrong++;
    fprintf(stderr, "rank %d: %s: %s\n", rank, now, what);
}

/* The byte at a position of the stream; those of other calls differ. Memory repeats it: see addresses(). */
static char value(MPI_Offset position)
{
    return (char)(1 + (position % PERIOD * 7 + seed * 31) % 251);
}

static MPI_Datatype run_of(MPI_Offset bytes)
{
    const int lengths[2] = {(int)(bytes / MIB), (int)(bytes % MIB)};
    const MPI_Aint begins[2] = {0, (MPI_Aint)(bytes - bytes % MIB)};
    MPI_Datatype block, run;

    MPI_Type_contiguous(MIB, MPI_BYTE, &block);
    MPI_Type_create_struct(2, lengths, begins, (MPI_Datatype[2]){block, MPI_BYTE}, &run);
    MPI_Type_commit(&run);
    MPI_Type_free(&block);
    return run;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

static MPI_Offset in_file(const scene *s, MPI_Offset position)
{
    switch (s->view) {
    case SHIFTED:
        return s->limit - BEFORE + position;
    case PIECES:
        return position / s->limit * (s->limit + HOLE) + position % s->limit;
    case HOLES:
        return position / BEFORE * s->limit + position % BEFORE;
    default:
        return position;
    }
}

static void set_view(const scene *s)
{
    const MPI_Offset displacement = s->view == SHIFTED ? s->limit - BEFORE : 0;
    MPI_Datatype run, type = MPI_BYTE, etype = MPI_BYTE;
    int code;

    if (s->view == PIECES || s->view == HOLES) {
        run = run_of(s->view == PIECES ? s->limit : BEFORE);
        MPI_Type_create_resized(run, 0, (MPI_Aint)(s->view == PIECES ? s->limit + HOLE : s->limit), &type);
        MPI_Type_commit(&type);
        MPI_Type_free(&run);
    } else if (s->view == ETYPES) {
        type = etype = MPI_DOUBLE;
    }
    code = MPI_File_set_view(s->file, displacement, etype, type, "native", MPI_INFO_NULL);
    expect(code == MPI_SUCCESS, "MPI_File_set_view: an error");
    if (type != etype)
        MPI_Type_free(&type);
}

static scene begin(view v, MPI_Offset limit)
{
    scene s = {.view = v, .limit = limit, .etype = v == ETYPES ? sizeof(double) : 1, .bytes = BYTES};
    const MPI_Offset around = v == PIECES || v == PLAIN ? limit : v == ETYPES ? limit * s.etype : BEFORE;

    need(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &s.file) == MPI_SUCCESS,
         "MPI_File_open: an error");
    s.fd = open(path, O_RDWR);
    need(s.fd >= 0, "open: an error");
    s.first = (around - BEFORE) / s.etype * s.etype;
    s.all = (MPI_Offset)ranks * BYTES;
    snprintf(now, sizeof now, "%lld, %s", (long long)limit, VIEW_NAMES[v]);
    set_view(&s);
    return s;
}

static void end(scene *s)
{
    close(s->fd);
    MPI_File_close(&s->file);
    if (rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- one data access --------------------------------------------------------------------------------------------- */

static pointer pointer_of(way w)
{
    return w >= SHARED ? COMMON : w >= POINTER ? INDIVIDUAL : NONE;
}

static int carry_out(const call *a)
{
#if MPI_VERSION >= 4
    if (a->large)
        return access_by_c(a);
#endif
    return access_by(a);
}

static int in_turns(const call *a)
{
    int code = MPI_SUCCESS;

    for (int turn = 0; turn < ranks; turn++) {
        if (turn == rank)
            code = carry_out(a);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return code;
}

static void check_status(MPI_Status *status, MPI_Offset bytes)
{
    MPI_Count elements = -1;
    int count = -1;

    MPI_Get_elements_x(status, MPI_BYTE, &elements);
    expect(elements == bytes, "MPI_Get_elements_x: another number");
    MPI_Get_count(status, MPI_BYTE, &count);
    expect(count == (bytes <= 2147483647 ? (int)bytes : MPI_UNDEFINED), "MPI_Get_count: another number");
#if MPI_VERSION >= 4
    MPI_Get_count_c(status, MPI_BYTE, &elements);
    expect(elements == bytes, "MPI_Get_count_c: another number");
#endif
}

/* The access of this rank, and what the call says of it. */
static void perform(const scene *s, call *a)
{
    const pointer moved = pointer_of(a->way);
    MPI_Offset individual = -1, common = -1, is = -1;
    MPI_Status status;
    int code;

    snprintf(now, sizeof now, "%lld, %s, %s %s%s", (long long)s->limit, VIEW_NAMES[s->view],
             a->write ? "write" : "read", WAY_NAMES[a->way], a->large ? " _c" : "");
    a->status = &status;
    a->at = s->own / s->etype;
    MPI_File_seek(s->file, moved == INDIVIDUAL ? a->at : 1, MPI_SEEK_SET);
    MPI_File_seek_shared(s->file, moved == COMMON ? s->first / s->etype : 2, MPI_SEEK_SET);
    MPI_File_get_position(s->file, &individual);
    expect(individual == (moved == INDIVIDUAL ? a->at : 1), "MPI_File_seek and get_position: another position");
    code = a->way == SHARED || a->way == LATER_SHARED ? in_turns(a) : carry_out(a);
    expect(code == MPI_SUCCESS, "an error");
    if (code == MPI_SUCCESS)
        check_status(&status, s->bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_position(s->file, &is);
    expect(is == individual + (moved == INDIVIDUAL ? s->bytes / s->etype : 0),
           "MPI_File_get_position: another position");
    MPI_File_get_position_shared(s->file, &common);
    expect(common == (moved == COMMON ? (s->first + s->all) / s->etype : 2),
           "MPI_File_get_position_shared: another position");
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- far --------------------------------------------------------------------------------------------------------- */

static char *at_memory(const scene *s, int i)
{
    return s->memory + (s->view == APART && i >= BYTES / 2 ? s->limit : 0) + i;
}

static void check_in_file(const scene *s)
{
    int fine = 1;

    MPI_File_sync(s->file);
    for (int i = 0; i < BYTES; i++) {
        char found = 0;

        fine &= pread(s->fd, &found, 1, (off_t)in_file(s, s->own + i)) == 1 && found == value(s->own + i);
    }
    expect(fine, "wrong bytes in the file");
}

static void both_ways(scene *s, way w, int large, MPI_Datatype type)
{
    call a = {.file = s->file, .way = w, .large = large, .write = 1, .data = s->memory, .type = type};
    int fine = 1;

    a.count = s->view == APART ? 1 : type == MPI_BYTE ? BYTES : BYTES / 8;
    seed++;
    s->own = s->first + (pointer_of(w) == COMMON ? rank : (rank + (int)w) % ranks) * BYTES;
    for (int i = 0; i < BYTES; i++)
        *at_memory(s, i) = value(s->own + i);
    perform(s, &a);
    check_in_file(s);
    for (int i = 0; i < BYTES; i++)
        *at_memory(s, i) = 0;
    a.write = 0;
    perform(s, &a);
    for (int i = 0; i < BYTES; i++)
        fine &= *at_memory(s, i) == value(s->own + i);
    expect(fine, "wrong bytes read");
}

static void far(view v, MPI_Offset limit)
{
    const size_t room = (size_t)limit + 4096;
    MPI_Datatype type = v == ETYPES ? MPI_DOUBLE : MPI_BYTE;
    scene s = begin(v, limit);
    MPI_Offset place = -1;

    s.memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(s.memory != MAP_FAILED, "no addresses");
    if (v == APART) {
        MPI_Type_create_hvector(2, BYTES / 2, (MPI_Aint)(limit + BYTES / 2), MPI_BYTE, &type);
        MPI_Type_commit(&type);
    }
    for (int i = 0; i < BYTES; i += (int)s.etype) {
        MPI_File_get_byte_offset(s.file, (s.first + i) / s.etype, &place);
        expect(place == in_file(&s, s.first + i), "MPI_File_get_byte_offset: another offset");
    }
    for (int large = 0; large <= (MPI_VERSION >= 4); large++) {
        for (int w = 0; w < WAYS; w++)
            both_ways(&s, (way)w, large, type);
    }
    if (v == APART)
        MPI_Type_free(&type);
    munmap(s.memory, room);
    end(&s);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static void expect_size(const scene *s, MPI_Offset bytes, const char *what)
{
    struct stat seen;
    MPI_Offset size = -1;

    MPI_File_sync(s->file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(s->file, &size);
    expect(size == bytes, what);
    expect(fstat(s->fd, &seen) == 0 && seen.st_size == bytes, "another size of the file");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void expect_seek(const scene *s, MPI_Offset offset, int whence, MPI_Offset position, const char *what)
{
    MPI_Offset is = -1;

    expect(MPI_File_seek(s->file, offset, whence) == MPI_SUCCESS &&
               MPI_File_get_position(s->file, &is) == MPI_SUCCESS && is == position,
           what);
    expect(MPI_File_seek_shared(s->file, offset, whence) == MPI_SUCCESS &&
               MPI_File_get_position_shared(s->file, &is) == MPI_SUCCESS && is == position,
           "the same of the shared pointer");
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Through the view the file ends where its bytes before the limit end. */
static void sizes(view v, MPI_Offset limit)
{
    scene s = begin(v, limit);
    const MPI_Offset reach = v == HOLES ? 4 * BEFORE : limit; /* ROMIO walks through all pieces before it */
    MPI_Offset end_of_view;

    s.first = s.first < 3 * BEFORE ? 3 * BEFORE : s.first;
    expect(MPI_File_set_size(s.file, in_file(&s, s.first)) == MPI_SUCCESS, "MPI_File_set_size: an error");
    expect_size(&s, in_file(&s, s.first), "MPI_File_get_size: another size");
    end_of_view = s.first / s.etype;
    expect_seek(&s, 0, MPI_SEEK_END, end_of_view, "MPI_SEEK_END: another position");
    expect_seek(&s, -1, MPI_SEEK_END, end_of_view - 1, "MPI_SEEK_END: another position before the end");
    expect_seek(&s, reach, MPI_SEEK_SET, reach, "MPI_SEEK_SET: another position");
    expect_seek(&s, reach, MPI_SEEK_CUR, 2 * reach, "MPI_SEEK_CUR: another position");
    expect_seek(&s, 1 - reach, MPI_SEEK_CUR, reach + 1, "MPI_SEEK_CUR: another position backwards");
    if (rank == 0)
        MPI_File_write_at(s.file, end_of_view + 3, &s, (int)s.etype, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_size(&s, in_file(&s, (end_of_view + 4) * s.etype - 1) + 1, "another size behind a write");
    expect(MPI_File_set_size(s.file, limit - 1) == MPI_SUCCESS, "MPI_File_set_size: an error in shrinking");
    expect_size(&s, limit - 1, "MPI_File_get_size: another size of the shrunk file");
    end(&s);
}

static void preallocate(MPI_Offset limit)
{
    scene s = begin(PLAIN, limit);
    struct stat seen;
    char found = 0;

    if (rank == 0)
        need(pwrite(s.fd, "x", 1, 5) == 1, "pwrite");
    MPI_Barrier(MPI_COMM_WORLD);
    expect(MPI_File_preallocate(s.file, limit) == MPI_SUCCESS, "MPI_File_preallocate: an error");
    expect_size(&s, limit, "MPI_File_preallocate: another size");
    expect(fstat(s.fd, &seen) == 0 && seen.st_blocks * 512 >= limit, "MPI_File_preallocate: space is missing");
    expect(pread(s.fd, &found, 1, 5) == 1 && found == 'x', "MPI_File_preallocate: a byte is lost");
    MPI_Barrier(MPI_COMM_WORLD);
    end(&s);
}

/* ---- totals ------------------------------------------------------------------------------------------------------ */

static int map_shared(char *at, int memory)
{
    return mmap(at, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0) == at;
}

/* Windows of addresses with memory of their own: where a count goes wrong. The rest repeats PERIOD bytes. */
static MPI_Offset window(int i, MPI_Offset bytes)
{
    const MPI_Offset ends[] = {0x7fff0000, 0x80000000 - WINDOW / 2, 0x100000000 - WINDOW / 2, bytes - WINDOW / 2};

    return ends[i] / 4096 * 4096;
}

enum { WINDOWS = 4 };

/* Addresses of `bytes` bytes, and WINDOW more. */
static char *addresses(MPI_Offset bytes)
{
    const size_t room = (size_t)(bytes + WINDOW + PERIOD);
    const int memory = memfd_create("around_limits", 0);
    char *start = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int fine = start != MAP_FAILED && memory >= 0 && ftruncate(memory, PERIOD) == 0;

    for (MPI_Offset at = 0; fine && at < bytes + WINDOW; at += PERIOD)
        fine = map_shared(start + at, memory);
    for (int i = 0; fine && i < WINDOWS; i++) {
        char *own = start + window(i, bytes);

        if (window(i, bytes) <= bytes)
            fine = mmap(own, WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == own;
    }
    need(fine, "no addresses");
    close(memory);
    return start;
}

/* Everything that can differ: one period, and the windows. */
static int each_byte(char *memory, MPI_Offset bytes, void (*one)(char *, MPI_Offset, MPI_Offset, int *))
{
    int fine = 1;

    one(memory, 0, PERIOD, &fine);
    for (int i = 0; i < WINDOWS; i++) {
        const MPI_Offset at = window(i, bytes), left = bytes - at;

        if (left > 0)
            one(memory + at, at, left < WINDOW ? left : WINDOW, &fine);
    }
    return fine;
}

static void fill(char *data, MPI_Offset position, MPI_Offset bytes, int *fine)
{
    (void)fine;
    for (MPI_Offset i = 0; i < bytes; i++)
        data[i] = value(position + i);
}

static void clear(char *data, MPI_Offset position, MPI_Offset bytes, int *fine)
{
    (void)position;
    (void)fine;
    memset(data, 0, (size_t)bytes);
}

static void compare(char *data, MPI_Offset position, MPI_Offset bytes, int *fine)
{
    for (MPI_Offset i = 0; i < bytes; i++)
        *fine &= data[i] == value(position + i);
}

/* Some bytes of every MiB, and the windows. */
static void check_long(const scene *s)
{
    static char found[WINDOW];
    int fine = 1;

    MPI_File_sync(s->file);
    for (MPI_Offset at = 0; rank == 0 && at + 4096 <= s->bytes; at += MIB) {
        fine &= pread(s->fd, found, 4096, (off_t)at) == 4096;
        compare(found, at, 4096, &fine);
    }
    for (int i = 0; rank == 0 && i < WINDOWS; i++) {
        const MPI_Offset at = window(i, s->bytes), left = s->bytes - at, n = left < WINDOW ? left : WINDOW;

        if (left > 0) {
            fine &= pread(s->fd, found, (size_t)n, (off_t)at) == n;
            compare(found, at, n, &fine);
        }
    }
    if (rank > 0) {
        fine = pread(s->fd, found, BYTES, (off_t)s->own) == BYTES;
        compare(found, s->own, BYTES, &fine);
    }
    expect(fine, "wrong bytes in the file");
}

static void each_own(const scene *s, void (*one)(char *, MPI_Offset, MPI_Offset, int *), const char *what)
{
    int fine = 1;

    if (rank == 0)
        fine = each_byte(s->memory, s->bytes, one);
    else
        one(s->memory, s->own, BYTES, &fine);
    expect(fine, what);
}

/* Rank 0 moves `limit` bytes, the others BYTES behind them. */
static void totals(MPI_Offset limit, int first, int step)
{
    const int countable = limit <= 2147483647;
    MPI_Datatype run = run_of(limit);
    scene s = begin(PLAIN, limit);

    s.first = 0;
    s.own = rank == 0 ? 0 : limit + (rank - 1) * BYTES;
    s.bytes = rank == 0 ? limit : BYTES;
    s.all = limit + (ranks - 1) * BYTES;
    s.memory = addresses(s.bytes);
    for (int large = 0; large <= (MPI_VERSION >= 4); large++) {
        for (int w = first; w < WAYS; w += step) {
            call a = {.file = s.file, .way = (way)w, .large = large, .write = 1, .data = s.memory};
            const int bytes = rank > 0 || large || countable;

            a.type = bytes ? MPI_BYTE : run;
            a.count = bytes ? s.bytes : 1;
            seed++;
            each_own(&s, fill, "");
            perform(&s, &a);
            check_long(&s);
            each_own(&s, clear, "");
            a.write = 0;
            perform(&s, &a);
            each_own(&s, compare, "wrong bytes read");
        }
    }
    expect_size(&s, s.all, "another size of the file");
    munmap(s.memory, (size_t)(s.bytes + WINDOW + PERIOD));
    MPI_Type_free(&run);
    end(&s);
}

static void groups(const char *names, MPI_Offset limit, int first, int step)
{
    for (view v = PLAIN; strstr(names, "far") != NULL && v < VIEWS; v++)
        far(v, limit);
    for (view v = PLAIN; strstr(names, "sizes") != NULL && v < APART; v++)
        sizes(v, limit);
    if (strstr(names, "preallocate") != NULL)
        preallocate(limit);
    if (strstr(names, "totals") != NULL)
        totals(limit, first, step);
}

int main(int argc, char **argv)
{
    int sums[2], step, first = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(argc >= 4, "usage: around_limits GROUP,GROUP... FILE LIMIT,LIMIT... [STEP]");
    path = argv[2];
    step = argc > 4 ? argument(argc, argv, 4, 1) : 1;
    for (char *at = argv[3]; *at != '\0'; at += *at == ',', first++)
        groups(argv[1], strtoll(at, &at, 10), first % step, step);
    MPI_Allreduce((int[2]){wrong, checks}, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    need(sums[1] > 0, "nothing was checked");
    if (rank == 0)
        printf("%d of %d checks failed%s\n", sums[0], sums[1], sums[0] == 0 ? ": verified" : "");
    MPI_Finalize();
    return sums[0] > 0;
}
