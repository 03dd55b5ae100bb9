/*
 * mpiox_hints_text.h - hints as text: the grammars of variables and of hints files. Internal to csrc/core/hints.
 *
 * MPIOX_HINTS:   text  = rule *( "," rule )
 *                rule  = [ glob ":" ] hint *( ":" hint )      without a glob: every file
 *                hint  = name "=" value
 *                name  = letter *( letter | digit | "_" )
 * A ':' inside a value ends it only if a hint (name "=") follows; a ',' inside a value ends it only if a rule (a glob
 * without ',', ':', '=' then ':' and a hint, or a hint itself) follows. So cb_config_list=*:* and
 * cb_config_list=a:2,b:1 need no quotes. Double quotes around a value or glob, or a backslash before a character, make
 * such characters ordinary ones. Blanks around globs, names and values do not count.
 *
 * Files:         [glob]             rules for matching files from here to the next section; before any: every file
 *                name = value       the value may stand in double quotes
 *                # or ; comment     whole lines, or after blanks
 *
 * A glob is matched (fnmatch) against the path as the program gave it and against its last component.
 *
 * MPICH_MPIIO_HINTS (Cray's intro_mpi): the rules of MPIOX_HINTS, except that each has a glob. The glob is matched
 * against the path alone, and a backslash in a glob is fnmatch's. Only the FIRST rule whose glob matches counts. Values
 * stand between '#' instead of double quotes: cb_config_list=#a:2,b:1#.
 *
 * ROMIO_HINTS (ROMIO's user guide, section "Systemwide Hints"; adio/common/system_hints.c): a file of lines
 *                name value         blanks or tabs between them, nothing behind them; for every file
 *                # comment
 * The FIRST value of a name counts, and ROMIO reads 4096 bytes.
 */
#ifndef MPIOX_HINTS_TEXT_H
#define MPIOX_HINTS_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "mpiox_hints_report.h"

/* Called for each hint whose glob matches, in order (a later hint overrides). where: a variable's name or
 * "FILE:LINE". */
typedef void (*mpiox_hints_visit)(const char *name, const char *value, const char *where, void *context);

/* path NULL: every rule matches (for a check). The function reports and skips parts with mistakes. */
void mpiox_hints_scan_text(const char *text, const char *path, mpiox_hints_visit visit, mpiox_hints_report report,
                           void *context);
void mpiox_hints_scan_cray(const char *text, const char *path, mpiox_hints_visit visit, mpiox_hints_report report,
                           void *context);
/* file: the stream's name, for messages. The function reports and skips lines with mistakes or a repeated name. */
void mpiox_hints_scan_romio(FILE *stream, const char *file, mpiox_hints_visit visit, mpiox_hints_report report,
                            void *context);
/* must_exist: the function reports a file that it cannot read. */
void mpiox_hints_scan_file(const char *file, int must_exist, const char *path, mpiox_hints_visit visit,
                           mpiox_hints_report report, void *context);

/* Cut a comment and outer blanks off a line of a hints file; returns the first character of the rest. */
char *mpiox_hints_tidy(char *line);
/* Split "name = value" in place; false: the line has another form. */
bool mpiox_hints_assignment(char *line, char **name, char **value);

/* "64k", "1MiB", "4096": powers of 1024; "1MB": of 1000. 0 or MPIOX_E_ARG. */
int mpiox_hints_parse_bytes(const char *text, int64_t *bytes);

/* Nearest hint name by edit distance, ours or an MPI library's; NULL when none is near. */
const char *mpiox_hints_nearest(const char *name);
/* Is this a hint of ROMIO, Open MPI or the standard that this library only passes on? is_bytes: a size, maybe with a
 * suffix. */
int mpiox_hints_is_foreign(const char *name, int *is_bytes);

#endif
