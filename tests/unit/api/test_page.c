/* Lists in pages: the same for every list. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "api/page.h"
#include "base/memory.h"

/* The items of a page, and where the next one begins: "" when there is none. */
static void page_get(struct world *world, const char *target, const char *token, struct buf *items,
                     struct buf *cursor)
{
    static const char BEGIN[] = "\"data\":[", END[] = "],\"cursor\":";
    assert_int_equal(world_get(world, target, token), 200);
    const char *body = buf_cstr(&world->body), *from = strstr(body, BEGIN);
    const struct text text = buf_as_text(&world->body);
    assert_non_null(from);
    const char *to = NULL;
    for (const char *at = from; (at = strstr(at, END)); at++)
        to = at;
    assert_non_null(to);
    from += sizeof BEGIN - 1;
    buf_add(items, from, (size_t)(to - from));
    buf_clear(cursor);
    to += sizeof END - 1;
    if (*to == '"')
        buf_add(cursor, to + 1, strcspn(to + 1, "\""));
    else
        assert_true(
            text_starts((struct text){to, (size_t)(body + text.length - to)}, TEXT("null")));
    assert_int_equal(cursor->length > 0, world->link[0] != '\0');
}

/* Page by page come the same items as on one page, and no others. Returns how many. */
static unsigned pages_walk(struct world *world, const char *list, const char *token, unsigned limit)
{
    cleanup_buf struct buf whole = BUF_INIT, parts = BUF_INIT, cursor = BUF_INIT;
    const char joint = strchr(list, '?') ? '&' : '?';
    char target[900];
    unsigned pages = 0;
    snprintf(target, sizeof target, "/api/v2/%s%ccursor=", list, joint);
    page_get(world, target, token, &whole, &cursor);
    assert_int_equal(cursor.length, 0);
    do {
        snprintf(target, sizeof target, "/api/v2/%s%climit=%u&cursor=%s", list, joint, limit,
                 buf_cstr(&cursor));
        if (parts.length)
            buf_char(&parts, ',');
        page_get(world, target, token, &parts, &cursor);
        pages++;
    } while (cursor.length);
    assert_string_equal(buf_cstr(&parts), buf_cstr(&whole));
    return pages;
}

static void test_every_list(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    world_login(world, "admin");
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/v2/groups", admin, "{\"groupname\":\"lab\"}"), 201);
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/v2/groups", admin, "{\"groupname\":\"ops\"}"), 201);
    for (int i = 0; i < 2; i++)
        assert_int_equal(world_send(world, HTTP_PUT,
                                    i ? "/api/v2/users/bob/group" : "/api/v2/users/alice/group",
                                    admin, "{\"groupname\":\"lab\"}"),
                         201);
    world_run(world, world_submit(world, alice, "one", 2));
    world_submit(world, alice, "two", 1);
    static const struct {
        const char *list;
        unsigned pages; /* of one item, at least */
    } LISTS[] = {
        {"jobs", 2},
        {"jobs?order=jobName,ASC", 2},
        {"jobs?order=state,DESC&withTotalCount=true", 2},
        {"jobs?order=username,DESC", 2},
        {"jobs?order=vc,ASC&username=alice", 2},
        {"jobs/alice~one/tasks", 2},
        {"jobs/alice~one/events", 2},
        {"jobs/alice~one/job-attempts", 1},
        {"jobs/alice~one/attempts", 1},
        {"jobs/alice~one/attempts/0/taskRoles/worker/taskIndex/1/attempts", 1},
        {"users", 3},
        {"groups", 2},
        {"groups/lab/userlist", 2},
        {"nodes", 1},
        {"virtual-clusters", 1},
        {"virtual-clusters?nodes", 1},
        {"tokens", 2},
        {"storages", 1},
        {"storage/config", 1},
        {"storage/server", 1},
        {"audit", 2},
        {"alerts", 1},
        {"exit-specs", 2},
    };
    for (size_t i = 0; i < COUNT_OF(LISTS); i++) {
        const unsigned pages = pages_walk(world, LISTS[i].list, admin, 1);
        if (pages < LISTS[i].pages)
            fail_msg("%s has %u pages", LISTS[i].list, pages);
    }
    assert_int_equal(pages_walk(world, "users", admin, 2), 2);
    /* fields of items, in pages too */
    assert_int_equal(world_get(world, "/api/v2/users?fields=username&cursor=&limit=2", admin), 200);
    assert_body(world,
                "{\"data\":[{\"username\":\"admin\"},{\"username\":\"alice\"}],\"cursor\":\"");
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters?cursor=&fields=name", admin), 200);
    assert_string_equal(buf_cstr(&world->body),
                        "{\"data\":[{\"name\":\"default\"}],\"cursor\":null}");
}

/* With a limit alone a list looks as without, and Link leads on in the same way. */
static void test_link(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    char target[600];
    assert_int_equal(world_get(world, "/api/v2/users?fields=username", admin), 200);
    assert_string_equal(buf_cstr(&world->body),
                        "[{\"username\":\"admin\"},{\"username\":\"alice\"},"
                        "{\"username\":\"bob\"}]");
    assert_string_equal(world->link, "");
    assert_int_equal(world_get(world, "/api/v2/users?fields=username&limit=2", admin), 200);
    assert_string_equal(buf_cstr(&world->body),
                        "[{\"username\":\"admin\"},{\"username\":\"alice\"}]");
    assert_memory_equal(world->link, "</api/v2/users?cursor=", 22);
    assert_non_null(strstr(world->link, "&fields=username&limit=2>; rel=\"next\""));
    snprintf(target, sizeof target, "%.*s", (int)strcspn(world->link + 1, ">"), world->link + 1);
    assert_int_equal(world_get(world, target, admin), 200);
    assert_string_equal(buf_cstr(&world->body), "[{\"username\":\"bob\"}]");
    assert_string_equal(world->link, "");
    assert_int_equal(world_get(world, "/api/v2/jobs?limit=0", admin), 200);
    assert_string_equal(buf_cstr(&world->body), "[]");
    /* nothing of the request ends the address */
    assert_int_equal(world_get(world, "/rest-server/api/v2/users?limit=1&x=>;\"<", admin), 200);
    assert_memory_equal(world->link, "</rest-server/api/v2/users?cursor=", 34);
    assert_non_null(strstr(world->link, "&limit=1&x=%3E;%22%3C>; rel=\"next\""));
    /* v1 has no pages */
    assert_int_equal(world_get(world, "/api/v1/token?limit=x&cursor=", admin), 200);
    assert_body(world, "{\"tokens\":[");
}

/* What comes in between two pages moves nothing. */
static void test_stability(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    static const char *const ORDERS[] = {"submissionTime,DESC", "jobName,ASC", "username,DESC",
                                         "totalTaskNumber,ASC"};
    for (char name[] = "j0"; name[1] < '5'; name[1]++)
        world_submit(world, alice, name, 1);
    for (size_t i = 0; i < COUNT_OF(ORDERS); i++) {
        cleanup_buf struct buf items = BUF_INIT, cursor = BUF_INIT, next = BUF_INIT;
        cleanup_buf struct buf before = BUF_INIT, after = BUF_INIT;
        const char name[] = {(char)('a' + i), '\0'};
        char target[600];
        snprintf(target, sizeof target,
                 "/api/v2/jobs?fields=name&limit=2&order=%s&cursor=", ORDERS[i]);
        page_get(world, target, alice, &items, &cursor);
        snprintf(target, sizeof target, "/api/v2/jobs?fields=name&limit=3&order=%s&cursor=%s",
                 ORDERS[i], buf_cstr(&cursor));
        page_get(world, target, alice, &before, &next);
        world_submit(world, alice, name, 1); /* it is the first one in each order */
        page_get(world, target, alice, &after, &next);
        assert_string_equal(buf_cstr(&after), buf_cstr(&before));
        assert_true(after.length > items.length);
    }
}

static void test_removed(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    cleanup_buf struct buf items = BUF_INIT, cursor = BUF_INIT;
    char target[600];
    struct job_id job = {0};
    for (int i = 0; i < 4; i++) {
        const char name[] = {'j', (char)('0' + i), '\0'};
        const struct job_id last = world_submit(world, alice, name, 1);
        job = i == 2 ? last : job;
    }
    world_run(world, job);
    world_exit(world, job, 0, 0);
    page_get(world, "/api/v2/jobs?fields=name&limit=2&withTotalCount=true&cursor=", alice, &items,
             &cursor);
    assert_string_equal(buf_cstr(&items), "{\"name\":\"j3\"},{\"name\":\"j2\"}");
    assert_body(world, "{\"totalCount\":4,");
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/jobs/j2", alice, ""), 202);
    snprintf(target, sizeof target, "/api/v2/jobs?fields=name&withTotalCount=true&cursor=%s",
             buf_cstr(&cursor));
    buf_clear(&items);
    page_get(world, target, alice, &items, &cursor);
    assert_string_equal(buf_cstr(&items), "{\"name\":\"j1\"},{\"name\":\"j0\"}");
    assert_body(world, "{\"totalCount\":3,");
}

static void test_bad(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    cleanup_buf struct buf items = BUF_INIT, cursor = BUF_INIT;
    char target[3000];
    page_get(world, "/api/v2/users?limit=1&cursor=", admin, &items, &cursor);
    static const char *const LISTS[] = {"groups", "jobs", "audit", "nodes", "jobs/none/tasks"};
    for (size_t i = 0; i < COUNT_OF(LISTS); i++) {
        snprintf(target, sizeof target, "/api/v2/%s?cursor=%s", LISTS[i], buf_cstr(&cursor));
        assert_int_equal(world_get(world, target, admin), i == 4 ? 404 : 400);
    }
    /* "ojobs by 0-\n" and something that is no place; "oaudit\nx"; no list; neither form; groups
     * and nodes behind what is no UTF-8, or has a zero byte */
    static const char *const CURSORS[] = {"limit=0&cursor=",
                                          "offset=0&cursor=",
                                          "cursor=0",
                                          "cursor=b2pvYnMgYnkgMC0KeA",
                                          "cursor=b2F1ZGl0Cng",
                                          "cursor=b3VzZXJz",
                                          "cursor=eHVzZXJzCmE",
                                          "cursor=a%00b",
                                          "cursor=b2dyb3Vwcwph_w",
                                          "cursor=b2dyb3VwcwphAGI",
                                          "cursor=b25vZGVzCmH_",
                                          "cursor=b25vZGVzCmEAYg",
                                          "limit=x",
                                          "limit=-1",
                                          "limit=50001"};
    for (size_t i = 0; i < COUNT_OF(CURSORS); i++) {
        for (size_t l = 0; l < COUNT_OF(LISTS) - 1; l++) {
            snprintf(target, sizeof target, "/api/v2/%s?%s", LISTS[l], CURSORS[i]);
            assert_int_equal(world_get(world, target, admin), 400);
            assert_body(world, "InvalidParametersError");
        }
    }
    char *long_one = target + snprintf(target, sizeof target, "/api/v2/users?cursor=");
    memset(long_one, 'A', 2500);
    long_one[2500] = '\0';
    assert_int_equal(world_get(world, target, admin), 400);
    uint64_t number;
    assert_true(page_number_parse(TEXT("00000000000000ff"), &number));
    assert_int_equal(number, 255);
    assert_false(page_number_parse(TEXT("00000000000000fF"), &number));
    assert_false(page_number_parse(TEXT("ff"), &number));
    assert_false(page_number_parse((struct text){"000000000000000\0", 16}, &number));
}

/* How often the needle is in the reply. */
static size_t body_count(const struct world *world, const char *needle)
{
    size_t count = 0;
    for (const char *at = buf_cstr(&world->body); (at = strstr(at, needle)); at++)
        count++;
    return count;
}

/* A page of large items ends before its limit: Link and cursor lead on, and nothing is left out. */
static void pages_are_bounded_by_bytes(void **state)
{
    enum { ITEMS_MADE = 11, ITEM_BYTES = 900 << 10, TEMPLATES_MADE = 35 };
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    cleanup_buf struct buf filling = BUF_INIT, body = BUF_INIT;
    const char *next;
    while (filling.length < ITEM_BYTES)
        buf_string(&filling, "filling ");
    for (int i = 0; i < ITEMS_MADE; i++) {
        buf_clear(&body);
        buf_format(&body, "{\"groupname\":\"lab%d\",\"extension\":{\"large\":\"%s\"}}", i,
                   buf_cstr(&filling));
        assert_int_equal(world_send(world, HTTP_POST, "/api/v2/groups", admin, buf_cstr(&body)),
                         201);
        buf_clear(&body);
        buf_format(&body,
                   "{\"username\":\"user%d\",\"password\":\"a-password\","
                   "\"extension\":{\"large\":\"%s\"}}",
                   i, buf_cstr(&filling));
        assert_int_equal(world_send(world, HTTP_POST, "/api/v2/users", admin, buf_cstr(&body)),
                         201);
    }
    for (int i = 0; i < TEMPLATES_MADE; i++) {
        buf_clear(&body);
        buf_format(&body,
                   "{\"name\":\"t%d\",\"protocol\":\"protocolVersion: 2\\nname: x\\ntype: job\\n"
                   "prerequisites:\\n  - {name: image, type: dockerimage, uri: debian}\\n"
                   "taskRoles:\\n  worker:\\n    dockerImage: image\\n    commands: [echo hi]\\n"
                   "    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}\\n# large: %.*s\"}",
                   i, 250 << 10, buf_cstr(&filling));
        assert_int_equal(
            world_send(world, HTTP_POST, "/marketplace/api/items", admin, buf_cstr(&body)), 201);
    }
    static const struct {
        const char *list, *large;
        size_t count;
    } LISTS[] = {
        {"/api/v2/groups", "\"large\":", ITEMS_MADE},
        {"/api/v2/users", "\"large\":", ITEMS_MADE},
        {"/marketplace/api/items", "large:", TEMPLATES_MADE},
    };
    for (size_t i = 0; i < COUNT_OF(LISTS); i++) {
        char target[600];
        size_t count = 0, pages = 0;
        snprintf(target, sizeof target, "%s?limit=100", LISTS[i].list);
        do {
            assert_int_equal(world_get(world, target, admin), 200);
            assert_true(world->body.length < PAGE_BYTES_MAX + (1 << 20));
            count += body_count(world, LISTS[i].large);
            next = world->link;
            if (next[0])
                snprintf(target, sizeof target, "%.*s", (int)strcspn(next + 1, ">"), next + 1);
            pages++;
        } while (next[0]);
        assert_int_equal(count, LISTS[i].count);
        assert_int_equal(pages, 2);
    }
    /* who asks for the whole list gets it */
    assert_int_equal(world_get(world, "/api/v2/groups", admin), 200);
    assert_int_equal(body_count(world, "\"large\":"), ITEMS_MADE);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_every_list, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_link, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_stability, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_removed, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_bad, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(pages_are_bounded_by_bytes, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
