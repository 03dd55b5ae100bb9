/* process.h - what this process holds, as /proc/self has it. A test program includes it once. */
#ifndef PROCESS_H
#define PROCESS_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* Resident memory of a kind in KiB: "RssAnon" its own, "RssShmem" shared (pages count with whoever touched them). */
static inline long process_kib(const char *kind)
{
    char line[256], name[32];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%31[^:]: %ld", name, &kib) == 2 && strcmp(name, kind) == 0)
            break;
        else
            kib = 0;
    if (file != NULL)
        fclose(file);
    return kib;
}

/* Open ones, and a few more for the counting, always as many. */
static inline long process_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    long count = 0;

    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

#endif
