/*
 * fuzz_main.h - the main program of a fuzz target without libFuzzer: PROGRAM [cases [seed]] feeds it pseudo-random
 * bytes. Compile with -DFUZZ -fsanitize=fuzzer to leave it out. Include once, after LLVMFuzzerTestOneInput().
 */
#ifndef FUZZ
#include "random_trees.h"

int main(int argc, char **argv)
{
    const long cases = argc > 1 ? atol(argv[1]) : 1000;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (case_seed = seed; case_seed < seed + (uint64_t)cases; case_seed++) {
        uint8_t data[600];
        uint64_t state = case_seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
        for (size_t k = 0; k < sizeof data; k++) { /* xorshift64* */
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            data[k] = (uint8_t)(state * UINT64_C(2685821657736338717) >> 56);
        }
        LLVMFuzzerTestOneInput(data, sizeof data);
    }
    printf("%ld cases passed\n", cases);
    return 0;
}
#endif
