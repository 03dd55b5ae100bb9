/*
 * exchange_probe.c - what messages between hosts cost: LogGP's parameters, for `exchange.py probe`.
 *
 * A plain MPI program of pairs of ranks, each rank on a host of its own. One JSON line a size: with one pair half a
 * round trip (the least and the median of many), and seconds a message of a flood of messages; then one line for the
 * copies of one core in long pieces. With more pairs only floods, of all pairs at the same time: they show what a
 * message costs processors that all hosts share, which one pair does not, since MPI libraries wait by polling.
 *
 * Source. Round trips and floods over sizes: T. Kielmann, H. Bal, K. Verstoep, "Fast measurement of LogP parameters for
 *         message passing platforms", IPDPS 2000 workshops, section 3.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 1 << 20, COPIED = 64 << 20, REPEATS = 60, FLOOD_BYTES = 16 << 20, FLOOD_MOST = 2000, WINDOW = 32 };

static int rank, other;
static char *buffer;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Half a round trip, REPEATS times; sorted. */
static void ping_pong(int bytes, double *seconds)
{
    for (int i = 0; i < REPEATS; i++) {
        const double begun = now();
        if (rank == 0) {
            MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
        seconds[i] = (now() - begun) / 2;
    }
    qsort(seconds, REPEATS, sizeof *seconds, by_value);
}

/* Seconds a message, when many are on their way at a time; of the slowest pair. */
static double flood(int bytes)
{
    MPI_Request requests[WINDOW];
    const int many = FLOOD_BYTES / (bytes + 1);
    const int n = many < WINDOW ? WINDOW : many > FLOOD_MOST ? FLOOD_MOST : many / WINDOW * WINDOW;
    double best = 1e9;
    for (int turn = 0; turn < 5; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begun = now();
        for (int i = 0; i < n; i += WINDOW) {
            for (int k = 0; k < WINDOW; k++)
                if (rank % 2 == 0)
                    MPI_Isend(buffer, bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD, &requests[k]);
                else
                    MPI_Irecv(buffer, bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD, &requests[k]);
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        }
        if (rank % 2 == 0)
            MPI_Recv(buffer, 0, MPI_BYTE, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(buffer, 0, MPI_BYTE, other, 3, MPI_COMM_WORLD);
        double seconds = (now() - begun) / n;
        MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* A part of a large buffer into a small one, as ranks pack. */
static void copies(void)
{
    double best = 1e9;
    char *source = malloc(COPIED);
    if (!source)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(source, 1, COPIED);
    for (int i = 0; i < 3 * COPIED / MOST; i++) {
        const double begun = now();
        memcpy(buffer, source + (size_t)i * MOST % COPIED, MOST);
        const double seconds = now() - begun;
        best = seconds < best ? seconds : best;
    }
    printf("{\"copy_bytes\": %d, \"copy_s\": %.9e}\n", MOST, best);
    free(source);
}

int main(int argc, char **argv)
{
    double trip[REPEATS];
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    other = rank ^ 1;
    buffer = malloc(MOST);
    if (!buffer || size % 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(buffer, 1, MOST);
    for (int bytes = 1; bytes <= MOST; bytes *= 4) {
        const double each = flood(bytes);
        if (size == 2)
            ping_pong(bytes, trip);
        if (rank == 0 && size == 2)
            printf("{\"bytes\": %d, \"trip_s\": [%.9e, %.9e], \"flood_s\": %.9e}\n", bytes, trip[0], trip[REPEATS / 2],
                   each);
        else if (rank == 0)
            printf("{\"bytes\": %d, \"pairs\": %d, \"flood_s\": %.9e}\n", bytes, size / 2, each);
    }
    if (rank == 0 && size == 2)
        copies();
    fflush(stdout);
    free(buffer);
    MPI_Finalize();
    return 0;
}
