/* openpai_world.h — what an OpenPAI cluster's files are imported into, for the tests of all of
 * them. */
#ifndef TEST_CLI_OPENPAI_WORLD_H
#define TEST_CLI_OPENPAI_WORLD_H
#include "base/arena.h"
#include "cli/openpai.h"

struct openpai_world {
    struct arena arena;
    struct problems problems;
    struct openpai_input input; /* its folder is /new */
    struct openpai_output output;
};

/* Set-up and tear-down of a test; its state is a struct openpai_world. */
int openpai_world_make(void **state);
int openpai_world_free(void **state);
/* YAML that has no error. */
const struct doc *openpai_world_read(struct openpai_world *world, const char *yaml);
/* Import anew, with this as the settings of services. */
void openpai_world_import(struct openpai_world *world, const char *services);

#endif
