/* mpiox_service_main.c - see mpiox_service_main.h. */
#include "mpiox_service_main.h"

#include <string.h>
#include <unistd.h>

#include "mpiox_process_supervise.h"
#include "mpiox_service_spawn.h"

int mpiox_service_main(int argc, char **argv)
{
    /* The parent waits for this process. If fork() fails the end of the socket is its answer. */
    if (argc > 2 && strcmp(argv[2], "apart") == 0) {
        const pid_t child = fork();

        if (child != 0)
            _exit(child < 0);
    }
    if (argc > 1 && strcmp(argv[1], "serve") == 0)
        return mpiox_process_supervise();
    return mpiox_service_spawn_be_child(argc > 1 ? argv[1] : NULL);
}
