/*
 * mpiox_fault.h - making file-system calls fail on purpose: a back end that wraps another one.
 *
 * The environment variable MPIOX_FAULT of a library that is built for tests (mpiox_testing.h) has rules separated by
 * ';', each a list of KEY=VALUE separated by ',':
 *
 *   op=read|write|open|close|sync|any  calls that the rule is for; "any" is read and write        (default any)
 *   rank=N                        only on this rank of the file's communicator                      (default all)
 *   path=GLOB                     only files whose path matches, as fnmatch(3)                      (default all)
 *   after=N                       let N matching calls of a handle pass first                       (default 0)
 *   times=N                       then act on N calls, and no more    (default: for ever; 1 for EINTR and EAGAIN)
 *   errno=NAME                    the call fails with this error: ENOSPC, EIO, ... or a number; or
 *   short=BYTES                   the call moves at most this many bytes; 0: end of file / nothing written; or
 *   delay_ms=N                    the call sleeps first, then is carried out (may stand beside errno or short)
 *
 * Every process prints once on standard error that fault injection is on.
 *
 * Example: MPIOX_FAULT="op=write,rank=1,after=3,errno=ENOSPC;op=read,short=100"
 * A call is one that reaches the back end under test: a request, the rest of a request after a short transfer, a piece
 * of a list. The first rule that acts on a call decides; every rule that matches counts the call. A rule that cannot be
 * parsed is reported once on standard error, and every open fails with MPIOX_E_ARG: a typing error must not make a test
 * of a fault pass.
 */
#ifndef MPIOX_FAULT_H
#define MPIOX_FAULT_H

#include "mpiox_storage.h"

/* Open path with these options, through the rules. 0 or MPIOX_E_IO, MPIOX_E_ARG (bad rule), MPIOX_E_NOMEM. */
int mpiox_fault_open(const char *rules, const char *path, int flags, int rank, const mpiox_storage_options *options,
                     mpiox_storage **out, mpiox_error *error);

#endif
