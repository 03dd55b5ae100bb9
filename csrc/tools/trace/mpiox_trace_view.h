/*
 * mpiox_trace_view.h - the file type of a view as text, so that the same view can be set when a trace is carried out.
 *
 * Problem.   The size and the extent of a file type do not show where its bytes are.
 * Algorithm. MPI_Type_get_envelope and MPI_Type_get_contents take the type apart; the text has its constructor, and
 *            types inside of it likewise. Numbers are bytes if MPI allows both. `pioneer/path/file_types.py` reads it:
 *
 *    8                     a predefined type of so many bytes
 *    C(n;T)                contiguous
 *    V(n;length;stride;T)  vector; the stride in bytes
 *    B(length;d,d;T)       blocks of one length; displacements in bytes
 *    I(l,l;d,d;T)          blocks of their own lengths
 *    S(l,l;d,d;T;T)        struct
 *    A(sizes;subsizes;starts;order;T)   subarray; order 0 of C, 1 of Fortran
 *    D(ranks;rank;sizes;kinds;arguments;processes;order;T)  darray; kinds 0 none, 1 block, 2 cyclic;
 *                          argument -1: the default one
 *    R(lower;extent;T)     resized
 *
 * Guarantee. The text is the whole type, or there is none: it is too long, or its constructor is not in the list.
 */
#ifndef MPIOX_TRACE_VIEW_H
#define MPIOX_TRACE_VIEW_H

#include <mpi.h>
#include <stdbool.h>

/* Write the text, ended by 0. */
bool mpiox_trace_view_text(MPI_Datatype type, char *text, int bytes);

#endif
