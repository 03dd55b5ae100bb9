/*
 * strangers.c - runs the cases. See strangers.h.
 *
 * usage: strangers FOLDER [CASE...]   all cases, or those named; rank 0's exit status is the number of failures
 */
#include "strangers.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

int rank, ranks;
char folder[PATH_BYTES];

static const char *present;
static char difference[400];

void differs(const char *format, ...)
{
    va_list arguments;

    if (difference[0] != '\0')
        return;
    va_start(arguments, format);
    vsnprintf(difference, sizeof difference, format, arguments);
    va_end(arguments);
}

const char *path_of(const char *name, char path[PATH_BYTES])
{
    const int used = snprintf(path, PATH_BYTES, "%s/%s.%s", folder, present, name);

    if (used >= PATH_BYTES)
        MPI_Abort(MPI_COMM_WORLD, 4);
    return path;
}

void start_anew(const char *path)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
}

MPI_File open_file(MPI_Comm comm, const char *path, int amode)
{
    MPI_File file = MPI_FILE_NULL;

    if (MPI_File_open(comm, path, amode, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        fprintf(stderr, "%s: cannot open %s\n", present, path);
        MPI_Abort(MPI_COMM_WORLD, 5);
    }
    return file;
}

unsigned char byte_at(long long position, int seed)
{
    unsigned long long mixed = ((unsigned long long)position + 1) * 0x9E3779B97F4A7C15ull + (unsigned)seed * 7919u;

    return (unsigned char)(1 + (mixed >> 40) % 255);
}

void fill_from(unsigned char *buffer, long long position, int bytes, int seed)
{
    for (int i = 0; i < bytes; i++)
        buffer[i] = byte_at(position + i, seed);
}

int file_holds(const char *path, long long from, long long bytes, int seed)
{
    FILE *file = fopen(path, "rb");
    int fine = file != NULL && fseek(file, from, SEEK_SET) == 0;

    for (long long i = 0; fine && i < bytes; i++)
        fine = getc(file) == byte_at(from + i, seed);
    if (file != NULL)
        fclose(file);
    return fine;
}

long long file_bytes(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? (long long)status.st_size : -1;
}

void expect_file(const char *path, long long bytes, int seed)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        EXPECT(file_bytes(path) == bytes);
        EXPECT(file_holds(path, 0, bytes, seed));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int moved(const MPI_Status *status, int bytes)
{
    int count = -1;

    return MPI_Get_count(status, MPI_BYTE, &count) == MPI_SUCCESS && count == bytes;
}

MPI_Datatype turns_type(int block, int in_turn)
{
    MPI_Datatype one, turns;

    MPI_Type_contiguous(block, MPI_BYTE, &one);
    MPI_Type_create_resized(one, 0, (MPI_Aint)block * in_turn, &turns);
    MPI_Type_commit(&turns);
    MPI_Type_free(&one);
    return turns;
}

void fill_turns(unsigned char *buffer, int block, int turns, int place, int in_turn, int seed)
{
    for (int i = 0; i < turns; i++)
        fill_from(buffer + (size_t)i * block, ((long long)i * in_turn + place) * block, block, seed);
}

void write_turns(MPI_File file, int block, int turns, int place, int in_turn, int seed)
{
    unsigned char *buffer = malloc((size_t)block * turns);
    MPI_Status status;

    fill_turns(buffer, block, turns, place, in_turn, seed);
    FINE(MPI_File_write_at_all(file, 0, buffer, block * turns, MPI_BYTE, &status));
    EXPECT(moved(&status, block * turns));
    free(buffer);
}

long shared_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    long n = 0;

    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        n += strstr(line, "/memfd:") != NULL || strstr(line, "/mpiox.") != NULL;
    if (maps != NULL)
        fclose(maps);
    return n;
}

int class_of(int code)
{
    int error_class = MPI_SUCCESS;

    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &error_class);
    return error_class;
}

/* All ranks learn of every rank's first difference; rank 0 prints the lowest rank's. */
static int judge(void)
{
    char *all = malloc(sizeof difference * (size_t)ranks);
    int bad = -1;

    MPI_Allgather(difference, sizeof difference, MPI_CHAR, all, sizeof difference, MPI_CHAR, MPI_COMM_WORLD);
    for (int r = ranks - 1; r >= 0; r--)
        bad = all[sizeof difference * (size_t)r] != '\0' ? r : bad;
    if (rank == 0 && bad >= 0)
        printf("%s: rank %d: %s\n", present, bad, all + sizeof difference * (size_t)bad);
    else if (rank == 0)
        printf("%s: ok\n", present);
    fflush(stdout);
    free(all);
    difference[0] = '\0';
    return bad >= 0;
}

static int wanted(const char *name, int n, char **names)
{
    int found = n == 0;

    for (int i = 0; i < n; i++)
        found |= strcmp(name, names[i]) == 0;
    return found;
}

static double start;

static int run_cases(const stranger *cases, int n, char **names)
{
    int failures = 0;

    for (; cases->name != NULL; cases++) {
        if (cases->least_ranks > ranks || !wanted(cases->name, n, names))
            continue;
        present = cases->name;
        if (rank == 0)
            fprintf(stderr, "%.2f begin %s\n", MPI_Wtime() - start, present);
        cases->run();
        failures += judge();
    }
    return failures;
}

int main(int argc, char **argv)
{
    int level, failures = 0, n = argc - 2;
    char **names = argv + 2;

    if (argc < 2 || realpath(argv[1], folder) == NULL)
        return 2;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    start = MPI_Wtime();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    failures += run_cases(types_cases, n, names);
    failures += run_cases(files_cases, n, names);
    failures += run_cases(handlers_cases, n, names);
    failures += run_cases(requests_cases, n, names);
    failures += run_cases(process_cases, n, names);
    if (rank == 0)
        puts("end");
    MPI_Finalize();
    return rank == 0 ? failures : 0;
}
