/* rules.h — the exit-spec table and the failure rules: what an exit is called, who caused it,
 * what follows, what to do about it; and how it is recognised.
 *
 * Pure. Built from the table that is part of the program (src/exits/specs.yaml) and an
 * operator's file in the same format, OpenPAI's own. Immutable: a reload makes new rules and the
 * server swaps them, so that tasks already running are judged by the new ones. Any number of
 * threads may judge with the same rules at once.
 *
 * Three file shapes are read: OpenPAI's exit specification (`spec:` list), its runtime rules (a
 * list of `containerExitCode`, `patterns`) and FrameworkController's `podFailureSpec`. See
 * docs/operator/exit-specs.md.
 *
 * Expressions are RE2's (matcher.h): no look-around, no references back, no possessive or atomic
 * groups. They are searched, not anchored.
 */
#ifndef EXITS_RULES_H
#define EXITS_RULES_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct problems;

enum {
    EXIT_SPECS_MAX = 1000,
    EXIT_PATTERNS_MAX = 4000, /* in all */
    EXIT_PATTERN_BYTES_MAX = 64 * 1024,
    EXIT_CODE_MIN = -8000,
    EXIT_CODE_MAX = 256,
    EXIT_CODE_UNKNOWN = 255,     /* row of codes 1…255 that are not listed */
    EXIT_CODE_ABNORMAL = 256,    /* setup failed without a word; codes above 255 */
    EXIT_CODE_UNDEFINED = -8000, /* row of negative codes that are not listed */
};

/* One row. Strings are never NULL; "" when the file says nothing. */
struct exit_spec {
    int32_t code;
    const char *phrase, *issuer, *causer, *type, *stage, *behavior, *reaction, *reason;
    const char *const *repro;
    size_t repro_count;
    const char *const *solution;
    size_t solution_count;
    uint8_t attributes; /* EXIT_*, from the behaviour */
    bool is_operators;  /* not from the built-in table */
};

struct exit_rules;

/* The built-in table extended by the operator's file (may be empty). An entry of the operator's
 * replaces the built-in one of its code; new ones are tried before all built-in ones.
 * `builtin: false` drops the built-in rules (the rows stay). NULL when the file has errors: all of
 * them are in `problems`, by line and column. */
struct exit_rules *exit_rules_new(struct text operators_file, struct problems *problems);
void exit_rules_free(struct exit_rules *rules);

/* Rows in file order: the operator's new ones first. */
size_t exit_rules_count(const struct exit_rules *rules);
const struct exit_spec *exit_rules_at(const struct exit_rules *rules, size_t index);
/* How many patterns recognise it; 0: the row only describes a code. */
size_t exit_rules_patterns(const struct exit_rules *rules, size_t index);
/* One of them as its file has it, in JSON. */
struct text exit_rules_pattern(const struct exit_rules *rules, size_t index, size_t pattern);
/* The row that describes a code; never NULL: see EXIT_CODE_*. 0 is "Succeeded". */
const struct exit_spec *exit_rules_find(const struct exit_rules *rules, int32_t code);
/* The same, NULL when the code itself is not listed. */
const struct exit_spec *exit_rules_exact(const struct exit_rules *rules, int32_t code);

/* Where a rule stands, for people: as an exit_verdict names it. */
struct exit_source {
    uint32_t number;   /* of the entry in its list, from 1 */
    uint32_t pattern;  /* of its patterns, from 1 */
    uint32_t line;     /* where the pattern begins in its file */
    bool is_operators; /* of the operator's file, not of the built-in table */
};
struct exit_source exit_rules_source(const struct exit_rules *rules, size_t rule, size_t pattern);

#endif
