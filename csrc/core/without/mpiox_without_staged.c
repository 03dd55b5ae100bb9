/*
 * mpiox_without_staged.c - what stands for csrc/iod/staged in a build without it (-DMPIOX_STAGED=OFF).
 *
 * Every file has its own name from the start, and its close waits until it is written: the hints that ask for anything
 * else are refused (mpiox_hint_lacks()). So nobody who looks for a file has to wait for it.
 */
#include "mpiox_opener.h"

const mpiox_opener mpiox_staged_opener = {.decide = NULL};
