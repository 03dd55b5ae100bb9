/*
 * posix_costs.c - what functions that take a file's name cost in a program of MPI.
 *
 * usage: posix_costs   under stepped.c, which counts between marks: one call of each function, on a name that is not
 * there, without I/O delegates. One line a function: its name. One rank.
 *        posix_costs FILE BESIDE   the same of stat() of BESIDE, once FILE was made and closed. "staged": it was still
 * to be written then.
 */
#include <signal.h>
#include <sys/syscall.h>

#include "report.h"

#include "posix_calls.h"

static void look_beside(const char *path, const char *beside)
{
    const char *slash = strrchr(path, '/');
    struct stat status;
    MPI_File file;

    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_File_write_at(file, 0, folder, NAME_BYTES - 100, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    (void)stat(beside, &status); /* the linker has found it */
    raise(SIGUSR2);
    (void)stat(beside, &status);
    raise(SIGUSR2);
    snprintf(name, sizeof name, "%.*s.%s.staging", (int)(slash + 1 - path), path, slash + 1);
    if (syscall(SYS_faccessat, AT_FDCWD, name, F_OK) == 0)
        printf("staged\n");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc == 3) {
        look_beside(argv[1], argv[2]);
        MPI_Finalize();
        return 0;
    }
    snprintf(folder, sizeof folder, "/nowhere");
    snprintf(name, sizeof name, "/nowhere/file");
    snprintf(other, sizeof other, "/nowhere/other");
    for (int i = 0; i < COUNT; i++) {
        long long found;

        for (int warm = 0; warm < 2; warm++) /* the linker has found it */
            calls[i].function(AT_FDCWD, "nowhere/file", &found);
        raise(SIGUSR2);
        calls[i].function(AT_FDCWD, "nowhere/file", &found);
        raise(SIGUSR2);
        printf("%s\n", calls[i].name);
    }
    MPI_Finalize();
    return 0;
}
