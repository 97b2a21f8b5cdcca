/* life.h — what the files of the program engine-life share: one engine for all their tests. */
#ifndef TESTS_SYSTEM_ENGINE_LIFE_H
#define TESTS_SYSTEM_ENGINE_LIFE_H
#include "world.h"
#include <cmocka.h>

enum { PATIENCE_MS = 120000 }; /* a virtual machine beside others */

extern struct world world;

struct life_tests {
    const struct CMUnitTest *items;
    size_t count;
};
extern const struct life_tests limits_tests, restart_tests;

int kill_task(uint64_t attempt, uint32_t grace_ms, const char *reason);
/* Waits for it. */
const struct seen *end_of(uint64_t attempt);
void await_log(uint64_t attempt, const char *line);
/* Nothing of a task is left: processes, control groups, mounts, runtime state. */
void assert_nothing_left(uint64_t attempt);

#endif
