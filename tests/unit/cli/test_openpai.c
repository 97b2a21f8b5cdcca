/* No setting of an OpenPAI cluster is passed over in silence, whatever its kind.
 *
 * Covers: src/cli/openpai_rules.c */
#include "openpai_world.h"
#include "unit.h"

#include <string.h>

/* The kind of the first note on a setting; -1: there is none. */
static int kind_of(const struct openpai_world *world, const char *path)
{
    for (size_t i = 0; i < world->output.note_count; i++)
        if (strcmp(world->output.notes[i].path, path) == 0)
            return (int)world->output.notes[i].kind;
    return -1;
}

static bool has_line(const struct buf *text, const char *line)
{
    return strstr(buf_cstr(text), line) != NULL;
}

static unsigned lines_of(const struct buf *text, const char *part)
{
    unsigned count = 0;
    for (const char *at = buf_cstr(text); (at = strstr(at, part)); at++)
        count++;
    return count;
}

static bool wants_users(const struct openpai_world *world)
{
    for (size_t i = 0; i < world->output.note_count; i++)
        if (strcmp(world->output.notes[i].file, "users") == 0)
            return true;
    return false;
}

/* Those of the cluster's secrets; one that the configuration describes is made once. */
static void groups_of_the_secrets(void **state)
{
    struct openpai_world *world = *state;
    world->input.groups = openpai_world_read(
        world, "[{secret: 6c6162, groupname: lab, description: who trains, externalName: '', "
               "extension: {acls: {admin: false, virtualClusters: [vision]}}}, "
               "{groupname: boss, extension: {acls: {admin: true}}}, {ca.crt: x}]");
    openpai_world_import(world,
                         "authentication: {group-manager: {grouplist: [{groupname: boss}]}}\n");
    assert_true(
        has_line(&world->output.groups, "group 'lab' --description 'who trains' --vc 'vision'\n"));
    assert_int_equal(lines_of(&world->output.groups, "\ngroup 'boss'"), 1);
    assert_int_equal(world->output.group_count, 2);
    assert_true(wants_users(world));
    world->input.has_users = true;
    openpai_world_import(world, "{}\n");
    assert_false(wants_users(world));
}

static void each_setting_has_a_note(void **state)
{
    struct openpai_world *world = *state;
    openpai_world_import(
        world, "rest-server: {jwt-secret: a, schedule-port-start: '20000', unheard-of: 1}\n"
               "prometheus: {port: 1}\nmine: {a: 1}\npylon: {port: 80}\ngrafana:\n");
    assert_int_equal(kind_of(world, "rest-server.jwt-secret"), NOTE_GONE);
    assert_int_equal(kind_of(world, "rest-server.schedule-port-start"), NOTE_TAKEN);
    assert_int_equal(kind_of(world, "rest-server.unheard-of"), NOTE_GONE);
    assert_int_equal(kind_of(world, "prometheus"), NOTE_GONE);
    assert_int_equal(kind_of(world, "mine"), NOTE_GONE);
    assert_int_equal(kind_of(world, "pylon.port"), NOTE_TO_DO);
    assert_int_equal(kind_of(world, "hivedscheduler.config"), NOTE_TAKEN);
    assert_true(has_line(&world->output.skepd, "\n  portFirst: 20000\n"));
    assert_false(has_line(&world->output.skepd, "cellsFile"));
}

static void what_is_of_another_kind_is_not_taken(void **state)
{
    struct openpai_world *world = *state;
    static const char *const PATHS[] = {"rest-server.schedule-port-start",
                                        "rest-server.schedule-port-end",
                                        "rest-server.default-pai-admin-username",
                                        "hivedscheduler.config",
                                        "pylon.ssl",
                                        "authentication.OIDC"};
    openpai_world_import(world,
                         "rest-server: {schedule-port-start: many, schedule-port-end: [1], "
                         "default-pai-admin-username: {a: 1}}\n"
                         "hivedscheduler: {config: {physicalCluster: {}}}\npylon: {ssl: yes}\n"
                         "authentication: {OIDC: true, AAD: [1], group-manager: 7}\n");
    for (size_t i = 0; i < COUNT_OF(PATHS); i++)
        assert_int_equal(kind_of(world, PATHS[i]), NOTE_TO_DO);
    openpai_world_import(world, "hivedscheduler: {config: 'physicalCluster: ['}\n");
    assert_int_equal(kind_of(world, "hivedscheduler.config"), NOTE_TO_DO);
    assert_int_equal(world->output.cells.length, 0);
    assert_int_equal(world->output.groups.length, 0);
    openpai_world_import(world, "rest-server:\nhivedscheduler:\nauthentication:\n");
    assert_false(has_line(&world->output.skepd, "adminName"));
}

static void without_hived_there_are_no_cells(void **state)
{
    struct openpai_world *world = *state;
    world->input.config =
        openpai_world_read(world, "enable_hived_scheduler: 'false'\nnew_key: [1]\n");
    openpai_world_import(world, "hivedscheduler: {config: 'physicalCluster: {}'}\n");
    assert_int_equal(kind_of(world, "hivedscheduler.config"), NOTE_GONE);
    assert_int_equal(kind_of(world, "new_key"), NOTE_GONE);
    assert_true(has_line(&world->output.skepd, "  policy: \"spread\"\n"));
    assert_int_equal(world->output.cells.length, 0);
}

static void nothing_ends_a_scalar(void **state)
{
    struct openpai_world *world = *state;
    openpai_world_import(
        world, "rest-server: {default-pai-admin-username: \"a\\\"\\nlog: {level: debug}\"}\n");
    assert_true(has_line(&world->output.skepd, "adminName: \"a\\\"\\nlog: {level: debug}\"\n"));
}

static void a_worker_that_no_cell_names(void **state)
{
    struct openpai_world *world = *state;
    world->input.layout = openpai_world_read(world, "machine-list:\n"
                                                    "- {hostname: a, pai-worker: 'true'}\n"
                                                    "- {hostname: b, pai-worker: 'true'}\n"
                                                    "- {hostname: c, pai-master: 'true'}\n- 7\n");
    openpai_world_import(
        world, "hivedscheduler:\n  config: |\n    physicalCluster:\n      physicalCells:\n"
               "      - {cellAddress: 0, cellChildren: [{cellAddress: a/0}]}\n"
               "    virtualClusters: {default: {}, \"it's\": {}}\n");
    assert_int_equal(kind_of(world, "machine-list: a"), -1);
    assert_int_equal(kind_of(world, "machine-list: b"), NOTE_TO_DO);
    assert_int_equal(kind_of(world, "machine-list: c"), -1);
    assert_true(has_line(&world->output.groups, "\ngroup 'it'\\''s' --vc 'it'\\''s'\n"));
    assert_false(has_line(&world->output.groups, "group 'default'"));
}

/* A group that has the name of a virtual cluster keeps what the files give it. */
static void a_group_is_made_once(void **state)
{
    struct openpai_world *world = *state;
    openpai_world_import(world,
                         "hivedscheduler:\n  config: |\n    physicalCluster: {}\n"
                         "    virtualClusters: {default: {}, a: {}, b: {}, c: {}, d: {}}\n"
                         "authentication:\n  group-manager:\n"
                         "    admin-group: {groupname: c}\n    default-group: {groupname: d}\n"
                         "    grouplist:\n    - 7\n    - groupname: a\n"
                         "      extension: {acls: {virtualClusters: [a, b]}}\n");
    assert_true(has_line(&world->output.groups, "\ngroup 'a' --vc 'a,b'\n"));
    assert_false(has_line(&world->output.groups, "\ngroup 'a' --vc 'a'\n"));
    assert_true(has_line(&world->output.groups, "\ngroup 'b' --vc 'b'\n"));
    assert_true(has_line(&world->output.groups, "\ngroup 'c' --admin yes\n"));
    assert_false(has_line(&world->output.groups, "--vc 'c'"));
    assert_false(has_line(&world->output.groups, "--vc 'd'"));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, openpai_world_make, openpai_world_free)
static const struct CMUnitTest tests[] = {
    TEST(groups_of_the_secrets),
    TEST(each_setting_has_a_note),
    TEST(what_is_of_another_kind_is_not_taken),
    TEST(without_hived_there_are_no_cells),
    TEST(nothing_ends_a_scalar),
    TEST(a_worker_that_no_cell_names),
    TEST(a_group_is_made_once),
};
UNIT_FILE(tests, NULL, NULL);
