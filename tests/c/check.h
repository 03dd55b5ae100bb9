/*
 * check.h - the few lines that a C test program needs: CHECK() says where and goes on, check_exit() gives the verdict.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int check_failures, check_count;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        check_count++;                                                                                                 \
        if (!(condition)) {                                                                                            \
            check_failures++;                                                                                          \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                                    \
        }                                                                                                              \
    } while (0)

#define CHECK_EQUAL(actual, expected)                                                                                  \
    do {                                                                                                               \
        long long actual_value = (long long)(actual), expected_value = (long long)(expected);                          \
        check_count++;                                                                                                 \
        if (actual_value != expected_value) {                                                                          \
            check_failures++;                                                                                          \
            fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #actual, actual_value,           \
                    expected_value);                                                                                   \
        }                                                                                                              \
    } while (0)

static int check_exit(void)
{
    printf("%d checks, %d failures\n", check_count, check_failures);
    return check_count > 0 && check_failures == 0 ? 0 : 1;
}

#endif
