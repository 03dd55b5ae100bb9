/*
 * mpiio_wire.h - of mpiio_bandwidth.c: the bytes that the hosts send over the network, and the bytes that have to cross
 * it.
 *
 * Sent. The kernel's counters of the network devices, of the process's own network namespace, without the loopback
 *       device. They include headers and acknowledgements. One rank of each host reads them.
 * Must. In two-phase I/O a byte crosses when its rank and the aggregator that owns it lie on different hosts. Two
 *       placements of the owners are computed from the pieces that all ranks access:
 *              even    the region in equal contiguous parts, one for each host: file domains of most MPI libraries
 *              least   each unit of 1 MiB of the file with the host that has most of its bytes: no placement of whole
 *                      collective buffers (of the default size) sends less
 *            Access without an exchange sends nothing, on a file system that all hosts reach without the network.
 */
#ifndef MPIIO_WIRE_H
#define MPIIO_WIRE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIRE_CLOCK_NAME = 128 };

typedef struct wire {
    int host, hosts; /* this rank's, and how many there are */
    int host_rank;   /* of this rank among those of its host */
    bool one_clock;  /* CLOCK_MONOTONIC is the same for all ranks: hosts may be namespaces of one machine */
    MPI_Comm comm;   /* they */
} wire;

/* The identity of a clock: the start of the kernel, and the namespace that shifts its clocks. */
static void wire_clock_name(char name[WIRE_CLOCK_NAME])
{
    FILE *boot = fopen("/proc/sys/kernel/random/boot_id", "r");
    size_t used = boot ? fread(name, 1, WIRE_CLOCK_NAME / 2, boot) : 0;
    memset(name + used, 0, WIRE_CLOCK_NAME - used);
    if (readlink("/proc/self/ns/time", name + used, WIRE_CLOCK_NAME - used - 1) < 0)
        name[used] = 0;
    if (boot)
        fclose(boot);
}

/* Collective. If the clock has no identity, only ranks of one host share it. */
static bool wire_find_clock(const wire *w)
{
    char mine[WIRE_CLOCK_NAME], first[WIRE_CLOCK_NAME];
    wire_clock_name(mine);
    memcpy(first, mine, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    int same = w->hosts == 1 || (mine[0] && memcmp(mine, first, sizeof first) == 0);
    MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return same;
}

/* Collective. */
static void wire_find_hosts(wire *w)
{
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &w->comm);
    MPI_Comm_rank(w->comm, &w->host_rank);
    const int first = w->host_rank == 0;
    w->host = 0;
    MPI_Allreduce(&first, &w->hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(&first, &w->host, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    w->host--;
    MPI_Bcast(&w->host, 1, MPI_INT, 0, w->comm);
    w->one_clock = wire_find_clock(w);
}

/* Bytes that this host has sent so far, 0 on all but one of its ranks. */
static int64_t wire_sent(const wire *w)
{
    char line[512], name[64];
    int64_t sum = 0;
    FILE *devices = w->host_rank == 0 ? fopen("/proc/net/dev", "r") : NULL;
    while (devices && fgets(line, sizeof line, devices)) {
        long long sent;
        if (sscanf(line, " %63[^:]: %*d %*d %*d %*d %*d %*d %*d %*d %lld", name, &sent) == 2 && strcmp(name, "lo") != 0)
            sum += sent;
    }
    if (devices)
        fclose(devices);
    return sum;
}

enum { WIRE_UNIT = 1 << 20 };

typedef struct crossing {
    int64_t start, end;  /* region of the file that all ranks access together; INT64_MAX, INT64_MIN at first */
    int64_t first, last; /* this host's part of it */
    int64_t bytes;       /* of this rank */
    int64_t staying;     /* of them in this host's part */
    int64_t n_units;     /* units of the region */
    int64_t *in_unit;    /* [n_units] bytes of this rank in each unit of the file from that of `start` on */
} crossing;

/* First for every piece of this rank: */
static void wire_widen(crossing *c, int64_t offset, int64_t length)
{
    c->start = length && offset < c->start ? offset : c->start;
    c->end = length && offset + length > c->end ? offset + length : c->end;
}

/* Then this; collective. False without memory. */
static bool wire_begin(crossing *c, const wire *w)
{
    MPI_Allreduce(MPI_IN_PLACE, &c->start, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &c->end, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    const int64_t bytes = c->end > c->start ? c->end - c->start : 0;
    c->first = c->start + bytes / w->hosts * w->host + bytes % w->hosts * w->host / w->hosts;
    c->last = c->start + bytes / w->hosts * (w->host + 1) + bytes % w->hosts * (w->host + 1) / w->hosts;
    c->n_units = bytes ? (c->end - 1) / WIRE_UNIT - c->start / WIRE_UNIT + 1 : 0;
    c->in_unit = calloc((size_t)c->n_units + 1, sizeof *c->in_unit);
    return c->in_unit != NULL;
}

/* Then for every piece again: */
static void wire_add(crossing *c, int64_t offset, int64_t length)
{
    const int64_t from = offset > c->first ? offset : c->first,
                  to = offset + length < c->last ? offset + length : c->last;
    c->bytes += length;
    c->staying += to > from ? to - from : 0;
    for (int64_t at = offset, part; at < offset + length; at += part) {
        part = (at / WIRE_UNIT + 1) * WIRE_UNIT - at;
        part = part < offset + length - at ? part : offset + length - at;
        c->in_unit[at / WIRE_UNIT - c->start / WIRE_UNIT] += part;
    }
}

/* At last this; collective. On rank 0: bytes that cross with either placement. */
static void wire_end(crossing *c, const wire *w, int64_t *even, int64_t *least)
{
    int64_t sums[2] = {c->bytes, c->bytes - c->staying}, all[2] = {0, 0}, most_bytes = 0;
    int64_t *most = calloc((size_t)c->n_units + 1, sizeof *most);
    if (!most)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Reduce(sums, all, 2, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(w->host_rank ? c->in_unit : MPI_IN_PLACE, c->in_unit, (int)c->n_units, MPI_INT64_T, MPI_SUM, 0, w->comm);
    if (w->host_rank)
        memset(c->in_unit, 0, sizeof *c->in_unit * (size_t)c->n_units);
    MPI_Reduce(c->in_unit, most, (int)c->n_units, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int64_t i = 0; i < c->n_units; i++)
        most_bytes += most[i];
    *even = all[1];
    *least = all[0] - most_bytes;
    free(most);
    free(c->in_unit);
}

#endif
