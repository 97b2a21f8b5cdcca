/* The limits of what stands under `extras`. */
#include "parse.h"
#include "unit.h"

/* Two old storage plugins together, and a map of placements longer than the roles. */
static void test_extras(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    buf_string(&text, HELLO "extras:\n  com.microsoft.pai.runtimeplugin:\n");
    for (int plugin = 0; plugin < 2; plugin++) {
        buf_string(&text, "    - {plugin: teamwise_storage, parameters: {storageConfigNames: [");
        for (int i = 0; i < 200; i++)
            buf_format(&text, "s%d, ", plugin * 200 + i);
        buf_string(&text, "]}}\n");
    }
    refused(&text, "more than 256 storages");
    buf_string(&text, HELLO "extras:\n  hivedScheduler:\n    taskRoles:\n      worker: {}\n");
    for (int i = 0; i < SPEC_ROLES_MAX; i++)
        buf_format(&text, "      r%d: {}\n", i);
    refused(&text, "extras.hivedScheduler.taskRoles: must be at most 256 entries, not 257");
    buf_release(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_extras),
};
UNIT_FILE(tests, NULL, NULL);
