/* The limits of what stands under `extras`. */
#include "parse.h"
#include "unit.h"

#include "base/memory.h"

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

/* Storages are not mounted over what the platform needs. */
static void test_storage_places(void **state)
{
    static const char *const TAKEN[] = {"/", "proc", "/dev/shm", "/skep", "/skep/run", "/sys/"};
    struct buf text = BUF_INIT;
    struct parse p;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(TAKEN); i++) {
        buf_format(&text, HELLO "extras:\n  storages: [{name: s, mountPath: %s}]\n", TAKEN[i]);
        refused(&text, "cannot be mounted there");
    }
    buf_release(&text);
    parse(&p, HELLO "extras:\n  storages: [{name: s, mountPath: /skepticism}, {name: t}]\n");
    assert_int_equal(p.result, 0);
    assert_int_equal(p.parsed.spec->storage_count, 2);
    assert_int_equal(p.parsed.spec->storages[0].line, p.parsed.spec->storages[1].line);
    assert_int_not_equal(p.parsed.spec->storages[0].line, 0);
    spec_storage_add(p.parsed.spec, "mine");
    assert_int_equal(p.parsed.spec->storage_count, 3);
    assert_string_equal(p.parsed.spec->storages[0].mount_path, "/skepticism");
    assert_string_equal(p.parsed.spec->storages[2].mount_path, "/mnt/mine");
    parse_free(&p);
}

/* A wish that is checked when the job is submitted. */
static void test_host_network(void **state)
{
    struct buf text = BUF_INIT;
    struct parse p;
    (void)state;
    parse(&p, HELLO "extras: {hostNetwork: true}\n");
    assert_int_equal(p.result, 0);
    assert_true(p.parsed.spec->wants_host_network);
    parse_free(&p);
    parse(&p, HELLO "extras: {gangAllocation: true}\n");
    assert_false(p.parsed.spec->wants_host_network);
    parse_free(&p);
    buf_string(&text, HELLO "extras: {hostNetwork: please}\n");
    refused(&text, "extras.hostNetwork");
    buf_release(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_host_network),
    cmocka_unit_test(test_extras),
    cmocka_unit_test(test_storage_places),
};
UNIT_FILE(tests, NULL, NULL);
