/*
 * codes.h - what the C programs of this folder share: giving up with one line, and bandwidth as such programs print it.
 *
 * "NAME write 123.4 MB/s, 16.8 MB" on rank 0: 10^6 bytes, and the seconds that the slowest rank spent between start()
 * and stop(): opening, defining, transferring and closing, without the computation between.
 *
 * CODES_COMPUTE_S=SECONDS makes each step of the simulation take so long, without the processor, as one whose
 * accelerator computes. Then "NAME loop 31.2 s, waits 1.4 s" is printed: all steps with their checkpoints and one step
 * behind the last, and of it what lies between start() and stop().
 */
#ifndef CODES_H
#define CODES_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

static int rank, ranks, steps_begun;
static double since_s, spent_s, loop_since_s;

static inline void need(int fine, const char *what)
{
    if (!fine) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
}

static inline void *allocate(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);

    need(memory != NULL, "out of memory");
    return memory;
}

static inline int argument(int argc, char **argv, int index, int smallest)
{
    int value = index < argc ? atoi(argv[index]) : 0;

    need(value >= smallest, "bad or missing argument: see the head of the source");
    return value;
}

static inline void start(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    since_s = MPI_Wtime();
}

static inline void stop(void)
{
    spent_s += MPI_Wtime() - since_s;
}

/* One step of the simulation. */
static inline void compute(void)
{
    const char *text = getenv("CODES_COMPUTE_S");
    double step_s = text != NULL ? atof(text) : 0;
    struct timespec left = {(time_t)step_s, (long)((step_s - (double)(time_t)step_s) * 1e9)};

    if (steps_begun++ == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        loop_since_s = MPI_Wtime();
    }
    thrd_sleep(&left, NULL);
}

/* Behind the last checkpoint: one step more, and what the loop took. */
static inline void end_loop(const char *name)
{
    double waits_s = 0;

    if (getenv("CODES_COMPUTE_S") == NULL)
        return;
    compute();
    MPI_Reduce(&spent_s, &waits_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s loop %.3f s, waits %.3f s\n", name, MPI_Wtime() - loop_since_s, waits_s);
}

static inline void say_bandwidth(const char *name, const char *operation, double bytes)
{
    double all_s = 0;

    MPI_Reduce(&spent_s, &all_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    spent_s = 0;
    if (rank == 0)
        printf("%s %s %.1f MB/s, %.1f MB\n", name, operation, bytes / all_s / 1e6, bytes / 1e6);
}

/* Ends the program's work: "NAME verified", or a line per rank that read wrong values and a non-zero status. */
static inline int say_verified(const char *name, long long wrong)
{
    long long all = 0;

    if (wrong > 0)
        fprintf(stderr, "%s: rank %d: %lld wrong values\n", name, rank, wrong);
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all == 0)
        printf("%s verified\n", name);
    return all != 0;
}

#endif
