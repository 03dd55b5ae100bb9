/*
 * spawning.c - files of communicators that span several MPI_COMM_WORLDs, and of programs of which only some ranks were
 * started with the library; plain MPI.
 *
 *   spawning FILE spawn [LIBRARY]  two children are spawned, with LIBRARY preloaded when it is given; files are opened
 *                                  by each MPI_COMM_WORLD, by parents and children merged, by parts of these, and by
 *                                  the two sides after MPI_Comm_accept and MPI_Comm_connect
 *   spawning FILE mixed            files of MPI_COMM_WORLD and of its ranks 0 and 1
 *   spawning FILE again [LIBRARY]  six times two children are spawned, merged with their parents, and gone again after
 *                                  MPI_Comm_disconnect: files on the merged communicator, opened, used, closed and
 *                                  opened again; one on MPI_COMM_SELF in each child meanwhile; the parents go on when
 *                                  the children's processes have ended. Rank 0 says when MPI_Comm_spawn begins and
 *                                  when it returns, for Open MPI 4.1's may not: it waits in PMIx_Lookup for ever
 *
 * Each file is written and read back by interleaved collectives. Rank 0 of each MPI_COMM_WORLD says which were right.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "process.h"

enum { TIMES = 6, CHILDREN = 2, END_S = 20, BLOCK = 512, BLOCKS = 40, BYTES = BLOCK * BLOCKS };

static const char *name;
static int world_rank, failures;

static unsigned char byte_of(int rank, int i)
{
    return (unsigned char)(1 + (rank * 31 + i) % 251);
}

static int read_back(MPI_File file, int rank)
{
    unsigned char *data = calloc(1, BYTES);
    int fine = MPI_File_read_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;

    for (int i = 0; fine && i < BYTES; i++)
        fine = data[i] == byte_of(rank, i);
    free(data);
    return fine;
}

static int round_trip(MPI_Comm comm, const char *path)
{
    unsigned char data[BYTES];
    MPI_Datatype turns;
    MPI_File file;
    int rank, ranks, fine;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        return 0;
    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * ranks, MPI_BYTE, &turns);
    MPI_Type_commit(&turns);
    MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, turns, "native", MPI_INFO_NULL);
    MPI_Type_free(&turns);
    for (int i = 0; i < BYTES; i++)
        data[i] = byte_of(rank, i);
    fine = MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    fine = MPI_File_sync(file) == MPI_SUCCESS && fine;
    MPI_Barrier(comm);
    fine = read_back(file, rank) && fine;
    return MPI_File_close(&file) == MPI_SUCCESS && fine;
}

/* All ranks of comm; the answer is that of all. */
static void try(MPI_Comm comm, const char *side, const char *what)
{
    char path[4096];
    int fine, rank;

    snprintf(path, sizeof path, "%s.%s", name, what);
    fine = round_trip(comm, path);
    MPI_Allreduce(MPI_IN_PLACE, &fine, 1, MPI_INT, MPI_LAND, comm);
    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        printf("%s %s %s\n", fine ? "ok" : "FAILED", side, what);
    fflush(stdout);
    failures += !fine;
}

static void try_part(MPI_Comm comm, int color, const char *side, const char *what)
{
    MPI_Comm part;
    int rank;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_split(comm, color, rank, &part);
    if (part != MPI_COMM_NULL) {
        try(part, side, what);
        MPI_Comm_free(&part);
    }
}

/* Both sides meet again by name, with an intercommunicator that has nothing to do with the spawn. */
static void try_connect(MPI_Comm everybody, int parent)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm other, all;

    if (parent && world_rank == 0 && MPI_Open_port(MPI_INFO_NULL, port) != MPI_SUCCESS)
        port[0] = '\0';                                         /* PyPI's MPICH has none */
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, everybody); /* the parents come first */
    if (port[0] == '\0')
        return;
    if (parent)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    MPI_Intercomm_merge(other, !parent, &all);
    try(all, "both", "connected");
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&other);
    if (parent && world_rank == 0)
        MPI_Close_port(port);
}

static void spawn(char **argv, MPI_Comm *inter)
{
    char preload[4096];
    char *with[] = {preload, argv[0], argv[1], argv[2], NULL}, *without[] = {argv[1], argv[2], NULL};

    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[3] != NULL ? argv[3] : "");
    MPI_Comm_spawn(argv[3] != NULL ? "env" : argv[0], argv[3] != NULL ? with : without, 2, MPI_INFO_NULL, 0,
                   MPI_COMM_WORLD, inter, MPI_ERRCODES_IGNORE);
}

static void try_worlds(char **argv)
{
    MPI_Comm inter, all;
    int parent;

    MPI_Comm_get_parent(&inter);
    parent = inter == MPI_COMM_NULL;
    if (parent)
        spawn(argv, &inter);
    try(MPI_COMM_WORLD, parent ? "parents" : "children", parent ? "parents" : "children");
    MPI_Intercomm_merge(inter, !parent, &all);
    try(all, "both", "merged");
    try_part(all, parent, parent ? "parents" : "children", parent ? "split_parents" : "split_children");
    try_part(all, world_rank == 0 ? 0 : MPI_UNDEFINED, "both", "first_of_each");
    try(all, "both", "merged_again");
    try_connect(all, parent);
    MPI_Comm_free(&all);
    try(MPI_COMM_SELF, "self", parent ? world_rank == 0 ? "self_0" : "self_1" : world_rank == 0 ? "self_2" : "self_3");
    MPI_Comm_disconnect(&inter);
}

/* ---- again and again --------------------------------------------------------------------------------------------- */

/* Has the process ended? One whose end nobody has asked for yet has. */
static int is_gone(int process)
{
    char path[64], state = 'Z';
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", process);
    file = fopen(path, "r");
    if (file == NULL)
        return 1;
    if (fscanf(file, "%*d %*[^)]) %c", &state) != 1)
        state = 'Z';
    fclose(file);
    return state == 'Z' || state == 'X';
}

/* Nothing may connect them with the parents any more that MPI_Finalize of the children would wait for. */
static void await_ends(const int *processes)
{
    const struct timespec nap = {0, 20 * 1000 * 1000};
    const time_t begun = time(NULL);

    for (int i = 0; i < CHILDREN; i++) {
        while (!is_gone(processes[i]) && time(NULL) - begun < END_S)
            nanosleep(&nap, NULL);
        if (!is_gone(processes[i])) {
            printf("FAILED parents: a child is still there\n");
            failures++;
        }
    }
}

/* Both sides; `all` is given back before the two are disconnected. */
static void meet(MPI_Comm *inter, int parent, int turn, int *processes)
{
    MPI_Comm all;
    MPI_File file;
    char path[4096];
    int mine = getpid(), ranks, rank, others[64];

    MPI_Intercomm_merge(*inter, !parent, &all);
    MPI_Comm_size(all, &ranks);
    MPI_Comm_rank(all, &rank);
    MPI_Allgather(&mine, 1, MPI_INT, others, 1, MPI_INT, all);
    for (int i = 0; i < CHILDREN; i++)
        processes[i] = others[ranks - CHILDREN + i];
    try(all, "both", "merged");
    if (!parent) {
        snprintf(path, sizeof path, "%s.child_%d", name, world_rank);
        if (MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 5);
    }
    try(all, "both", turn % 2 == 0 ? "merged" : "merged_other");
    if (!parent) {
        if (MPI_File_write(file, &turn, 1, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
            MPI_File_close(&file) != MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 6);
    }
    MPI_Comm_free(&all); /* Open MPI waits for ever in MPI_Comm_disconnect of it */
    MPI_Comm_disconnect(inter);
}

static void say(const char *what)
{
    if (world_rank == 0) {
        printf("%s\n", what);
        fflush(stdout);
    }
}

static void try_again(char **argv)
{
    MPI_Comm inter;
    int processes[CHILDREN];
    long early = 0;

    MPI_Comm_get_parent(&inter);
    if (inter != MPI_COMM_NULL) {
        meet(&inter, 0, atoi(strrchr(argv[2], '_') + 1), processes);
        return;
    }
    for (int turn = 0; turn < TIMES; turn++) {
        char mode[32], *words[] = {argv[0], argv[1], mode, argv[3], NULL};

        snprintf(mode, sizeof mode, "again_%d", turn);
        say("spawn");
        spawn(words, &inter);
        say("spawned");
        meet(&inter, 1, turn, processes);
        await_ends(processes);
        try(MPI_COMM_WORLD, "parents", "parents");
        if (turn == 1)
            early = process_descriptors();
    }
    if (process_descriptors() > early) {
        printf("FAILED parents: %ld descriptors after two turns, %ld at the end\n", early, process_descriptors());
        failures++;
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);  /* of MPI_Open_port... */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* ...before MPI 4 */
    name = argv[1];
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    if (strcmp(argv[2], "spawn") == 0) {
        try_worlds(argv);
    } else if (strncmp(argv[2], "again", 5) == 0) {
        try_again(argv);
    } else {
        try_part(MPI_COMM_WORLD, world_rank < 2 ? 0 : 1, "world", world_rank < 2 ? "two" : "others");
        try(MPI_COMM_WORLD, "world", "all");
        try_part(MPI_COMM_WORLD, world_rank < 2 ? 0 : 1, "world", world_rank < 2 ? "two" : "others");
    }
    MPI_Finalize();
    return failures > 0;
}
