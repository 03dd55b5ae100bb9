/*
 * mpiox_fault_rules.c - reading the rules of MPIOX_FAULT and choosing the one for a call.
 *
 * mpiox_fault.h describes the language. Everything unknown is an error that contains the offending text.
 */
#include "mpiox_fault_rules.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"

#define MAX_RULES ((int)(sizeof((mpiox_fault_rules *)0)->rule / sizeof(mpiox_fault_rule)))

static const struct {
    const char *name;
    int value;
} errno_names[] = {
    {"EPERM", EPERM},
    {"ENOENT", ENOENT},
    {"EINTR", EINTR},
    {"EIO", EIO},
    {"ENXIO", ENXIO},
    {"EBADF", EBADF},
    {"EAGAIN", EAGAIN},
    {"ENOMEM", ENOMEM},
    {"EACCES", EACCES},
    {"EFAULT", EFAULT},
    {"EBUSY", EBUSY},
    {"EEXIST", EEXIST},
    {"ENODEV", ENODEV},
    {"ENOTDIR", ENOTDIR},
    {"EISDIR", EISDIR},
    {"EINVAL", EINVAL},
    {"ENFILE", ENFILE},
    {"EMFILE", EMFILE},
    {"EFBIG", EFBIG},
    {"ENOSPC", ENOSPC},
    {"ESPIPE", ESPIPE},
    {"EROFS", EROFS},
    {"EPIPE", EPIPE},
    {"ENOLCK", ENOLCK},
    {"ENAMETOOLONG", ENAMETOOLONG},
    {"ELOOP", ELOOP},
    {"EOVERFLOW", EOVERFLOW},
    {"ESTALE", ESTALE},
    {"EDQUOT", EDQUOT},
    {"ETIMEDOUT", ETIMEDOUT},
    {"ECONNRESET", ECONNRESET},
    {"ENOTCONN", ENOTCONN},
    {"EHOSTDOWN", EHOSTDOWN},
    {"EREMOTEIO", EREMOTEIO},
    {"EOPNOTSUPP", EOPNOTSUPP},
    {"ENOSYS", ENOSYS},
    {"EWOULDBLOCK", EWOULDBLOCK},
};

/* A decimal number from 0 to max; the whole text must be one. */
static int parse_number(const char *text, int64_t max, int64_t *out)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return MPIOX_E_ARG;
    errno = 0;
    intmax_t value = strtoimax(text, &end, 10);
    if (errno != 0 || *end != '\0' || value > max)
        return MPIOX_E_ARG;
    *out = value;
    return MPIOX_OK;
}

static int parse_errno(const char *text, mpiox_fault_rule *rule)
{
    int64_t number;
    for (size_t i = 0; i < sizeof errno_names / sizeof errno_names[0]; i++) {
        if (strcmp(errno_names[i].name, text) == 0) {
            rule->sys_errno = errno_names[i].value;
            return MPIOX_OK;
        }
    }
    if (parse_number(text, 4095, &number) != MPIOX_OK || number == 0)
        return MPIOX_E_ARG;
    rule->sys_errno = (int)number;
    return MPIOX_OK;
}

static int parse_op(const char *text, mpiox_fault_rule *rule)
{
    static const struct {
        const char *name;
        unsigned ops;
    } names[] = {
        {"read", MPIOX_FAULT_READ},   {"write", MPIOX_FAULT_WRITE}, {"open", MPIOX_FAULT_OPEN},
        {"close", MPIOX_FAULT_CLOSE}, {"sync", MPIOX_FAULT_SYNC},   {"any", MPIOX_FAULT_READ | MPIOX_FAULT_WRITE},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].name, text) == 0) {
            rule->ops = names[i].ops;
            return MPIOX_OK;
        }
    }
    return MPIOX_E_ARG;
}

static int parse_pair(const char *key, const char *value, mpiox_fault_rule *rule)
{
    if (strcmp(key, "op") == 0)
        return parse_op(value, rule);
    if (strcmp(key, "errno") == 0)
        return parse_errno(value, rule);
    if (strcmp(key, "rank") == 0)
        return parse_number(value, INT32_MAX, &rule->rank);
    if (strcmp(key, "after") == 0)
        return parse_number(value, INT64_MAX, &rule->after);
    if (strcmp(key, "times") == 0)
        return parse_number(value, INT64_MAX, &rule->times);
    if (strcmp(key, "short") == 0)
        return parse_number(value, INT64_MAX, &rule->short_bytes);
    if (strcmp(key, "delay_ms") == 0)
        return parse_number(value, 3600000, &rule->delay_ms);
    if (strcmp(key, "path") == 0 && value[0] != '\0' && strlen(value) < sizeof rule->path) {
        snprintf(rule->path, sizeof rule->path, "%s", value);
        return MPIOX_OK;
    }
    return MPIOX_E_ARG;
}

static int parse_rule(char *text, mpiox_fault_rule *rule, char *message, int64_t message_bytes)
{
    *rule = (mpiox_fault_rule){.ops = MPIOX_FAULT_READ | MPIOX_FAULT_WRITE, .rank = -1, .times = -1, .short_bytes = -1};
    char *rest = text;
    for (char *pair = strsep(&rest, ","); pair != NULL; pair = strsep(&rest, ",")) {
        char *value = strchr(pair, '=');
        if (value != NULL)
            *value++ = '\0';
        if (value == NULL || parse_pair(pair, value, rule) != MPIOX_OK) {
            snprintf(message, (size_t)message_bytes,
                     "cannot parse '%s%s%s' (keys: op, rank, path, after, times, "
                     "errno, short, delay_ms)",
                     pair, value != NULL ? "=" : "", value != NULL ? value : "");
            return MPIOX_E_ARG;
        }
    }
    const char *problem = NULL;
    if (rule->sys_errno == 0 && rule->short_bytes < 0 && rule->delay_ms == 0)
        problem = "a rule needs errno=, short= or delay_ms=";
    else if (rule->sys_errno != 0 && rule->short_bytes >= 0)
        problem = "errno= and short= cannot stand in one rule";
    else if (rule->short_bytes >= 0 && (rule->ops & (MPIOX_FAULT_READ | MPIOX_FAULT_WRITE)) == 0)
        problem = "short= is for reads and writes";
    if (problem != NULL) {
        snprintf(message, (size_t)message_bytes, "%s", problem);
        return MPIOX_E_ARG;
    }
    /* Callers repeat interrupted calls: a lasting error would make them loop. */
    if ((rule->sys_errno == EINTR || rule->sys_errno == EAGAIN) && rule->times < 0)
        rule->times = 1;
    return MPIOX_OK;
}

int mpiox_fault_rules_parse(const char *text, mpiox_fault_rules *rules, char *message, int64_t message_bytes)
{
    rules->count = 0;
    message[0] = '\0';
    char *copy = strdup(text), *rest = copy;
    if (copy == NULL)
        return MPIOX_E_NOMEM;
    int rc = MPIOX_OK;
    for (char *part = strsep(&rest, ";"); part != NULL && rc == MPIOX_OK; part = strsep(&rest, ";")) {
        if (part[strspn(part, " ")] == '\0')
            continue; /* a trailing ';' */
        if (rules->count == MAX_RULES) {
            snprintf(message, (size_t)message_bytes, "more than %d rules", MAX_RULES);
            rc = MPIOX_E_ARG;
        } else {
            rc = parse_rule(part, &rules->rule[rules->count++], message, message_bytes);
        }
    }
    free(copy);
    return rc;
}

void mpiox_fault_rules_select(mpiox_fault_rules *rules, const char *path, int rank)
{
    int kept = 0;
    for (int i = 0; i < rules->count; i++) {
        const mpiox_fault_rule *rule = &rules->rule[i];
        if (rule->rank >= 0 && rule->rank != rank)
            continue;
        if (rule->path[0] != '\0' && fnmatch(rule->path, path != NULL ? path : "", 0) != 0)
            continue;
        rules->rule[kept++] = *rule;
    }
    rules->count = kept;
}

mpiox_fault_action mpiox_fault_rules_apply(mpiox_fault_rules *rules, mpiox_fault_op op)
{
    mpiox_fault_action action = {.short_bytes = -1};
    bool decided = false;
    for (int i = 0; i < rules->count; i++) {
        mpiox_fault_rule *rule = &rules->rule[i];
        if ((rule->ops & op) == 0)
            continue;
        int64_t before = rule->seen++;
        if (decided || before < rule->after || (rule->times >= 0 && before - rule->after >= rule->times))
            continue;
        action = (mpiox_fault_action){
            .sys_errno = rule->sys_errno, .short_bytes = rule->short_bytes, .delay_ms = rule->delay_ms};
        decided = true;
    }
    return action;
}
