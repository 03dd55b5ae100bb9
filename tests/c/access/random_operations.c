/*
 * random_operations.c - all operations on random descriptions: `random_operations [cases [seed]]`, or, compiled with
 * -DFUZZ -fsanitize=fuzzer, the same under libFuzzer.
 */
#include "check_operations.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    check_everything(data, bytes);
    return 0;
}

#ifndef FUZZ
static uint64_t next_random(uint64_t *state) /* xorshift64* */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

int main(int argc, char **argv)
{
    const long cases = argc > 1 ? atol(argv[1]) : 2000;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (long i = 0; i < cases; i++) {
        uint8_t data[600];
        uint64_t state = (seed + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15) + 1;
        for (size_t k = 0; k < sizeof data; k++) {
            data[k] = (uint8_t)(next_random(&state) >> 56);
        }
        fprintf(stderr, "\rcase seed %llu ", (unsigned long long)(seed + (uint64_t)i));
        check_everything(data, sizeof data);
    }
    fprintf(stderr, "\n");
    printf("%ld cases passed\n", cases);
    return 0;
}
#endif
