/*
 * mpiox_trace_system.h - the system calls of the tracer itself.
 *
 * They do not go through the C library's functions, which are wrapped, and leave errno alone. For any error each
 * returns a negative number, mpiox_trace_map() NULL.
 */
#ifndef MPIOX_TRACE_SYSTEM_H
#define MPIOX_TRACE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int mpiox_trace_create(const char *path);           /* a new file, for reading and writing */
int mpiox_trace_open(const char *path);             /* one that is there */
int mpiox_trace_share(const char *path);            /* one that is there, or a new one; for all processes of the user */
int mpiox_trace_access(const char *path, int mode); /* 0: it is there, and may be used so */
void mpiox_trace_remove(const char *path);
int mpiox_trace_rename(const char *from, const char *to);
void mpiox_trace_touch(const char *path); /* its times are now */
/* A socket that is connected to an abstract name, of a high number. */
int mpiox_trace_connect(const char *name);
void mpiox_trace_close(int fd);
/* Make the file at least `end` bytes long and take the disk space of [start, end). */
int mpiox_trace_allocate(int fd, int64_t start, int64_t end);
int mpiox_trace_cut(int fd, int64_t bytes);
void *mpiox_trace_map(int fd, int64_t offset, int64_t bytes); /* fd -1: memory */
void mpiox_trace_unmap(void *address, int64_t bytes);
int64_t mpiox_trace_position(int fd);                               /* of an open file */
int mpiox_trace_link_text(const char *path, char *text, int bytes); /* readlink, ended by 0; its length */
int mpiox_trace_read_text(const char *path, char *text, int bytes); /* of a short file, ended by 0; its length */
int mpiox_trace_folder(char *text, int bytes);                      /* getcwd; its length */
void mpiox_trace_make_folder(const char *path);
void mpiox_trace_pause(void);        /* let another thread run */
void mpiox_trace_rest(void);         /* for 1 ms */
int64_t mpiox_trace_monotonic(void); /* CLOCK_MONOTONIC, ns; mpiox_trace_clock.h has it cheaper */
int64_t mpiox_trace_unix(void);      /* CLOCK_REALTIME, ns */

#endif
