/*
 * throws.cpp - a C++ program whose error handler of MPI leaves MPI_File_read_at by an exception, in several threads.
 *
 *   throws FOLDER THREADS
 *
 * Each thread has a file of its own. It throws out of the handler and catches one function above that which has called
 * MPI, or many. inside.T is written in the handlers, outside.T where it has caught.
 */
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

enum { TURNS = 20, DEEP = 8 };

static std::string folder;
static thread_local int number;

static void need(bool good, const char *what)
{
    if (!good) {
        std::fprintf(stderr, "%s failed\n", what);
        std::abort();
    }
}

static void write_to(const char *name)
{
    const std::string path = folder + "/" + name + "." + std::to_string(number);
    const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);

    need(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0, "write");
}

static void throw_of_file(MPI_File *, int *code, ...)
{
    write_to("inside"); /* of the call, still */
    throw std::runtime_error(std::to_string(*code));
}

/* Each level is a frame that the exception goes through; the tracer tells frames apart, not lines of one function. */
__attribute__((noinline)) static void fail(MPI_File file, int levels)
{
    volatile char room[1024]; /* more than what the functions that are called behind it need */

    room[0] = 0;
    if (levels > 0)
        fail(file, levels - 1);
    else
        MPI_File_read_at(file, 0, const_cast<char *>(room), -1, MPI_BYTE, MPI_STATUS_IGNORE);
    room[1] = room[0];
}

static void throwing(int thread)
{
    MPI_Errhandler handler;
    MPI_File file;
    const std::string path = folder + "/data." + std::to_string(thread);

    number = thread;
    MPI_File_create_errhandler(throw_of_file, &handler);
    MPI_File_open(MPI_COMM_SELF, path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, handler);
    for (int turn = 0; turn < TURNS; turn++) {
        bool caught = false;

        try {
            fail(file, turn % 2 == 0 ? 0 : DEEP);
        } catch (const std::runtime_error &) {
            caught = true;
        }
        need(caught, "the exception");
        write_to("outside");
    }
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    MPI_File_close(&file);
    MPI_Errhandler_free(&handler);
}

int main(int argc, char **argv)
{
    std::vector<std::thread> threads;
    int level;

    need(argc == 3, "the command line");
    folder = argv[1];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    need(level == MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE");
    for (int i = 1; i < std::atoi(argv[2]); i++)
        threads.emplace_back(throwing, i);
    throwing(0);
    for (std::thread &each : threads)
        each.join();
    MPI_Finalize();
    return 0;
}
