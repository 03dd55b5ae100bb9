/*
 * mpiox_auto_systems.h - the file systems whose speeds `auto` uses for estimates; the library measures no speeds. Data.
 *
 * They are lustre(), unlocked(lustre()) and gpfs() of mpiio_ext.partitioning.locks: a test compares every number.
 */
#ifndef MPIOX_AUTO_SYSTEMS_H
#define MPIOX_AUTO_SYSTEMS_H

#include <math.h>
#include <stdbool.h>

typedef struct mpiox_auto_system { /* times in seconds, rates in bytes a second of one server or aggregator */
    /* who grants locks: each server, or a manager of tokens; neither: there are no locks */
    bool server_locks, tokens;
    double round_trip;         /* of a small message */
    double lock;               /* to handle one lock request, at the server or token manager */
    double request;            /* time of a server for one request, besides the data */
    double server, aggregator; /* rates */
    double wire;               /* bytes of the largest request */
} mpiox_auto_system;

extern const mpiox_auto_system mpiox_auto_lustre, mpiox_auto_unlocked, mpiox_auto_gpfs;

/* How long a server works on so many bytes of one request. */
static inline double mpiox_auto_service(const mpiox_auto_system *system, double bytes)
{
    return system->request * ceil(bytes / system->wire) + bytes / system->server;
}

#endif
