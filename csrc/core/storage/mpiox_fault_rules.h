/*
 * mpiox_fault_rules.h - the rule language of mpiox_fault.h, read and applied. Private to csrc/core/storage.
 */
#ifndef MPIOX_FAULT_RULES_H
#define MPIOX_FAULT_RULES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum mpiox_fault_op {
    MPIOX_FAULT_READ = 1,
    MPIOX_FAULT_WRITE = 2,
    MPIOX_FAULT_OPEN = 4,
    MPIOX_FAULT_CLOSE = 8,
    MPIOX_FAULT_SYNC = 16
} mpiox_fault_op;

typedef struct mpiox_fault_rule {
    unsigned ops;         /* bits of mpiox_fault_op */
    int64_t rank;         /* -1 = all */
    char path[256];       /* glob; "" = all */
    int64_t after, times; /* times -1 = for ever */
    int sys_errno;        /* 0 = none */
    int64_t short_bytes;  /* -1 = none */
    int64_t delay_ms;     /* milliseconds before the call; 0: none */
    int64_t seen;         /* matching calls so far */
} mpiox_fault_rule;

typedef struct mpiox_fault_rules {
    int count;                 /* rules */
    mpiox_fault_rule rule[16]; /* the first `count` */
} mpiox_fault_rules;

typedef struct mpiox_fault_action {
    int sys_errno;       /* 0 = none */
    int64_t short_bytes; /* -1 = none */
    int64_t delay_ms;    /* milliseconds before the call; 0: none */
} mpiox_fault_action;

/* 0, or MPIOX_E_ARG with a sentence in message. */
int mpiox_fault_rules_parse(const char *text, mpiox_fault_rules *rules, char *message, int64_t message_bytes);
/* Drop the rules that are not about this rank and file. */
void mpiox_fault_rules_select(mpiox_fault_rules *rules, const char *path, int rank);
/* Count one call and return its fate. */
mpiox_fault_action mpiox_fault_rules_apply(mpiox_fault_rules *rules, mpiox_fault_op op);

#endif
