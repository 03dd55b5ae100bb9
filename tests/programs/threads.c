/*
 * threads.c - MPI_THREAD_MULTIPLE: several threads of each rank in MPI-IO at once.
 *
 * usage: threads PREFIX CASE...    prints one line per property on rank 0, "ok NAME" or "FAILED NAME RANKS", and exits
 * with the number of failures. Files are PREFIX.NAME. Every byte is checked, in memory and by reading the file without
 * MPI. What two threads do on one communicator is never collective, as MPI demands.
 */
#include <pthread.h>
#include <unistd.h>

#include "report.h"

enum { THREADS = 4, BLOCK = 1000, BLOCKS = 12, PATH_BYTES = 600 };

typedef struct worker {
    pthread_t thread;
    int number, problems;
    MPI_File file;
    MPI_Comm comm;
    const char *path;
    MPI_Request requests[BLOCKS];
    unsigned char buffers[BLOCKS][BLOCK];
} worker;

static worker workers[THREADS];
static pthread_barrier_t gate;
static const char *prefix;

static void note(worker *me, int fine)
{
    me->problems += !fine;
}

static const char *path_of(const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s.%s", prefix, name);
    return path;
}

static MPI_File open_on(MPI_Comm comm, const char *path)
{
    MPI_File file;

    if (MPI_File_open(comm, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return file;
}

/* Run work(&workers[i]) in THREADS threads that start together. True: nobody noted a problem. */
static int together(void *(*work)(void *))
{
    int fine = 1;

    pthread_barrier_init(&gate, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].problems = 0;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            MPI_Abort(MPI_COMM_WORLD, 4);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        fine &= workers[i].problems == 0;
    }
    pthread_barrier_destroy(&gate);
    return fine;
}

static void give_all(MPI_File file, const char *path)
{
    for (int i = 0; i < THREADS; i++) {
        workers[i].file = file;
        workers[i].path = path;
    }
}

static int moved(const MPI_Status *status, int bytes)
{
    int count = -1;

    MPI_Get_count(status, MPI_BYTE, &count);
    return count == bytes;
}

/* ---- one handle, independent access at explicit offsets ---------------------------------------------------------- */

static MPI_Offset own_block(const worker *me, int k)
{
    return (((MPI_Offset)k * ranks + rank) * THREADS + me->number) * BLOCK;
}

static void *write_and_read_blocks(void *argument)
{
    worker *me = argument;
    MPI_Status status;

    pthread_barrier_wait(&gate);
    for (int k = 0; k < BLOCKS; k++) {
        fill_from(me->buffers[k], own_block(me, k), BLOCK, 1);
        note(me,
             MPI_File_write_at(me->file, own_block(me, k), me->buffers[k], BLOCK, MPI_BYTE, &status) == MPI_SUCCESS);
        note(me, moved(&status, BLOCK));
    }
    for (int k = 0; k < BLOCKS; k++) {
        memset(me->buffers[k], 0, BLOCK);
        note(me, MPI_File_read_at(me->file, own_block(me, k), me->buffers[k], BLOCK, MPI_BYTE, &status) == MPI_SUCCESS);
        note(me, moved(&status, BLOCK) && equals_from(me->buffers[k], own_block(me, k), BLOCK, 1));
    }
    return NULL;
}

static void one_handle(void)
{
    char path[PATH_BYTES];
    MPI_File file = open_on(MPI_COMM_WORLD, path_of("one_handle", path));

    give_all(file, path);
    check("threads write and read through one handle", together(write_and_read_blocks));
    MPI_File_close(&file);
    check_file("one handle: file", path, (long long)BLOCKS * ranks * THREADS * BLOCK, 1);
}

/* ---- one handle with a view whose blocks the pieces straddle ----------------------------------------------------- */

enum { PIECE = BLOCK / 2 * 3, PIECE_TURNS = 4 };

static long long in_file(long long in_view)
{
    return (in_view / BLOCK * ranks + rank) * BLOCK + in_view % BLOCK;
}

static void *write_and_read_view(void *argument)
{
    worker *me = argument;
    unsigned char piece[PIECE], back[PIECE];

    pthread_barrier_wait(&gate);
    for (int k = 0; k < PIECE_TURNS; k++) {
        MPI_Offset at = ((MPI_Offset)k * THREADS + me->number) * PIECE;

        for (int i = 0; i < PIECE; i++)
            piece[i] = byte_at(in_file(at + i), 2);
        note(me, MPI_File_write_at(me->file, at, piece, PIECE, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        memset(back, 0, PIECE);
        note(me, MPI_File_read_at(me->file, at, back, PIECE, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        note(me, memcmp(piece, back, PIECE) == 0);
    }
    return NULL;
}

static void one_view(void)
{
    char path[PATH_BYTES];
    MPI_File file = open_on(MPI_COMM_WORLD, path_of("one_view", path));
    MPI_Datatype block, turns;

    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * ranks, &turns);
    MPI_Type_commit(&turns);
    MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, turns, "native", MPI_INFO_NULL);
    give_all(file, path);
    check("threads write and read through one view", together(write_and_read_view));
    MPI_Type_free(&block);
    MPI_Type_free(&turns);
    MPI_File_close(&file);
    check_file("one view: file", path, (long long)PIECE_TURNS * THREADS * PIECE * ranks, 2);
}

/* ---- records at the individual and at the shared pointer: any order, each whole and once ------------------------- */

static void *append_records(void *argument)
{
    worker *me = argument;
    int shared = me->comm == MPI_COMM_WORLD;
    unsigned char record[BLOCK];

    memset(record, 1 + me->number + (shared ? rank * THREADS : 0), BLOCK);
    pthread_barrier_wait(&gate);
    for (int k = 0; k < BLOCKS; k++) {
        int code = shared ? MPI_File_write_shared(me->file, record, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE)
                          : MPI_File_write(me->file, record, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);

        note(me, code == MPI_SUCCESS);
    }
    return NULL;
}

/* The file consists of BLOCKS records of each of `writers` letters. */
static int records_are_whole(const char *path, int writers)
{
    FILE *file = fopen(path, "rb");
    unsigned char record[BLOCK];
    int count[256] = {0}, fine = file != NULL, records = 0;

    while (fine && fread(record, BLOCK, 1, file) == 1) {
        for (int i = 1; i < BLOCK; i++)
            fine &= record[i] == record[0];
        count[record[0]]++;
        records++;
    }
    for (int i = 1; i <= writers; i++)
        fine &= count[i] == BLOCKS;
    if (file != NULL)
        fclose(file);
    return fine && records == writers * BLOCKS;
}

static void pointer(void)
{
    char path[PATH_BYTES], name[40];
    MPI_Offset at = -1;
    MPI_File file;

    snprintf(name, sizeof name, "pointer.%d", rank);
    file = open_on(MPI_COMM_SELF, path_of(name, path));
    give_all(file, path);
    for (int i = 0; i < THREADS; i++)
        workers[i].comm = MPI_COMM_SELF;
    check("threads write at the individual pointer", together(append_records));
    MPI_File_get_position(file, &at);
    check("individual pointer: position", at == (MPI_Offset)THREADS * BLOCKS * BLOCK);
    MPI_File_close(&file);
    check("individual pointer: records", records_are_whole(path, THREADS));
}

static void shared_pointer(void)
{
    char path[PATH_BYTES];
    MPI_File file = open_on(MPI_COMM_WORLD, path_of("shared_pointer", path));

    give_all(file, path);
    for (int i = 0; i < THREADS; i++)
        workers[i].comm = MPI_COMM_WORLD;
    check("threads write at the shared pointer", together(append_records));
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    check("shared pointer: records", rank != 0 || records_are_whole(path, THREADS * ranks));
}

/* ---- atomic mode: threads and ranks write and read the same pieces, and each read sees one write ----------------- */

enum { ATOMIC_PIECE = 64, ATOMIC_BYTES = 8 * BLOCK };

static void *overlap(void *argument)
{
    worker *me = argument;
    unsigned char *data = malloc(ATOMIC_BYTES);

    pthread_barrier_wait(&gate);
    for (int k = 0; k < 3 * BLOCKS; k++) {
        int fine = 1;

        if (me->number % 2 == 0) {
            memset(data, 1 + rank * THREADS + me->number, ATOMIC_BYTES);
            fine = MPI_File_write_at(me->file, 0, data, ATOMIC_BYTES, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
        } else {
            fine = MPI_File_read_at(me->file, 0, data, ATOMIC_BYTES, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
            for (int i = 1; i < ATOMIC_BYTES; i++)
                fine &= data[i] == data[0];
        }
        note(me, fine);
    }
    free(data);
    return NULL;
}

static void atomic_mode(void)
{
    char path[PATH_BYTES];
    MPI_File file = open_on(MPI_COMM_WORLD, path_of("atomic", path));
    unsigned char zeros[ATOMIC_BYTES] = {0};
    MPI_Datatype pieces;

    MPI_Type_vector(ATOMIC_BYTES / ATOMIC_PIECE, ATOMIC_PIECE, 2 * ATOMIC_PIECE, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    MPI_File_set_view(file, 0, MPI_BYTE, pieces, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 0, zeros, ATOMIC_BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_set_atomicity(file, 1);
    give_all(file, path);
    check("atomic mode holds between threads", together(overlap));
    MPI_Type_free(&pieces);
    MPI_File_close(&file);
}

/* ---- several handles --------------------------------------------------------------------------------------------- */

/* Opened, used and closed by its thread alone, many times; all threads and ranks share the file. */
static void *own_handles(void *argument)
{
    worker *me = argument;
    unsigned char back[BLOCK];

    pthread_barrier_wait(&gate);
    for (int k = 0; k < BLOCKS; k++) {
        MPI_File file = open_on(me->comm, me->path);

        fill_from(me->buffers[0], own_block(me, k), BLOCK, 3);
        note(me, MPI_File_write_at_all(file, own_block(me, k), me->buffers[0], BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) ==
                     MPI_SUCCESS);
        note(me, MPI_File_read_at(file, own_block(me, k), back, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        note(me, equals_from(back, own_block(me, k), BLOCK, 3));
        note(me, MPI_File_close(&file) == MPI_SUCCESS && file == MPI_FILE_NULL);
    }
    return NULL;
}

static void dup_comms(MPI_Comm from)
{
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(from, &workers[i].comm);
}

static void free_comms(void)
{
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&workers[i].comm);
}

static void open_close(void)
{
    char path[PATH_BYTES];

    path_of("open_close", path);
    dup_comms(MPI_COMM_SELF);
    give_all(MPI_FILE_NULL, path);
    check("threads open and close at once", together(own_handles));
    free_comms();
    check_file("open and close: file", path, (long long)BLOCKS * ranks * THREADS * BLOCK, 3);
}

/* ---- collectives on different files from different threads ------------------------------------------------------- */

enum { TURN = 96, TURNS = 200 };

static MPI_Datatype turns_type;

static MPI_File open_turns(MPI_Comm comm, const char *path)
{
    MPI_File file = open_on(comm, path);

    MPI_File_set_view(file, (MPI_Offset)rank * TURN, MPI_BYTE, turns_type, "native", MPI_INFO_NULL);
    return file;
}

static void collective_round(worker *me, unsigned char *data, unsigned char *back, MPI_File file)
{
    const int bytes = TURN * TURNS;
    MPI_Status status;

    note(me, MPI_File_seek(file, 0, MPI_SEEK_SET) == MPI_SUCCESS);
    note(me, MPI_File_write_all(file, data, bytes, MPI_BYTE, &status) == MPI_SUCCESS && moved(&status, bytes));
    memset(back, 0, (size_t)bytes);
    note(me, MPI_File_read_at_all(file, 0, back, bytes, MPI_BYTE, &status) == MPI_SUCCESS && moved(&status, bytes));
    note(me, memcmp(data, back, (size_t)bytes) == 0);
}

/* On the thread's file, or, when it has none, on one that is opened and closed each time. */
static void *collective_rounds(void *argument)
{
    worker *me = argument;
    unsigned char *data = malloc(TURN * TURNS), *back = malloc(TURN * TURNS);
    char path[PATH_BYTES + 8];

    snprintf(path, sizeof path, "%s.%d", me->path, me->number);
    for (int i = 0; i < TURN * TURNS; i++)
        data[i] = byte_at(((long long)(i / TURN) * ranks + rank) * TURN + i % TURN, 10 + me->number);
    pthread_barrier_wait(&gate);
    for (int k = 0; k < 3; k++) {
        MPI_File file = me->file;

        if (file != MPI_FILE_NULL) {
            collective_round(me, data, back, file);
            continue;
        }
        file = open_turns(me->comm, path);
        collective_round(me, data, back, file);
        note(me, MPI_File_close(&file) == MPI_SUCCESS);
    }
    free(data);
    free(back);
    return NULL;
}

static void collectives_on(const char *name, int open_first)
{
    char path[PATH_BYTES], part[PATH_BYTES + 8];

    path_of(name, path);
    dup_comms(MPI_COMM_WORLD);
    give_all(MPI_FILE_NULL, path);
    MPI_Type_vector(TURNS, TURN, TURN * ranks, MPI_BYTE, &turns_type);
    MPI_Type_commit(&turns_type);
    for (int i = 0; open_first && i < THREADS; i++) {
        snprintf(part, sizeof part, "%s.%d", path, i);
        workers[i].file = open_turns(workers[i].comm, part);
    }
    check("threads in collectives on files of their own", together(collective_rounds));
    for (int i = 0; open_first && i < THREADS; i++)
        check("close", MPI_File_close(&workers[i].file) == MPI_SUCCESS);
    free_comms();
    MPI_Type_free(&turns_type);
    for (int i = 0; i < THREADS; i++) {
        snprintf(part, sizeof part, "%s.%d", path, i);
        check_file("collectives: file", part, (long long)TURN * TURNS * ranks, 10 + i);
    }
}

static void collectives(void)
{
    collectives_on("collectives", 1);
}

static void collective_opens(void)
{
    collectives_on("collective_opens", 0);
}

/* Thread 0 of each rank is in collectives on the handle through which the others write independently. */
static void *mixed_work(void *argument)
{
    worker *me = argument;

    pthread_barrier_wait(&gate);
    for (int k = 0; k < BLOCKS; k++) {
        MPI_Offset at = own_block(me, k);
        MPI_Status status;
        int code;

        fill_from(me->buffers[k], at, BLOCK, 4);
        if (me->number == 0)
            code = MPI_File_write_at_all(me->file, at, me->buffers[k], BLOCK, MPI_BYTE, &status);
        else
            code = MPI_File_write_at(me->file, at, me->buffers[k], BLOCK, MPI_BYTE, &status);
        note(me, code == MPI_SUCCESS && moved(&status, BLOCK));
    }
    return NULL;
}

static void mixed(void)
{
    char path[PATH_BYTES];
    MPI_File file = open_on(MPI_COMM_WORLD, path_of("mixed", path));

    give_all(file, path);
    check("one thread in collectives, others independent, one handle", together(mixed_work));
    MPI_File_close(&file);
    check_file("mixed: file", path, (long long)BLOCKS * ranks * THREADS * BLOCK, 4);
}

/* ---- nonblocking: started by one thread, completed by another ---------------------------------------------------- */

static int writing;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static int queued[THREADS];

static void hand_over(int number)
{
    pthread_mutex_lock(&queue_lock);
    queued[number]++;
    pthread_cond_broadcast(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
}

static void wait_for(int number, int count)
{
    pthread_mutex_lock(&queue_lock);
    while (queued[number] < count)
        pthread_cond_wait(&queue_filled, &queue_lock);
    pthread_mutex_unlock(&queue_lock);
}

static void start_operations(worker *me)
{
    for (int k = 0; k < BLOCKS; k++) {
        MPI_Offset at = own_block(me, k);
        int code;

        if (writing) {
            fill_from(me->buffers[k], at, BLOCK, 5);
            code = MPI_File_iwrite_at(me->file, at, me->buffers[k], BLOCK, MPI_BYTE, &me->requests[k]);
        } else {
            memset(me->buffers[k], 0, BLOCK);
            code = MPI_File_iread_at(me->file, at, me->buffers[k], BLOCK, MPI_BYTE, &me->requests[k]);
        }
        note(me, code == MPI_SUCCESS);
        hand_over(me->number);
    }
}

/* Odd threads complete what the even ones begin, by MPI_Wait or by polling. */
static void *start_or_complete(void *argument)
{
    worker *me = argument, *other = &workers[me->number - 1];

    pthread_barrier_wait(&gate);
    if (me->number % 2 == 0) {
        start_operations(me);
        return NULL;
    }
    for (int k = 0; k < BLOCKS; k++) {
        MPI_Status status;
        int done = 0, code = MPI_SUCCESS;

        wait_for(other->number, k + 1);
        if (me->number == 1)
            code = MPI_Wait(&other->requests[k], &status);
        while (me->number != 1 && code == MPI_SUCCESS && !done)
            code = MPI_Test(&other->requests[k], &done, &status);
        note(me, code == MPI_SUCCESS && moved(&status, BLOCK) && other->requests[k] == MPI_REQUEST_NULL);
        note(me, writing || equals_from(other->buffers[k], own_block(other, k), BLOCK, 5));
    }
    return NULL;
}

static int pass(void *(*work)(void *), int is_writing)
{
    writing = is_writing;
    memset(queued, 0, sizeof queued);
    return together(work);
}

static void nonblocking(void)
{
    char path[PATH_BYTES];
    MPI_File file = open_on(MPI_COMM_WORLD, path_of("nonblocking", path));

    MPI_File_set_size(file, (MPI_Offset)BLOCKS * ranks * THREADS * BLOCK);
    give_all(file, path);
    check("iwrite_at completed by another thread", pass(start_or_complete, 1));
    check("iread_at completed by another thread", pass(start_or_complete, 0));
    MPI_File_close(&file);
}

static void *start_only(void *argument)
{
    pthread_barrier_wait(&gate);
    start_operations(argument);
    return NULL;
}

static int complete_all(void)
{
    int fine = 1;

    for (int i = 0; i < THREADS; i++) {
        MPI_Status statuses[BLOCKS];

        fine &= MPI_Waitall(BLOCKS, workers[i].requests, statuses) == MPI_SUCCESS;
        for (int k = 0; k < BLOCKS; k++)
            fine &= moved(&statuses[k], BLOCK) &&
                    (writing || equals_from(workers[i].buffers[k], own_block(&workers[i], k), BLOCK, 5));
    }
    return fine;
}

static void waitall(void)
{
    char path[PATH_BYTES];
    MPI_File file = open_on(MPI_COMM_WORLD, path_of("waitall", path));

    give_all(file, path);
    check("iwrite_at by four threads", pass(start_only, 1));
    check("their MPI_Waitall by the main thread", complete_all());
    check("iread_at by four threads", pass(start_only, 0));
    check("their MPI_Waitall and data", complete_all());
    MPI_File_close(&file);
    check_file("waitall: file", path, (long long)BLOCKS * ranks * THREADS * BLOCK, 5);
}

/* Nonblocking collectives: each thread its own file and communicator, completed by the main thread. */
static void *start_collective(void *argument)
{
    worker *me = argument;
    MPI_Offset at = (MPI_Offset)rank * BLOCK;
    int code;

    pthread_barrier_wait(&gate);
    if (writing) {
        fill_from(me->buffers[0], at, BLOCK, 20 + me->number);
        code = MPI_File_iwrite_at_all(me->file, at, me->buffers[0], BLOCK, MPI_BYTE, &me->requests[0]);
    } else {
        memset(me->buffers[0], 0, BLOCK);
        code = MPI_File_iread_at_all(me->file, at, me->buffers[0], BLOCK, MPI_BYTE, &me->requests[0]);
    }
    note(me, code == MPI_SUCCESS);
    return NULL;
}

static int complete_collectives(void)
{
    int fine = 1;

    for (int i = THREADS - 1; i >= 0; i--) {
        MPI_Status status;

        fine &= MPI_Wait(&workers[i].requests[0], &status) == MPI_SUCCESS && moved(&status, BLOCK);
        fine &= writing || equals_from(workers[i].buffers[0], (long long)rank * BLOCK, BLOCK, 20 + i);
    }
    return fine;
}

static void icollectives(void)
{
    char path[THREADS][PATH_BYTES];

    dup_comms(MPI_COMM_WORLD);
    for (int i = 0; i < THREADS; i++) {
        char name[40];

        snprintf(name, sizeof name, "icollectives.%d", i);
        workers[i].file = open_on(workers[i].comm, path_of(name, path[i]));
    }
    check("iwrite_at_all by four threads", pass(start_collective, 1));
    check("completed by the main thread", complete_collectives());
    check("iread_at_all by four threads", pass(start_collective, 0));
    check("completed with the right data", complete_collectives());
    for (int i = 0; i < THREADS; i++) {
        MPI_File_close(&workers[i].file);
        check_file("icollectives: file", path[i], (long long)ranks * BLOCK, 20 + i);
    }
    free_comms();
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"one_handle", one_handle},
    {"one_view", one_view},
    {"pointer", pointer},
    {"shared_pointer", shared_pointer},
    {"atomic", atomic_mode},
    {"open_close", open_close},
    {"collectives", collectives},
    {"collective_opens", collective_opens},
    {"mixed", mixed},
    {"nonblocking", nonblocking},
    {"waitall", waitall},
    {"icollectives", icollectives},
};

int main(int argc, char **argv)
{
    int threads, known = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (threads < MPI_THREAD_MULTIPLE) {
        if (rank == 0)
            puts("no threads");
        MPI_Finalize();
        return 0;
    }
    prefix = argv[1];
    for (int i = 2; i < argc; i++) {
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            if (strcmp(argv[i], cases[k].name) == 0) {
                cases[k].run();
                known++;
            }
        }
    }
    check("every case is known", argc > 2 && known == argc - 2);
    MPI_Finalize();
    return failures;
}
