/*
 * requests.c - nonblocking access: requests of many kinds together, freed, cancelled, looked at, completed elsewhere.
 */
#include "strangers.h"

#include <pthread.h>

enum { BLOCK = 100 * 1024, SMALL = 64 };

static int no_query(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_BYTE, 7);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = 0;
    return MPI_SUCCESS;
}

static int no_free(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int no_cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

/* ---- many kinds in one array ------------------------------------------------------------------------------------- */

enum { KINDS = 8 };

typedef struct mixture {
    MPI_Request requests[KINDS];
    unsigned char *written, *read;
    int sent, received, sent_again, received_again;
} mixture;

/* 0, 1: persistent send and receive, to itself; 2: nothing; 3: iwrite; 4: the program's generalized request; 5: isend
 * (received by 6); 7: iread of what an earlier call has written. */
static void start_mixture(MPI_File file, mixture *m, int turn)
{
    const MPI_Offset at = (MPI_Offset)rank * BLOCK;

    m->sent = 10 * rank + turn;
    m->sent_again = 10 * rank + turn + 5;
    if (turn == 0) {
        MPI_Send_init(&m->sent, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &m->requests[0]);
        MPI_Recv_init(&m->received, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &m->requests[1]);
    }
    MPI_Startall(2, m->requests);
    m->requests[2] = MPI_REQUEST_NULL;
    fill_from(m->written, at, BLOCK, turn);
    FINE(MPI_File_iwrite_at(file, at, m->written, BLOCK, MPI_BYTE, &m->requests[3]));
    MPI_Grequest_start(no_query, no_free, no_cancel, NULL, &m->requests[4]);
    MPI_Grequest_complete(m->requests[4]);
    MPI_Irecv(&m->received_again, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &m->requests[6]);
    MPI_Isend(&m->sent_again, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &m->requests[5]);
    FINE(MPI_File_iread_at(file, (MPI_Offset)(ranks + rank) * BLOCK, m->read, BLOCK, MPI_BYTE, &m->requests[7]));
}

static void check_status(const MPI_Status *status, int index)
{
    static const int bytes[KINDS] = {-1, 4, 0, BLOCK, 7, -1, 4, BLOCK};

    if (bytes[index] >= 0)
        EXPECT(moved(status, bytes[index]));
}

static void complete_mixture(mixture *m, int how)
{
    MPI_Status statuses[KINDS];
    int indices[KINDS], n = 0, done = 0, index;

    if (how == 0) {
        FINE(MPI_Waitall(KINDS, m->requests, statuses));
        for (int i = 0; i < KINDS; i++)
            check_status(&statuses[i], i);
    } else if (how == 1) {
        FINE(MPI_Waitall(KINDS, m->requests, MPI_STATUSES_IGNORE));
    } else if (how == 2) {
        while (!done)
            FINE(MPI_Testall(KINDS, m->requests, &done, statuses));
        check_status(&statuses[3], 3);
    }
    for (int left = how > 2 ? KINDS - 1 : 0; left > 0; left -= n) { /* until all active ones are done */
        n = 1;
        if (how == 3)
            FINE(MPI_Waitsome(KINDS, m->requests, &n, indices, statuses));
        else if (how == 4)
            FINE(MPI_Testsome(KINDS, m->requests, &n, indices, statuses));
        else if (how == 5)
            FINE(MPI_Waitany(KINDS, m->requests, &indices[0], &statuses[0]));
        else
            for (done = 0; !done;)
                FINE(MPI_Testany(KINDS, m->requests, &indices[0], &done, &statuses[0]));
        if (n == MPI_UNDEFINED || (n == 1 && indices[0] == MPI_UNDEFINED)) {
            differs("way %d: %d requests are left, and nothing is active", how, left);
            return;
        }
        for (int i = 0; i < n; i++)
            check_status(&statuses[i], indices[i]);
    }
    FINE(MPI_Waitany(KINDS, m->requests, &index, MPI_STATUS_IGNORE)); /* inactive ones are left, and null ones */
    EXPECT(index == MPI_UNDEFINED);
}

static void together(void)
{
    char path[PATH_BYTES];
    mixture m = {.written = malloc(BLOCK), .read = malloc(BLOCK)};
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    fill_from(m.written, (long long)(ranks + rank) * BLOCK, BLOCK, 99);
    FINE(
        MPI_File_write_at_all(file, (MPI_Offset)(ranks + rank) * BLOCK, m.written, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int how = 0; how < 7; how++) {
        memset(m.read, 0, BLOCK);
        start_mixture(file, &m, how);
        complete_mixture(&m, how);
        EXPECT(m.received == m.sent && m.received_again == m.sent_again);
        for (int i = 0; i < BLOCK; i++)
            EXPECT(m.read[i] == byte_at((long long)(ranks + rank) * BLOCK + i, 99));
    }
    MPI_Request_free(&m.requests[0]);
    MPI_Request_free(&m.requests[1]);
    free(m.written);
    free(m.read);
    FINE(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        EXPECT(file_holds(path, 0, (long long)ranks * BLOCK, 6));
}

/* ---- not waited for ---------------------------------------------------------------------------------------------- */

/* MPI_Request_free on writes under way; the close makes sure of them. */
static void freed(void)
{
    enum { N = 20 };
    char path[PATH_BYTES];
    unsigned char *buffer = malloc(N * BLOCK);
    MPI_Request request;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    for (int i = 0; i < N; i++) {
        const MPI_Offset at = ((MPI_Offset)i * ranks + rank) * BLOCK;

        fill_from(buffer + i * BLOCK, at, BLOCK, 2);
        if (i % 4 == 3)
            FINE(MPI_File_iwrite_at_all(file, at, buffer + i * BLOCK, BLOCK, MPI_BYTE, &request));
        else
            FINE(MPI_File_iwrite_at(file, at, buffer + i * BLOCK, BLOCK, MPI_BYTE, &request));
        FINE(MPI_Request_free(&request));
        EXPECT(request == MPI_REQUEST_NULL);
    }
    FINE(MPI_File_close(&file));
    free(buffer);
    expect_file(path, (long long)N * BLOCK * ranks, 2);
}

/* An access cannot be cancelled; to try is no error, and the data arrives. */
static void cancelled(void)
{
    char path[PATH_BYTES];
    unsigned char *buffer = malloc(BLOCK);
    int gone = 1;
    MPI_Request request;
    MPI_Status status;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    fill_from(buffer, (long long)rank * BLOCK, BLOCK, 3);
    FINE(MPI_File_iwrite_at(file, (MPI_Offset)rank * BLOCK, buffer, BLOCK, MPI_BYTE, &request));
    FINE(MPI_Cancel(&request));
    FINE(MPI_Wait(&request, &status));
    FINE(MPI_Test_cancelled(&status, &gone));
    EXPECT(!gone && moved(&status, BLOCK));
    FINE(MPI_File_close(&file));
    free(buffer);
    expect_file(path, (long long)BLOCK * ranks, 3);
}

static void looked_at(void)
{
    char path[PATH_BYTES];
    unsigned char *buffer = malloc(BLOCK);
    MPI_Request requests[2];
    MPI_Status status;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    fill_from(buffer, (long long)rank * BLOCK, BLOCK, 4);
    FINE(MPI_File_iwrite_at(file, (MPI_Offset)rank * BLOCK, buffer, BLOCK / 2, MPI_BYTE, &requests[0]));
    FINE(MPI_File_iwrite_at(file, (MPI_Offset)rank * BLOCK + BLOCK / 2, buffer + BLOCK / 2, BLOCK / 2, MPI_BYTE,
                            &requests[1]));
    for (int i = 0; i < 2; i++)
        for (int flag = 0; !flag;) {
            memset(&status, 0x55, sizeof status);
            FINE(MPI_Request_get_status(requests[i], &flag, &status));
            EXPECT(!flag || moved(&status, BLOCK / 2));
        }
    FINE(MPI_Request_get_status(requests[0], &(int){0}, MPI_STATUS_IGNORE));
    EXPECT(requests[0] != MPI_REQUEST_NULL);
    FINE(MPI_Wait(&requests[0], &status));
    EXPECT(moved(&status, BLOCK / 2));
    FINE(MPI_Request_free(&requests[1]));
    FINE(MPI_File_close(&file));
    free(buffer);
    expect_file(path, (long long)BLOCK * ranks, 4);
}

/* Thousands under way at once, completed one by one in whatever order. */
static void thousands(void)
{
    enum { N = 2000 };
    char path[PATH_BYTES];
    unsigned char *buffer = malloc(N * SMALL);
    MPI_Request *requests = malloc(N * sizeof *requests);
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    for (int i = 0; i < N; i++) {
        const MPI_Offset at = ((MPI_Offset)i * ranks + rank) * SMALL;

        fill_from(buffer + i * SMALL, at, SMALL, 5);
        FINE(MPI_File_iwrite_at(file, at, buffer + i * SMALL, SMALL, MPI_BYTE, &requests[i]));
    }
    for (int i = 0; i < N; i++) {
        MPI_Status status;
        int index = -1;

        FINE(MPI_Waitany(N, requests, &index, &status));
        EXPECT(index >= 0 && index < N && moved(&status, SMALL));
    }
    free(requests);
    FINE(MPI_File_close(&file));
    free(buffer);
    expect_file(path, (long long)N * SMALL * ranks, 5);
}

/* ---- order between ranks ----------------------------------------------------------------------------------------- */

/* Rank 0 begins a nonblocking collective, does all that MPI lets it do alone meanwhile, and only then sends what
 * the others wait for before they join in: nothing on the way may wait for them. */
static void others_come_later(void)
{
    char path[PATH_BYTES], other_path[PATH_BYTES];
    unsigned char *buffer = malloc(2 * BLOCK);
    MPI_Offset at = (MPI_Offset)rank * BLOCK, offset = -1;
    MPI_Request request, alone;
    MPI_File file, other;
    int word = 0, amode = 0, flag = 0;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    other = open_file(MPI_COMM_SELF, path_of(rank == 0 ? "own" : "own_of_others", other_path), AMODE_NEW);
    fill_from(buffer, at, BLOCK, 6);
    if (rank != 0)
        MPI_Recv(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    FINE(MPI_File_iwrite_at_all(file, at, buffer, BLOCK, MPI_BYTE, &request));
    if (rank == 0) {
        fill_from(buffer + BLOCK, (long long)ranks * BLOCK, BLOCK, 6);
        FINE(MPI_File_write_at(file, (MPI_Offset)ranks * BLOCK, buffer + BLOCK, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
        FINE(MPI_File_seek(file, 1, MPI_SEEK_SET));
        FINE(MPI_File_get_position(file, &offset));
        FINE(MPI_File_get_size(file, &offset));
        FINE(MPI_File_get_amode(file, &amode));
        FINE(MPI_File_get_byte_offset(file, 17, &offset));
        FINE(MPI_File_iwrite_at(file, (MPI_Offset)ranks * BLOCK, buffer + BLOCK, BLOCK, MPI_BYTE, &alone));
        FINE(MPI_Wait(&alone, MPI_STATUS_IGNORE));
        FINE(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        FINE(MPI_File_write_at(other, 0, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
        MPI_File_sync(other); /* Open MPI's fails now and then, for no reason */
        FINE(MPI_File_close(&other));
        for (int r = 1; r < ranks; r++)
            MPI_Send(&word, 1, MPI_INT, r, 3, MPI_COMM_WORLD);
    }
    FINE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank != 0)
        FINE(MPI_File_close(&other));
    free(buffer);
    FINE(MPI_File_close(&file));
    expect_file(path, (long long)BLOCK * (ranks + 1), 6);
}

/* The collectives of two files, waited for in the opposite order on every second rank, after messages between them. */
static void crossed(void)
{
    char path[PATH_BYTES];
    unsigned char *buffer = malloc(BLOCK);
    const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    MPI_Request requests[2];
    MPI_File files[2];
    int word = 0;

    for (int f = 0; f < 2; f++) {
        start_anew(path_of(f ? "b" : "a", path));
        files[f] = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    }
    fill_from(buffer, (long long)rank * BLOCK, BLOCK, 7);
    for (int f = 0; f < 2; f++)
        FINE(MPI_File_iwrite_at_all(files[f], (MPI_Offset)rank * BLOCK, buffer, BLOCK, MPI_BYTE, &requests[f]));
    MPI_Sendrecv(&rank, 1, MPI_INT, next, 4, &word, 1, MPI_INT, last, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(word == last);
    for (int i = 0; i < 2; i++)
        FINE(MPI_Wait(&requests[(i + rank) % 2], MPI_STATUS_IGNORE));
    for (int f = 0; f < 2; f++) {
        FINE(MPI_File_close(&files[f]));
        expect_file(path_of(f ? "b" : "a", path), (long long)BLOCK * ranks, 7);
    }
    free(buffer);
}

/* ---- threads, one at a time (MPI_THREAD_SERIALIZED), with small stacks ------------------------------------------- */

static MPI_File shared_file;
static MPI_Request shared_request;
static unsigned char *shared_buffer;

static void *begin_there(void *unused)
{
    (void)unused;
    FINE(MPI_File_iwrite_at(shared_file, (MPI_Offset)rank * BLOCK, shared_buffer, BLOCK, MPI_BYTE, &shared_request));
    return NULL;
}

static void *end_there(void *unused)
{
    (void)unused;
    FINE(MPI_Wait(&shared_request, MPI_STATUS_IGNORE));
    return NULL;
}

static void *write_there(void *view)
{
    FINE(MPI_File_set_view(shared_file, (MPI_Offset)rank * SMALL, MPI_BYTE, *(MPI_Datatype *)view, "native",
                           MPI_INFO_NULL));
    FINE(MPI_File_write_at_all(shared_file, 0, shared_buffer, BLOCK / SMALL * SMALL, MPI_BYTE, MPI_STATUS_IGNORE));
    return NULL;
}

static void *close_there(void *unused)
{
    (void)unused;
    FINE(MPI_File_close(&shared_file));
    return NULL;
}

/* Opened here, written in one thread, completed in a second, written collectively in a third, closed in a fourth; each
 * with a stack of 128 KiB. */
static void threads_in_turn(void)
{
    char path[PATH_BYTES];
    MPI_Datatype view = turns_type(SMALL, ranks);
    void *(*const steps[])(void *) = {begin_there, end_there, write_there, close_there};
    pthread_attr_t small;

    start_anew(path_of("file", path));
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    shared_buffer = malloc(BLOCK);
    fill_turns(shared_buffer, SMALL, BLOCK / SMALL, rank, ranks, 8);
    shared_file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    for (int i = 0; i < 4; i++) {
        pthread_t thread;

        if (pthread_create(&thread, &small, steps[i], &view) != 0)
            MPI_Abort(MPI_COMM_WORLD, 6);
        pthread_join(thread, NULL);
    }
    pthread_attr_destroy(&small);
    MPI_Type_free(&view);
    free(shared_buffer);
    expect_file(path, (long long)(BLOCK / SMALL * SMALL) * ranks, 8);
}

const stranger requests_cases[] = {
    {"together", 1, together},
    {"freed", 1, freed},
    {"cancelled", 1, cancelled},
    {"looked_at", 1, looked_at},
    {"thousands", 1, thousands},
    {"others_come_later", 2, others_come_later},
    {"crossed", 1, crossed},
    {"threads_in_turn", 1, threads_in_turn},
    {NULL, 0, NULL},
};
