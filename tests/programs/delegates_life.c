/*
 * delegates_life.c - a program whose delegates are started, used, killed and ended; plain MPI.
 *
 *   delegates_life FILE ACTION [NUMBER]
 *
 * Every rank says what it sees of the delegates and asks each of them something ("ok ping"). Then:
 *   end       a file is written and read back; MPI_Finalize
 *   opened    the same, and the file is opened before anything is said of the delegates, which start then
 *   abort     rank NUMBER calls MPI_Abort
 *   kill      rank NUMBER kills itself
 *   sleep     all sleep for NUMBER seconds: somebody else kills something; then as `end`
 *   delegate  delegate NUMBER is killed, unless it is a rank; all ranks must notice; then as `end`
 *   children  children are spawned, write a file, are spoken to; then as `end`
 *   two       two files are opened by parts of the ranks
 */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

/* Of libmpiio_ext.so, when it is preloaded. */
__attribute__((weak)) int mpiio_ext_group_count(void);
__attribute__((weak)) const char *mpiio_ext_group_mode(void);
__attribute__((weak)) const char *mpiio_ext_group_reason(void);
__attribute__((weak)) int64_t mpiio_ext_group_pid(int index);
__attribute__((weak)) int mpiio_ext_group_node(int index);
__attribute__((weak)) int mpiio_ext_group_is_local(int index);
__attribute__((weak)) int mpiio_ext_group_is_serving(int index);
__attribute__((weak)) int mpiio_ext_delegates_ping(int index, int count, double *seconds);

enum { BLOCK = 100, BLOCKS = 300 };

static const char *path;

static void rest(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&t, &t) != 0)
        ;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- what is seen of the delegates ------------------------------------------------------------------------------- */

static int delegates(void)
{
    return mpiio_ext_group_count ? mpiio_ext_group_count() : 0;
}

/* The same on all ranks? */
static int is_common(int value)
{
    int values[] = {value, -value};

    MPI_Allreduce(MPI_IN_PLACE, values, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return values[0] == -values[1];
}

static void look(void)
{
    int fine = mpiio_ext_group_count != NULL;
    double seconds[3];

    check("common", is_common(delegates()));
    for (int i = 0; fine && i < delegates(); i++)
        fine = is_common((int)mpiio_ext_group_pid(i)) && mpiio_ext_group_is_serving(i) &&
               mpiio_ext_delegates_ping(i, 3, seconds) == 0;
    check("ping", fine);
    if (rank == 0 && fine) {
        printf("delegates %d mode %s\nreason %s\n", delegates(), mpiio_ext_group_mode(), mpiio_ext_group_reason());
        for (int i = 0; i < delegates(); i++)
            printf("delegate %d pid %lld node %d local %d\n", i, (long long)mpiio_ext_group_pid(i),
                   mpiio_ext_group_node(i), mpiio_ext_group_is_local(i));
    }
    fflush(stdout);
}

/* ---- access ------------------------------------------------------------------------------------------------------ */

/* Interleaved small independent writes, read back by another rank. */
static int use_file(MPI_Comm comm, const char *name)
{
    unsigned char data[BLOCK];
    int me, all, fine = 1;
    MPI_File file;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    if (MPI_File_open(comm, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        return 0;
    for (int i = 0; i < BLOCKS; i++) {
        const long long at = ((long long)i * all + me) * BLOCK;

        fill_from(data, at, BLOCK, 1);
        fine &= MPI_File_write_at(file, at, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    }
    fine &= MPI_File_sync(file) == MPI_SUCCESS;
    MPI_Barrier(comm);
    fine &= MPI_File_sync(file) == MPI_SUCCESS;
    for (int i = 0; i < BLOCKS; i++) {
        const long long at = ((long long)i * all + (me + 1) % all) * BLOCK;

        fine &= MPI_File_read_at(file, at, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
                equals_from(data, at, BLOCK, 1);
    }
    return MPI_File_close(&file) == MPI_SUCCESS && fine;
}

static void use(void)
{
    if (rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    check("access", use_file(MPI_COMM_WORLD, path));
    check_file("content", path, (long long)BLOCK * BLOCKS * ranks, 1);
}

/* ---- actions ----------------------------------------------------------------------------------------------------- */

static void kill_delegate(int index)
{
    const pid_t pid = index < delegates() ? (pid_t)mpiio_ext_group_pid(index) : 0;
    const double begin = now();
    int fine = 1;

    if (pid > 0 && strcmp(mpiio_ext_group_mode(), "thread") != 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (mpiio_ext_group_is_local(index)) /* elsewhere the number may be that of another process */
            kill(pid, SIGKILL);
        while (mpiio_ext_group_is_serving(index) && now() - begin < 60)
            rest(0.01);
        fine = !mpiio_ext_group_is_serving(index);
    }
    check("noticed", fine);
}

static void spawn_children(char **argv)
{
    char name[4096], *arguments[] = {name, "child", NULL};
    MPI_Comm inter;
    int sum = 0;

    snprintf(name, sizeof name, "%s.child", path);
    MPI_Comm_spawn(argv[0], arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    check("spawned", 1);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter); /* of what the children bring */
    check("children", sum == 2 * 1000 + 1);
    MPI_Comm_disconnect(&inter);
}

/* One of the children of `children`: it has no delegates and is none. */
static int be_child(MPI_Comm inter)
{
    int mine = 1000 + rank, sum = 0, fine;

    fine = use_file(MPI_COMM_WORLD, path) && delegates() == 0;
    mine = fine ? mine : 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    MPI_Comm_disconnect(&inter);
    MPI_Finalize();
    return !fine;
}

static void use_in_parts(void)
{
    char name[4096];
    MPI_Comm part;

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    snprintf(name, sizeof name, "%s.%d", path, rank % 2);
    check("parts", use_file(part, name));
    MPI_Comm_free(&part);
}

static void act(const char *action, int number, char **argv)
{
    if (strcmp(action, "abort") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == number)
            MPI_Abort(MPI_COMM_WORLD, 3);
        rest(600);
    } else if (strcmp(action, "kill") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == number)
            kill(getpid(), SIGKILL);
        rest(600);
    } else if (strcmp(action, "sleep") == 0) {
        rest(number);
    } else if (strcmp(action, "delegate") == 0) {
        kill_delegate(number);
    } else if (strcmp(action, "children") == 0) {
        spawn_children(argv);
    } else if (strcmp(action, "two") == 0) {
        use_in_parts();
    }
}

int main(int argc, char **argv)
{
    MPI_Comm parent;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    path = argv[1];
    MPI_Comm_get_parent(&parent);
    if (strcmp(argv[2], "child") == 0)
        return be_child(parent);
    if (strcmp(argv[2], "opened") == 0)
        use();
    look();
    act(argv[2], argc > 3 ? atoi(argv[3]) : 0, argv);
    use();
    check("end", 1);
    MPI_Finalize();
    return failures > 0;
}
