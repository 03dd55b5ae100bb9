/*
 * posix_names.c - what POSIX functions find of a file that a collective close has just left.
 *
 * usage: posix_names FOLDER   one line a function: its name, result, errno, and what it has found. The last line counts
 * the files that had a staging name, or bytes that delegates had, when the function was called: system calls made
 * directly look past any library.
 */
#include <sys/syscall.h>

#include "report.h"

#include "posix_calls.h"

enum { BLOCK = 20000 };

static int staged;

static int do_call(int which, const char *relative, long long *found)
{
    const int at = open(folder, O_RDONLY | O_DIRECTORY);

    errno = 0;
    const int result = calls[which].function(at, relative, found), error = errno;

    close(at);
    errno = error;
    return result;
}

static void make(MPI_Comm comm, const char *path, int seed)
{
    unsigned char data[BLOCK];
    int me, size;
    MPI_File file;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < BLOCK; i++)
        data[i] = byte_at((long long)me * BLOCK + i, seed);
    if (MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_File_write_at_all(file, (long long)me * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

static int is_staged(const char *relative)
{
    char staging[2 * NAME_BYTES];

    snprintf(staging, sizeof staging, "%s/.%s.staging", folder, relative);
    return syscall(SYS_faccessat, AT_FDCWD, staging, F_OK) == 0;
}

static void say(const char *what, int who, long long result, long long found)
{
    const int error = result < 0 ? errno : 0;

    if (rank == who) {
        printf("%s %lld %d %lld\n", what, result, error, found);
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* By each rank in turn; of every second file it has not been one of the openers. */
static void functions(void)
{
    for (int i = 0; i < COUNT; i++) {
        const int who = i % ranks;
        char relative[64];
        long long found = 0, result = 0;
        MPI_Comm comm;

        snprintf(relative, sizeof relative, "file%02d", i);
        snprintf(name, sizeof name, "%s/%s", folder, relative);
        snprintf(other, sizeof other, "%s/other%02d", folder, i);
        MPI_Comm_split(MPI_COMM_WORLD, i % 2 == 1 && rank == who ? MPI_UNDEFINED : 0, rank, &comm);
        if (comm != MPI_COMM_NULL) {
            make(comm, name, i);
            MPI_Comm_free(&comm);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == who) {
            staged += is_staged(relative);
            result = do_call(i, relative, &found);
        }
        say(calls[i].name, who, result, found);
    }
}

/* Other ways to say the same name. */
static void paths(void)
{
    static const char *const ways[] = {"file", "./file", "sub/../file", "sub/../link", "chain", "sub/up"};
    char old[NAME_BYTES];

    if (rank == 0 && (getcwd(old, sizeof old) == NULL || mkdir("sub", 0700) != 0 || symlink("file", "link") != 0 ||
                      symlink("link", "chain") != 0 || symlink("../link", "sub/up") != 0))
        MPI_Abort(MPI_COMM_WORLD, 5);
    for (int i = 0; i < (int)(sizeof ways / sizeof ways[0]); i++) {
        long long found = 0, result = 0;

        snprintf(name, sizeof name, "%s/file", folder);
        make(MPI_COMM_WORLD, name, i);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            staged += is_staged("file");
            result = opens(open(ways[i], O_RDONLY), &found);
            unlink("file");
        }
        say(ways[i], 0, result, found);
    }
}

/* The folder that a file is in; a name that a file is to get; a file that was there before. */
static void around(void)
{
    long long found = 0, result = 0;

    snprintf(name, sizeof name, "%s/sub/file", folder);
    make(MPI_COMM_WORLD, name, 70);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        staged += is_staged("file") || syscall(SYS_faccessat, AT_FDCWD, "sub/.file.staging", F_OK) == 0;
        result = rename("sub", "moved") + syscall(SYS_faccessat, AT_FDCWD, "moved/file", F_OK);
        opens(open("moved/file", O_RDONLY), &found);
    }
    say("folder", 0, result, found);

    snprintf(name, sizeof name, "%s/target", folder);
    make(MPI_COMM_WORLD, name, 71);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        staged += is_staged("target");
        close(creat("source", 0600));
        result = rename("source", "target");
        opens(open("target", O_RDONLY), &found);
    }
    say("replaced", 0, result, found);

    snprintf(name, sizeof name, "%s/again", folder);
    if (rank == 0) {
        FILE *file = fopen("again", "w");

        for (int i = 0; file != NULL && i < 4 * BLOCK; i++)
            putc(7, file);
        if (file == NULL || fclose(file) != 0)
            MPI_Abort(MPI_COMM_WORLD, 6);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    make(MPI_COMM_WORLD, name, 72);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) {
        const int fd = (int)syscall(SYS_openat, AT_FDCWD, "again", O_RDONLY, 0);
        long long before = sum_of(fd);

        close(fd);
        result = reads(fopen("again", "r"), &found);
        staged += before != found;
    }
    say("again", ranks - 1, result, found);
}

int main(int argc, char **argv)
{
    int all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2 || chdir(argv[1]) != 0)
        return 2;
    snprintf(folder, sizeof folder, "%s", argv[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    functions();
    paths();
    around();
    MPI_Reduce(&staged, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("staged %d of %d\n", all, COUNT + 6 + 3);
    MPI_Finalize();
    return 0;
}
