/*
 * mpiox_trace_descriptors.h - which file each descriptor, stream, handle and mapping is for, and where it stands.
 */
#ifndef MPIOX_TRACE_DESCRIPTORS_H
#define MPIOX_TRACE_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* File number of a descriptor; 0: not one whose calls are recorded. */
int32_t mpiox_trace_descriptor_file(int fd);
/* `flags` as of open(2): with O_APPEND the position is asked for. */
void mpiox_trace_descriptor_open(int fd, int32_t file, int flags);
void mpiox_trace_descriptor_close(int fd);
void mpiox_trace_descriptor_copy(int from, int to); /* dup: one position for both */
/* Where a transfer of `moved` bytes at the file's position began, which goes on behind it; unknown: _NONE. */
int64_t mpiox_trace_descriptor_advance(int fd, int64_t moved);
void mpiox_trace_descriptor_seek(int fd, int64_t position);
/* The position of a descriptor is moved by others, too: it is asked for. */
void mpiox_trace_descriptor_ask(int fd);
/* Positions are shared with another process from now on: they are asked for. */
void mpiox_trace_descriptors_share(void);

/* File number of a FILE *, DIR *, MPI_File or address of a mapping; 0: unknown. */
int32_t mpiox_trace_handle_file(int64_t handle);
void mpiox_trace_handle_open(int64_t handle, int32_t file);
void mpiox_trace_handle_close(int64_t handle);

/* A mapping is a handle by its address. Of an address inside of one: where that begins; 0: in none. */
void mpiox_trace_mapping_open(int64_t address, int64_t bytes, int32_t file);
void mpiox_trace_mapping_close(int64_t address);
int64_t mpiox_trace_mapping_of(int64_t address);

#endif
