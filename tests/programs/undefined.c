/*
 * undefined.c - one MPI call of the library fails, on all ranks or on one, in a chosen phase of a file's life; plain
 * MPI, with undefine.c preloaded.
 *
 *   undefined FILE counts               rank 0 prints a line PHASE NAME=CALLS... for each phase, of what any rank calls
 *   undefined FILE PHASE NAME N [RANK]  the N-th PMPI_NAME of the library in PHASE fails (RANK: on that rank only);
 *                                       each rank says how its call ended, and how the rest of the file's life did
 *
 * Every rank then opens another file, writes and reads it; "rank R: afterwards fine" when the bytes are right.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 600, BLOCK = 16, BYTES = PIECES * BLOCK, N_PHASES = 7 };

static const char *const names[] = {"Bcast",      "Allreduce",       "Reduce",     "Exscan",     "Allgather",
                                    "Comm_split", "Comm_split_type", "Iallgather", "Iallreduce", "Ibcast",
                                    "Isend",      "Issend",          "Irecv",      "Imrecv",     "Improbe"};
static const char *const phases[N_PHASES] = {"open", "write", "read", "ordered", "sync", "atomicity", "close"};

static void (*arm)(const char *, int);
static int (*calls)(const char *), (*failed)(void);
static int rank, ranks, may_be_native;
static MPI_File file;
static unsigned char data[BYTES];

static unsigned char byte_of(int i)
{
    return (unsigned char)(1 + (rank * 37 + i) % 251);
}

static int open_file(const char *path)
{
    const int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Datatype turns;

    if (code != MPI_SUCCESS)
        file = MPI_FILE_NULL;
    if (code != MPI_SUCCESS)
        return code;
    MPI_Type_vector(PIECES, BLOCK, BLOCK * ranks, MPI_BYTE, &turns);
    MPI_Type_commit(&turns);
    MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, turns, "native", MPI_INFO_NULL);
    MPI_Type_free(&turns);
    return code;
}

static int write_all(void)
{
    for (int i = 0; i < BYTES; i++)
        data[i] = byte_of(i);
    return MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
}

static int is_right(void)
{
    for (int i = 0; i < BYTES; i++)
        if (data[i] != byte_of(i))
            return 0;
    return 1;
}

static int read_all(void)
{
    memset(data, 0, sizeof data);
    return MPI_File_read_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
}

/* One block of each rank by the shared pointer, from the beginning of the file; and read again. Open MPI's own puts
 * them elsewhere, where an open or a view that nobody could agree on has left the access to it. */
static int ordered(void)
{
    int code = MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);

    memset(data, 'A' + rank, BLOCK);
    if (code == MPI_SUCCESS)
        code = MPI_File_write_ordered(file, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    memset(data, 0, BLOCK);
    if (code == MPI_SUCCESS)
        code = MPI_File_read_at(file, (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int i = 0; i < BLOCK; i++) {
        if (code == MPI_SUCCESS && !may_be_native && data[i] != 'A' + rank)
            MPI_Abort(MPI_COMM_WORLD, 8);
        data[i] = byte_of(i);
    }
    return code;
}

static int run(int phase, const char *path)
{
    switch (phase) {
    case 0:
        return open_file(path);
    case 1:
        return write_all();
    case 2:
        return read_all();
    case 3:
        return ordered();
    case 4:
        return MPI_File_sync(file);
    case 5:
        return MPI_File_set_atomicity(file, 1);
    default:
        return MPI_File_close(&file);
    }
}

static void count_all(const char *path)
{
    for (int phase = 0; phase < N_PHASES; phase++) {
        arm("", 0);
        run(phase, path);
        if (rank == 0)
            printf("%s", phases[phase]);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            int mine = calls(names[i]), most = 0;

            MPI_Reduce(&mine, &most, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
            if (rank == 0 && most > 0)
                printf(" %s=%d", names[i], most);
        }
        if (rank == 0)
            puts("");
    }
}

static void say(const char *what, int code)
{
    int error_class = MPI_SUCCESS;

    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &error_class);
    printf("rank %d: %s class=%d failed=%d right=%d\n", rank, what, error_class, failed(), is_right());
    fflush(stdout);
}

static void fail_in(const char *phase_name, const char *name, int n, int where, const char *path)
{
    may_be_native = strcmp(phase_name, "open") == 0 || (strcmp(phase_name, "ordered") == 0 && name[0] == 'I');
    for (int phase = 0; phase < N_PHASES; phase++) {
        const int chosen = strcmp(phases[phase], phase_name) == 0;

        if (phase > 0 && file == MPI_FILE_NULL)
            break;
        if (chosen && (where < 0 || where == rank))
            arm(name, n);
        const int code = run(phase, path);
        if (chosen) {
            say(phase_name, code);
            arm("", 0);
            MPI_Barrier(MPI_COMM_WORLD);
        } else if (code != MPI_SUCCESS) {
            {
                char text[MPI_MAX_ERROR_STRING];
                int length;

                MPI_Error_string(code, text, &length);
                printf("rank %d: later %s refused: %s\n", rank, phases[phase], text);
            }
        }
    }
}

int main(int argc, char **argv)
{
    char path[4096];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    *(void **)&arm = dlsym(RTLD_DEFAULT, "undefine_arm");
    *(void **)&calls = dlsym(RTLD_DEFAULT, "undefine_calls");
    *(void **)&failed = dlsym(RTLD_DEFAULT, "undefine_done");
    if (arm == NULL || calls == NULL || failed == NULL)
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (argc < 5)
        count_all(argv[1]);
    else
        fail_in(argv[2], argv[3], atoi(argv[4]), argc > 5 ? atoi(argv[5]) : -1, argv[1]);
    snprintf(path, sizeof path, "%s.afterwards", argv[1]);
    if (open_file(path) == MPI_SUCCESS && write_all() == MPI_SUCCESS && read_all() == MPI_SUCCESS && is_right() &&
        MPI_File_close(&file) == MPI_SUCCESS)
        printf("rank %d: afterwards fine\n", rank);
    MPI_Finalize();
    return 0;
}
