/*
 * random_operations.c - all operations on random descriptions: `random_operations [cases [seed]]`, or, compiled with
 * -DFUZZ -fsanitize=fuzzer, under libFuzzer.
 */
#include "check_operations.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    check_everything(data, bytes);
    return 0;
}

#include "fuzz_main.h"
