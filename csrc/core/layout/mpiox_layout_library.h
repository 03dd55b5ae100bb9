/* mpiox_layout_library.h - functions of libraries that are opened if they are installed. */
#ifndef MPIOX_LAYOUT_LIBRARY_H
#define MPIOX_LAYOUT_LIBRARY_H

/* The named function of the first library that has it, or NULL. libraries: names as dlopen(3) takes them, NULL at the
 * end. A library that was opened stays open. Blocking; thread-safe. */
void *mpiox_layout_library_function(const char *const *libraries, const char *function);

#endif
