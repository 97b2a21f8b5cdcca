/* table.h — how the exit table and the failure rules are kept in memory. Inside src/exits only. */
#ifndef EXITS_TABLE_H
#define EXITS_TABLE_H
#include "base/arena.h"
#include "exits/matcher.h"
#include "exits/rules.h"

#define EXPRESSION_NO UINT32_MAX /* no such condition */

struct exit_range { /* both ends included */
    int64_t min, max;
};

/* A container that has ended; without a code range: with a code of at least 1. */
struct exit_container_pattern {
    uint32_t name, reason, message; /* expressions */
    struct exit_range code, signal;
};

struct exit_pattern {
    uint32_t line;    /* of its file */
    struct text text; /* as it stands there, in JSON */
    bool is_runtime;  /* conditions on exit code, logs, GPUs; else on the pod and its containers */
    bool has_exit_code;
    int32_t exit_code;
    uint32_t user_log, platform_log; /* expressions */
    uint32_t name, reason, message;
    bool needs_ecc, needs_gpu_lost;
    bool is_never_retried;
    uint32_t container, container_count; /* in `containers` */
};

struct exit_rule {
    struct exit_spec spec;
    uint32_t number;                 /* in its file */
    uint32_t pattern, pattern_count; /* in `patterns` */
};

struct exit_rules {
    struct arena arena; /* all strings */
    struct {
        struct exit_rule *items;
        size_t count, room;
    } rules;
    struct {
        struct exit_pattern *items;
        size_t count, room;
    } patterns;
    struct {
        struct exit_container_pattern *items;
        size_t count, room;
    } containers;
    struct matcher *matcher; /* all expressions, by the numbers above */
};

extern const char exit_specs_yaml[]; /* made at build time from specs.yaml */
extern const size_t exit_specs_yaml_length;

#endif
