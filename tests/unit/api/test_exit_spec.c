/* The exit table: the operator's rows beside the built-in ones. */
#include "unit.h"
#include "world.h"

#include "base/arena.h"
#include "doc/doc.h"
#include "exits/rules.h"

static void rules_exchange(struct world *world, struct text file)
{
    struct arena arena;
    struct problems problems;
    arena_init(&arena);
    problems_init(&problems, &arena);
    exit_rules_free(world->rules);
    world->rules = exit_rules_new(file, &problems);
    assert_non_null(world->rules);
    problems_release(&problems);
    arena_release(&arena);
}

static void everybody_reads_the_table(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    rules_exchange(world, TEXT("spec:\n"
                               "- code: 248\n"
                               "  phrase: LicenceServerDown\n"
                               "  behavior: TRANSIENT_CONFLICT\n"
                               "  reason: no licence\n"
                               "  solution: [wait]\n"
                               "  pattern:\n"
                               "    runtimeContainerPatterns:\n"
                               "    - userLogRegex: 'no licence'\n"
                               "    - exitCode: 48\n"));
    assert_int_equal(world_get(world, "/api/v2/exit-specs", NULL), 401);
    assert_int_equal(world_get(world, "/api/v2/exit-specs", alice), 200);
    assert_true(text_starts(buf_as_text(&world->body),
                            TEXT("[{\"code\":248,\"phrase\":\"LicenceServerDown\",")));
    assert_body(world, "\"reason\":\"no licence\",\"repro\":[],\"solution\":[\"wait\"],"
                       "\"operator\":true,\"patterns\":2,\"conditions\":["
                       "{\"userLogRegex\":\"no licence\"},{\"exitCode\":48}]}");
    assert_body(world, "{\"code\":137,");
    assert_body(world, "\"operator\":false,\"patterns\":0,\"conditions\":[]}");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(everybody_reads_the_table, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
