/*
 * mpiox_auto_rules.h - the form of the rules of `auto`. To decide by them: mpiox_auto_select.h.
 *
 * A rule has a condition and a choice. A condition is a set of cases, each one bit. Cases belong to questions; facts
 * answer every question with one case. A rule applies if, for each of its questions, it names the case of the answer.
 */
#ifndef MPIOX_AUTO_RULES_H
#define MPIOX_AUTO_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_auto_systems.h"
#include "mpiox_partition.h"

typedef enum mpiox_auto_topic { /* the topics of rules, in the order in which they are decided */
                                MPIOX_TOPIC_AGGREGATORS = 0,
                                MPIOX_TOPIC_WINDOW,
                                MPIOX_TOPIC_METHOD,
                                MPIOX_TOPIC_AGAIN,
                                MPIOX_TOPIC_ESTIMATE,
                                MPIOX_TOPIC_REQUESTS,
                                MPIOX_TOPICS
} mpiox_auto_topic;

/* X(case, question, text). S: servers, or subfiles; A: aggregators, or their largest possible number before the number
 * is decided. */
#define MPIOX_AUTO_CASES(X)                                                                                            \
    X(LOCAL, LOCKS, "one page cache")                                                                                  \
    X(SERVER, LOCKS, "locks by each server")                                                                           \
    X(TOKEN, LOCKS, "tokens")                                                                                          \
    X(UNLOCKED, LOCKS, "no client locks")                                                                              \
    X(UNKNOWN, LOCKS, "unknown locking")                                                                               \
    X(ONE_SERVER, SERVERS, "S = 1")                                                                                    \
    X(SERVERS_FIT, SERVERS, "1 < S <= A")                                                                              \
    X(MORE_SERVERS, SERVERS, "S > A")                                                                                  \
    X(FACTOR, MATCH, "A divides S")                                                                                    \
    X(MULTIPLE, MATCH, "S divides A")                                                                                  \
    X(NEAR, MATCH, "lowering A to a factor or multiple of S idles one in eight or less")                               \
    X(APART, MATCH, "lowering A to a factor or multiple of S idles more than one in eight")                            \
    X(FEW_STRIPES, STRIPES, "fewer stripes than A")                                                                    \
    X(ENOUGH_STRIPES, STRIPES, "at least A stripes")                                                                   \
    X(LARGE_STRIPES, STRIPE_SIZE, "stripes known, larger than 1 MiB")                                                  \
    X(OTHER_STRIPES, STRIPE_SIZE, "stripes unknown, or of 1 MiB or less")                                              \
    X(HASHED, PLACES, "stripes placed by a hash")                                                                      \
    X(ROUND_ROBIN, PLACES, "stripe i on server i mod S")                                                               \
    X(HELD, HISTORY, "not the first collective with file domains since the file was opened")                           \
    X(FIRST, HISTORY, "the first collective with file domains since the file was opened")                              \
    X(CONTAINER, STORAGE, "stored as subfiles")                                                                        \
    X(ONE_FILE, STORAGE, "one file")

typedef enum mpiox_auto_question {
    MPIOX_QUESTION_LOCKS,
    MPIOX_QUESTION_SERVERS,
    MPIOX_QUESTION_MATCH,
    MPIOX_QUESTION_STRIPES,
    MPIOX_QUESTION_STRIPE_SIZE,
    MPIOX_QUESTION_PLACES,
    MPIOX_QUESTION_HISTORY,
    MPIOX_QUESTION_STORAGE,
    MPIOX_QUESTIONS
} mpiox_auto_question;

#define MPIOX_AUTO_CASE(name, question, text) MPIOX_CASE_##name,
typedef enum mpiox_auto_case { MPIOX_AUTO_CASES(MPIOX_AUTO_CASE) MPIOX_CASES } mpiox_auto_case;

/* The choice of a rule whose topic is not "method". */
typedef enum mpiox_auto_take {
    MPIOX_TAKE_TWO_A_NODE,
    MPIOX_TAKE_NICS,
    MPIOX_TAKE_SERVERS,
    MPIOX_TAKE_LOWERED,
    MPIOX_TAKE_FACTOR,
    MPIOX_TAKE_ALL,
    MPIOX_TAKE_MEBIBYTE,
    MPIOX_TAKE_STRIPE,
    MPIOX_TAKE_WHOLE,
    MPIOX_TAKE_STRIPES,
    MPIOX_TAKE_RULE,
    MPIOX_TAKE_KEPT,
    MPIOX_TAKE_ANEW,
    MPIOX_TAKE_FASTEST,
    MPIOX_TAKES
} mpiox_auto_take;

typedef struct mpiox_auto_rule {
    mpiox_auto_topic topic;               /* the decision that the rule makes */
    uint32_t when;                        /* 1 << case */
    const mpiox_partition_method *method; /* topic "method" */
    mpiox_auto_take take;                 /* other topics */
    const char *reason, *source;          /* why; the publication or measurement. Static text */
    const mpiox_auto_system *system;      /* "estimate": the system whose speeds count; NULL: no estimate */
} mpiox_auto_rule;

/* The first rule of a topic whose condition the cases fulfil; the last rule of a topic has none. */
const mpiox_auto_rule *mpiox_auto_rule_find(mpiox_auto_topic topic, uint32_t cases);

/* The text of a case; static. */
const char *mpiox_auto_case_text(mpiox_auto_case which);

/* The rules as text, for documentation and tests: topic ("method"...), condition, choice, reason, and source. The first
 * matching rule of a topic counts. MPIOX_E_ARG: no such rule. */
typedef struct mpiox_auto_rule_text {
    char topic[32], when[192], takes[384]; /* topic; condition; choice */
    const char *reason, *source;           /* static */
} mpiox_auto_rule_text;

int mpiox_auto_rule_count(void);
int mpiox_auto_rule_describe(int index, mpiox_auto_rule_text *out);

#endif
