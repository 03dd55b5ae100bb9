/*
 * batch.h - several runs of a test program in one launch.
 *
 * batch_run() reads a list of runs from a file, one a line: words with tabs between them, first the variables that are
 * set while it runs (NAME=VALUE), then "--", then the program's arguments. Before each run rank 0 prints "run INDEX".
 * The library reads its variables whenever a file is opened, so that runs in one process can differ in them.
 */
#ifndef BATCH_H
#define BATCH_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_WORDS = 32, BATCH_LINE = 8192 };

/* Cut a line into words; returns how many. */
static inline int batch_words(char *line, char **words)
{
    char *rest = line;
    int n = 0;

    line[strcspn(line, "\n")] = '\0';
    while (rest != NULL && n < BATCH_WORDS)
        words[n++] = strsep(&rest, "\t");
    return n;
}

static inline void batch_set(char *word, int set)
{
    char *value = strchr(word, '=');

    *value = '\0';
    if (set)
        setenv(word, value + 1, 1);
    else
        unsetenv(word);
    *value = '=';
}

/* Between MPI_Init and MPI_Finalize: run one(argc, argv) for each line; argv[0] is the list. */
static inline void batch_run(const char *list, void (*one)(int argc, char **argv))
{
    static char line[BATCH_LINE];
    FILE *file = fopen(list, "r");
    char *words[BATCH_WORDS + 1] = {NULL};

    for (int index = 0; file != NULL && fgets(line, sizeof line, file) != NULL; index++) {
        int n = batch_words(line, words), variables = 0, me;

        words[n] = NULL;
        MPI_Comm_rank(MPI_COMM_WORLD, &me);
        if (me == 0) {
            printf("run %d\n", index);
            fflush(stdout);
        }
        while (variables < n && strcmp(words[variables], "--") != 0)
            batch_set(words[variables++], 1);
        one(n - variables, words + variables);
        for (int i = 0; i < variables; i++)
            batch_set(words[i], 0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (file == NULL)
        MPI_Abort(MPI_COMM_WORLD, 6);
    fclose(file);
}

#endif
