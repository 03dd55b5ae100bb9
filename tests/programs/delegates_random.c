/*
 * delegates_random.c - random independent accesses of all ranks to one file; every byte is compared.
 *
 * usage: delegates_random FILE PROGRESS SEED CELLS CELL_BYTES ACCESSES COLLECTIVE
 *
 * CELLS cells of CELL_BYTES bytes lie one behind the other; cell c belongs to rank c mod ranks. In each of three rounds
 * every rank makes ACCESSES accesses to its own cells: writes and reads of a part of one, of one, or through a view of
 * several, blocking or not, wherever its random numbers say. It keeps what must be in the file and compares what it
 * reads with that. A round ends with sync, barrier, sync; then each rank reads cells of the next one, which tells what
 * is in them. Between rounds the file stays open or is opened again. COLLECTIVE accesses of a round are collective.
 * After the close all bytes are compared without MPI.
 *
 * PROGRESS: a file of one 32-bit counter for each rank, raised with every access, one of what rank 0 is doing (1
 * opening, 2 waiting, 3 using, 7 done), and behind it a word that it waits for while it is 0. Prints the lines of
 * report.h; "end" is the last one. Everything follows from SEED and the number of ranks.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

enum { ROUNDS = 3, FOREIGN = 40, MOST_AT_ONCE = 8 };
enum phase { OPENING = 1, WAITING, USING, DONE = 7 };

typedef struct run {
    const char *path;
    MPI_File file;
    long long cells, mine; /* of all ranks, of this one */
    int cell_bytes, accesses, collective;
    unsigned char *content; /* of this rank's cells, one behind the other */
    unsigned char *buffer;  /* MOST_AT_ONCE cells */
    uint64_t own, common;   /* random numbers: this rank's, and the same on all ranks */
    volatile uint32_t *progress;
    int viewed, well, complaints;
} run;

static unsigned draw(uint64_t *state, unsigned below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((*state >> 33) % below);
}

static void enter(const run *self, enum phase phase)
{
    if (rank == 0)
        self->progress[ranks] = phase;
}

static void complain(run *self, const char *call, long long offset, long long bytes, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "wrong bytes";
    int length;

    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    self->well = 0;
    if (self->complaints++ < 3) {
        printf("rank %d: %s at %lld of %lld bytes: %s\n", rank, call, offset, bytes, text);
        fflush(stdout);
    }
}

/* The file's offset of byte 0 of this rank's k-th cell. */
static long long offset_of(const run *self, long long k)
{
    return (k * ranks + rank) * self->cell_bytes;
}

static int access_at(run *self, int writes, int collective, long long offset, int bytes)
{
    unsigned char *buffer = self->buffer;
    MPI_Request request;
    MPI_Status status;
    int code, count = -1;

    if (collective) {
        code = writes ? MPI_File_write_at_all(self->file, offset, buffer, bytes, MPI_BYTE, &status)
                      : MPI_File_read_at_all(self->file, offset, buffer, bytes, MPI_BYTE, &status);
    } else if (draw(&self->own, 4) == 0) {
        code = writes ? MPI_File_iwrite_at(self->file, offset, buffer, bytes, MPI_BYTE, &request)
                      : MPI_File_iread_at(self->file, offset, buffer, bytes, MPI_BYTE, &request);
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&request, &status);
    } else {
        code = writes ? MPI_File_write_at(self->file, offset, buffer, bytes, MPI_BYTE, &status)
                      : MPI_File_read_at(self->file, offset, buffer, bytes, MPI_BYTE, &status);
    }
    if (code == MPI_SUCCESS && (MPI_Get_count(&status, MPI_BYTE, &count) != MPI_SUCCESS || count != bytes))
        complain(self, writes ? "count of a write" : "count of a read", offset, bytes, MPI_SUCCESS);
    return code;
}

/* Bytes of this rank's cells: of one of them, of several through a view. All ranks do the same if `collective`. */
static void use(run *self, int collective)
{
    const int at_once = !self->viewed ? 1 : self->mine < MOST_AT_ONCE ? (int)self->mine : MOST_AT_ONCE;
    const int cells = draw(&self->own, 4) == 0 ? 1 + (int)draw(&self->own, (unsigned)at_once) : 1;
    const long long k = draw(&self->own, (unsigned)(self->mine - cells + 1));
    const int from = draw(&self->own, 3) == 0 ? (int)draw(&self->own, (unsigned)self->cell_bytes) : 0;
    const int most = cells * self->cell_bytes - from;
    const int bytes = draw(&self->own, 3) == 0 ? 1 + (int)draw(&self->own, (unsigned)most) : most;
    const long long offset = self->viewed ? k * self->cell_bytes + from : offset_of(self, k) + from;
    unsigned char *kept = self->content + k * self->cell_bytes + from;
    const int writes = draw(collective ? &self->common : &self->own, 3) != 0;

    if (writes) {
        fill_from(kept, offset, bytes, (int)draw(&self->own, 1000));
        memcpy(self->buffer, kept, (size_t)bytes);
    } else {
        memset(self->buffer, 0xA5, (size_t)bytes);
    }
    const int code = access_at(self, writes, collective, offset, bytes);
    if (code != MPI_SUCCESS || (!writes && memcmp(self->buffer, kept, (size_t)bytes) != 0))
        complain(self, writes ? "write" : "read", offset, bytes, code);
}

/* From now on this rank's cells are one behind the other (`viewed`), or the file is as it is. */
static void set_view(run *self, int viewed)
{
    MPI_Datatype cell, mine;

    self->viewed = viewed;
    MPI_Type_contiguous(self->cell_bytes, MPI_BYTE, &cell);
    MPI_Type_create_resized(cell, 0, (MPI_Aint)ranks * self->cell_bytes, &mine);
    MPI_Type_commit(&mine);
    const int code = viewed ? MPI_File_set_view(self->file, offset_of(self, 0), MPI_BYTE, mine, "native", MPI_INFO_NULL)
                            : MPI_File_set_view(self->file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    if (code != MPI_SUCCESS)
        complain(self, "set_view", 0, 0, code);
    MPI_Type_free(&mine);
    MPI_Type_free(&cell);
}

static void sync_all(run *self)
{
    int code = MPI_File_sync(self->file);

    MPI_Barrier(MPI_COMM_WORLD);
    if (code == MPI_SUCCESS)
        code = MPI_File_sync(self->file);
    if (code != MPI_SUCCESS)
        complain(self, "sync", 0, 0, code);
}

/* The next rank says what is in some of its cells. */
static void read_the_next_ranks(run *self)
{
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;

    for (int i = 0; i < FOREIGN; i++) {
        long long cell = draw(&self->own, (unsigned)self->mine), other = 0;
        unsigned char *told = self->buffer + self->cell_bytes;
        MPI_Status status;

        MPI_Sendrecv(&cell, 1, MPI_LONG_LONG, before, 1, &other, 1, MPI_LONG_LONG, next, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(self->content + cell * self->cell_bytes, self->cell_bytes, MPI_BYTE, before, 2, told,
                     self->cell_bytes, MPI_BYTE, next, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const long long offset = (other * ranks + next) * self->cell_bytes;
        const int code = MPI_File_read_at(self->file, offset, self->buffer, self->cell_bytes, MPI_BYTE, &status);
        if (code != MPI_SUCCESS || memcmp(self->buffer, told, (size_t)self->cell_bytes) != 0)
            complain(self, "read of the next rank's", offset, self->cell_bytes, code);
    }
}

static void open_file(run *self, int create)
{
    const int mode = MPI_MODE_RDWR | (create ? MPI_MODE_CREATE : 0);
    const int code = MPI_File_open(MPI_COMM_WORLD, self->path, mode, MPI_INFO_NULL, &self->file);

    if (code != MPI_SUCCESS) {
        complain(self, "open", 0, 0, code);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static void play(run *self)
{
    open_file(self, 1);
    MPI_File_set_size(self->file, self->cells * self->cell_bytes);
    sync_all(self);
    enter(self, WAITING);
    while (rank == 0 && self->progress[ranks + 1] == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    enter(self, USING);
    for (int round = 0; round < ROUNDS; round++) {
        set_view(self, (int)draw(&self->common, 2));
        for (int i = 0; i < self->accesses; i++) {
            use(self, 0);
            self->progress[rank]++;
        }
        for (int i = 0; i < self->collective; i++)
            use(self, 1);
        set_view(self, 0);
        sync_all(self);
        read_the_next_ranks(self);
        MPI_Barrier(MPI_COMM_WORLD); /* nobody writes while another reads */
        if (draw(&self->common, 3) == 0) {
            const int code = MPI_File_close(&self->file);
            if (code != MPI_SUCCESS)
                complain(self, "close", 0, 0, code);
            open_file(self, 0);
        }
    }
    const int code = MPI_File_close(&self->file);
    if (code != MPI_SUCCESS)
        complain(self, "close", 0, 0, code);
    check("accesses", self->well);
}

/* All bytes of this rank's cells, without MPI. */
static void look_at_the_file(run *self)
{
    const int descriptor = open(self->path, O_RDONLY);

    self->well = descriptor >= 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (long long k = 0; k < self->mine; k++) {
        const ssize_t got = pread(descriptor, self->buffer, (size_t)self->cell_bytes, (off_t)offset_of(self, k));
        if (got != self->cell_bytes ||
            memcmp(self->buffer, self->content + k * self->cell_bytes, (size_t)self->cell_bytes) != 0)
            complain(self, "look", offset_of(self, k), self->cell_bytes, MPI_SUCCESS);
    }
    close(descriptor);
    check("the file", self->well);
}

int main(int argc, char **argv)
{
    int held = -1, threads;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 8 || (held = open(argv[2], O_RDWR)) < 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const int seed = atoi(argv[3]);
    run self = {.path = argv[1], .cells = atoll(argv[4]), .cell_bytes = atoi(argv[5]), .accesses = atoi(argv[6])};
    self.cells = (self.cells + ranks - 1) / ranks * ranks; /* as many for every rank */
    self.mine = self.cells / ranks;
    self.collective = atoi(argv[7]);
    self.own = (uint64_t)seed * 1000 + (uint64_t)rank + 1;
    self.common = (uint64_t)seed;
    self.well = 1;
    self.content = calloc((size_t)self.mine, (size_t)self.cell_bytes);
    self.buffer = malloc((size_t)MOST_AT_ONCE * (size_t)self.cell_bytes);
    self.progress = mmap(NULL, ((size_t)ranks + 2) * 4, PROT_READ | PROT_WRITE, MAP_SHARED, held, 0);
    if (self.content == NULL || self.buffer == NULL || self.progress == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 2);
    enter(&self, OPENING);
    play(&self);
    look_at_the_file(&self);
    enter(&self, DONE);
    free(self.content);
    free(self.buffer);
    MPI_Finalize();
    if (rank == 0)
        puts("end");
    return failures != 0;
}
