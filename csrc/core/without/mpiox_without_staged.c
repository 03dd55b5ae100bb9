/*
 * mpiox_without_staged.c - what stands for csrc/iod/staged in a build without it (-DMPIOX_STAGED=OFF).
 *
 * Every file has its own name from the start, and its close waits until it is written: hints that request anything else
 * are refused (mpiox_hint_lacks()). So no call has to wait for a file.
 */
#include "mpiox_opener.h"

const mpiox_opener mpiox_staged_opener = {.decide = NULL};
