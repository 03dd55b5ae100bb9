/*
 * posix_costs.c - what functions that take a file's name cost in a program of MPI without I/O delegates.
 *
 * usage: posix_costs   under stepped.c, which counts between marks: one call of each function, on a name that is not
 * there. One line a function: its name. One rank.
 */
#include <signal.h>

#include "report.h"

#include "posix_calls.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
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
