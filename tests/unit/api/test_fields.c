/* Lists with some fields only. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "api/fields.h"
#include "base/memory.h"

static void expect(const char *json, const char *names, const char *expected)
{
    cleanup_buf struct buf out = BUF_INIT;
    struct fields fields;
    assert_true(fields_parse(text_of(names), &fields));
    fields_project(text_of(json), &fields, &out);
    assert_string_equal(buf_cstr(&out), expected);
}

static void test_project(void **state)
{
    (void)state;
    expect("[]", "a", "[]");
    expect("{}", "a", "{}");
    expect("[{\"a\":1,\"b\":2},{\"b\":3},{\"b\":4,\"a\":5}]", "a", "[{\"a\":1},{},{\"a\":5}]");
    expect("[{\"a\":{\"a\":[1,{\"b\":\"]}\"}]},\"b\":[{}],\"c\":null}]", "c,a",
           "[{\"a\":{\"a\":[1,{\"b\":\"]}\"}]},\"c\":null}]");
    expect("[{\"a\":\"x\\\"},{\\\\\",\"b\":\"\",\"c\":true}]", "b,c", "[{\"b\":\"\",\"c\":true}]");
    expect("{\"totalCount\":2,\"data\":[{\"a\":1.5e3,\"b\":2}],\"cursor\":null}", "b",
           "{\"totalCount\":2,\"data\":[{\"b\":2}],\"cursor\":null}");
    expect("[1,\"a\",[{\"a\":1}],{\"a\":-1}]", "b", "[1,\"a\",[{\"a\":1}],{}]");
}

static void test_names(void **state)
{
    static const char *const BAD[] = {"", ",", "a,", ",a", "a b", "a.b", "a,\"b\""};
    char many[2 * FIELDS_MAX + 2];
    struct fields fields;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(BAD); i++)
        assert_false(fields_parse(text_of(BAD[i]), &fields));
    for (size_t i = 0; i <= FIELDS_MAX; i++)
        memcpy(many + 2 * i, "a,", 2);
    assert_false(fields_parse((struct text){many, 2 * FIELDS_MAX + 1}, &fields));
    assert_true(fields_parse((struct text){many, 2 * FIELDS_MAX - 1}, &fields));
    assert_int_equal(fields.count, FIELDS_MAX);
}

static void test_lists(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    world_submit(world, alice, "one", 1);
    assert_int_equal(world_get(world, "/api/v2/jobs?fields=name,username", alice), 200);
    assert_string_equal(buf_cstr(&world->body), "[{\"name\":\"one\",\"username\":\"alice\"}]");
    assert_int_equal(world_get(world, "/api/v2/jobs?fields=name&withTotalCount=true", alice), 200);
    assert_string_equal(buf_cstr(&world->body), "{\"totalCount\":1,\"data\":[{\"name\":\"one\"}]}");
    assert_int_equal(world_get(world, "/api/v2/jobs/one/job-attempts?fields=attemptIndex", alice),
                     200);
    assert_string_equal(buf_cstr(&world->body), "[{\"attemptIndex\":0}]");
    static const char *const LISTS[] = {"users",  "groups",   "nodes", "jobs/alice~one/events",
                                        "alerts", "storages", "audit"};
    for (size_t i = 0; i < COUNT_OF(LISTS); i++) {
        char target[80];
        snprintf(target, sizeof target, "/api/v2/%s?fields=none", LISTS[i]);
        assert_int_equal(world_get(world, target, admin), 200);
        assert_null(strstr(buf_cstr(&world->body), "name"));
        snprintf(target, sizeof target, "/api/v2/%s?fields=a..b", LISTS[i]);
        assert_int_equal(world_get(world, target, admin), 400);
    }
    /* what is no list has no such parameter */
    assert_int_equal(world_get(world, "/api/v2/jobs/one?fields=a..b", alice), 200);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_project),
    cmocka_unit_test(test_names),
    cmocka_unit_test_setup_teardown(test_lists, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
