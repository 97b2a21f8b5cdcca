/* scratch.h — the memory of a test of this room, and JSON in it. */
#ifndef TEST_KUBERNETES_SCRATCH_H
#define TEST_KUBERNETES_SCRATCH_H
#include "base/arena.h"
#include "base/text.h"

struct doc;

extern struct arena arena; /* of the test that runs: made before it, released after it */

/* For cmocka_unit_test_setup_teardown. */
int setup(void **state);
int teardown(void **state);

/* What must be JSON without a fault, in that memory. */
const struct doc *json_of(struct text text);
const struct doc *json(const char *text);

#endif
