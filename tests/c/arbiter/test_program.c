/*
 * test_program.c - what a program is called.
 *
 *   test_program WORD...: prints the name of this command line; test_program alone: that of this process.
 */
#include <stdio.h>
#include <string.h>

#include "mpiox_program.h"

int main(int argc, char **argv)
{
    char words[16384], name[64];
    size_t bytes = 0;

    for (int i = 1; i < argc && bytes + strlen(argv[i]) + 1 < sizeof words; i++) {
        memcpy(words + bytes, argv[i], strlen(argv[i]) + 1);
        bytes += strlen(argv[i]) + 1;
    }
    if (argc > 1)
        mpiox_program_name(words, bytes, name, sizeof name);
    else
        mpiox_program_own(name, sizeof name);
    puts(name);
    return 0;
}
