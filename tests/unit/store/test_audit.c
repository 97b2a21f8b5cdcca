/* Audit records: with the change they are about, in its transaction; what they tell of it, and what
 * they must not; which of them are read and which are kept.
 *
 * Covers: src/store/audit.c, src/store/audit_state.c */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/err.h"
#include "base/memory.h"
#include "store/read.h"
#include "store/store.h"

static const struct store_audit by_root = {.at_ms = 1000,
                                           .user = "root",
                                           .token = "t-1",
                                           .address = "10.0.0.1",
                                           .right = "auth.manage",
                                           .route = "PUT /api/v2/users"};

static void audited(struct world *world, struct store_change change_, int expected)
{
    change_.audit = &by_root;
    change_.err = &world->err;
    change(world, change_, expected);
}

static struct store_audits audits_of(struct world *world, struct audit_filter filter)
{
    struct store_audits audits;
    filter.limit = filter.limit ? filter.limit : 100;
    assert_int_equal(store_audits(world->reader, &filter, &world->arena, &audits, &world->err), 0);
    return audits;
}

static struct store_audit newest(struct world *world)
{
    struct store_audits audits = audits_of(world, (struct audit_filter){.limit = 1});
    assert_int_equal(audits.count, 1);
    return audits.items[0];
}

static void expect_newest(struct world *world, const char *subject, int code, const char *before,
                          const char *after)
{
    struct store_audit audit = newest(world);
    assert_string_equal(audit.user, "root");
    assert_string_equal(audit.token, "t-1");
    assert_string_equal(audit.address, "10.0.0.1");
    assert_string_equal(audit.right, "auth.manage");
    assert_string_equal(audit.subject, subject);
    assert_int_equal(audit.code, code);
    assert_string_equal(audit.before, before);
    assert_string_equal(audit.after, after);
}

static struct store_user alice(void)
{
    return (struct store_user){.name = "alice",
                               .password_hash = "a-hash",
                               .email = "a@b",
                               .extension_json = "{\"sshKeys\":[\"a-key\"]}"};
}

static void accounts_before_and_after(void **state)
{
    struct world *world = *state;
    struct store_member members[] = {{.name = "lab", .is_admin = true}};
    const char *clusters[] = {"vision"};
    struct store_user user = alice();

    audited(world,
            (struct store_change){
                .kind = CHANGE_GROUP_ADD,
                .group = {.name = "lab",
                          .description = "d",
                          .extension_json = "{\"acls\":{\"storageConfigs\":[\"s\"]},\"x\":1}"}},
            0);
    expect_newest(world, "lab", 0, "",
                  "{\"description\":\"d\",\"externalName\":\"\",\"admin\":false,"
                  "\"extension.acls\":{\"storageConfigs\":[\"s\"]},\"extension.x\":\"(secret)\","
                  "\"virtualClusters\":[]}");
    audited(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = user}, 0);
    expect_newest(world, "alice", 0, "",
                  "{\"email\":\"a@b\",\"identity\":\"\",\"admin\":false,\"active\":true,"
                  "\"password\":\"(secret)\",\"extension.sshKeys\":\"(secret)\",\"groups\":[],"
                  "\"groupAdminOf\":[],\"virtualClusters\":[]}");

    user.groups = (struct store_members){members, 1};
    user.virtual_clusters = (struct store_names){clusters, 1};
    user.password_hash = "another";
    user.is_admin = true;
    audited(
        world,
        (struct store_change){.kind = CHANGE_USER_SET,
                              .user = user,
                              .fields = USER_GROUPS | USER_CLUSTERS | USER_PASSWORD | USER_ADMIN},
        0);
    expect_newest(world, "alice", 0,
                  "{\"admin\":false,\"password\":\"(secret)\",\"groups\":[],\"groupAdminOf\":[],"
                  "\"virtualClusters\":[]}",
                  "{\"admin\":true,\"password\":\"(secret)\",\"groups\":[\"lab\"],"
                  "\"groupAdminOf\":[\"lab\"],\"virtualClusters\":[\"vision\"]}");

    audited(world,
            (struct store_change){.kind = CHANGE_MEMBER_REMOVE,
                                  .member = {.user = "alice", .group = "lab"}},
            0);
    expect_newest(world, "alice", 0, "{\"groups\":[\"lab\"],\"groupAdminOf\":[\"lab\"]}",
                  "{\"groups\":[],\"groupAdminOf\":[]}");
    audited(
        world,
        (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = {"t-9", "alice", true, 5, 70, 1}},
        0);
    expect_newest(world, "t-9", 0, "",
                  "{\"user\":\"alice\",\"application\":true,\"scope\":1,\"expiresTime\":70}");
    audited(
        world,
        (struct store_change){.kind = CHANGE_TOKEN_REMOVE, .token = {.id = "t-9", .user = "alice"}},
        0);
    expect_newest(world, "t-9", 0,
                  "{\"user\":\"alice\",\"application\":true,\"scope\":1,\"expiresTime\":70}", "");
}

static void refusals(void **state)
{
    struct world *world = *state;
    struct store_user user = alice();

    user.is_admin = true;
    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = user}, 0);
    assert_int_equal(audits_of(world, (struct audit_filter){0}).count, 0); /* nobody asked for it */
    audited(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = user}, ERR_CONFLICT);
    expect_newest(world, "alice", ERR_CONFLICT, "", "");
    assert_string_equal(newest(world).reason, "user alice exists");
    /* the last admin: what was undone is no difference */
    user.is_admin = false;
    audited(world,
            (struct store_change){.kind = CHANGE_USER_SET, .user = user, .fields = USER_ADMIN},
            ERR_FORBIDDEN);
    expect_newest(world, "alice", ERR_FORBIDDEN, "", "");
    /* without a change */
    const struct store_audit alone = {.at_ms = 7,
                                      .user = "bob",
                                      .route = "DELETE /x",
                                      .subject_kind = "job",
                                      .subject = "bob~\xff\033[31mred",
                                      .code = ERR_NOT_FOUND,
                                      .reason = "no such job"};
    change(world, (struct store_change){.kind = CHANGE_AUDIT, .audit = &alone}, 0);
    assert_string_equal(newest(world).subject, "bob~\xef\xbf\xbdred");
    assert_string_equal(newest(world).subject_kind, "job");
    assert_int_equal(newest(world).code, ERR_NOT_FOUND);
    assert_string_equal(newest(world).token, "");
}

/* A commit that fails leaves neither the change nor its record. */
static void whole_or_not_at_all(void **state)
{
    struct world *world = *state;
    struct store_user user = alice();
    struct store_change changes = {
        .kind = CHANGE_USER_ADD, .user = user, .audit = &by_root, .err = &world->err};
    struct store_batch batch = {.changes = &changes, .change_count = 1, .output = &world->output};

    output_clear(&world->output);
    add_job(world, job_of(77, "alice", "was-never-submitted")); /* its row does not exist */
    assert_int_equal(store_commit(world->store, &batch, &world->err), ERR_INTERNAL);
    assert_int_equal(audits_of(world, (struct audit_filter){0}).count, 0);
    output_clear(&world->output);
    audited(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = user}, 0);
    world_close(world);
    world_open(world);
    assert_int_equal(audits_of(world, (struct audit_filter){0}).count, 1);
}

static void note(struct world *world, const char *user, const char *subject, int64_t at_ms,
                 int code)
{
    const struct store_audit audit = {
        .at_ms = at_ms, .user = user, .subject = subject, .code = code};
    change(world, (struct store_change){.kind = CHANGE_AUDIT, .audit = &audit}, 0);
}

static void filters_and_pages(void **state)
{
    struct world *world = *state;
    char seen[21] = "";
    uint64_t before = 0;

    for (int i = 0; i < 20; i++)
        note(world, i % 2 ? "alice" : "bob", i % 3 ? "x" : "y", 100 + i, i % 5 ? 0 : ERR_INVALID);
    assert_int_equal(audits_of(world, (struct audit_filter){.user = TEXT("alice")}).count, 10);
    assert_int_equal(audits_of(world, (struct audit_filter){.subject = TEXT("y")}).count, 7);
    assert_int_equal(
        audits_of(world, (struct audit_filter){.user = TEXT("bob"), .subject = TEXT("y")}).count,
        4);
    assert_int_equal(audits_of(world, (struct audit_filter){.wants_refused = true}).count, 4);
    assert_int_equal(
        audits_of(world, (struct audit_filter){.since_ms = 105, .until_ms = 107}).count, 2);
    assert_int_equal(newest(world).at_ms, 119);
    /* pages, while more come */
    for (;;) {
        struct store_audits audits =
            audits_of(world, (struct audit_filter){.before = before, .limit = 3});
        for (size_t i = 0; i < audits.count; i++)
            seen[audits.items[i].at_ms - 100]++;
        if (audits.count < 3)
            break;
        before = audits.items[2].number;
        note(world, "carol", "x", 999, 0);
    }
    for (int i = 0; i < 20; i++)
        assert_int_equal(seen[i], 1);
}

static void old_ones_go(void **state)
{
    struct world *world = *state;
    uint64_t last;

    for (int i = 0; i < 10; i++)
        note(world, "alice", "x", 100 + i, 0);
    change(world, (struct store_change){.kind = CHANGE_AUDIT_TRIM}, 0);
    assert_int_equal(audits_of(world, (struct audit_filter){0}).count, 10);
    change(world, (struct store_change){.kind = CHANGE_AUDIT_TRIM, .before_ms = 103}, 0);
    assert_int_equal(audits_of(world, (struct audit_filter){0}).count, 7);
    change(world, (struct store_change){.kind = CHANGE_AUDIT_TRIM, .most = 2}, 0);
    assert_int_equal(audits_of(world, (struct audit_filter){0}).count, 2);
    last = newest(world).number;
    change(world, (struct store_change){.kind = CHANGE_AUDIT_TRIM, .before_ms = INT64_MAX}, 0);
    assert_int_equal(audits_of(world, (struct audit_filter){0}).count, 0);
    note(world, "alice", "x", 300, 0);
    assert_true(newest(world).number > last); /* a cursor stays good */
}

static void too_long(void **state)
{
    struct world *world = *state;
    struct store_user user = alice();
    char email[STORE_AUDIT_MAX + 10];

    memset(email, 'e', sizeof email - 1);
    email[sizeof email - 1] = '\0';
    user.email = email;
    audited(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = user}, 0);
    expect_newest(world, "alice", 0, "", "{\"tooLong\":true}");
}

/* "alice@10.0.0.1 5, bob@…": the newest first. */
static const char *places_of(struct world *world, const char *route, int64_t since_ms,
                             uint64_t limit)
{
    struct store_audit_places places;
    struct buf text = BUF_INIT;
    assert_int_equal(store_audit_places(world->reader, text_of(route), since_ms, limit,
                                        &world->arena, &places, &world->err),
                     0);
    for (size_t i = 0; i < places.count; i++)
        buf_format(&text, "%s%s@%s %d", i ? ", " : "", places.items[i].user,
                   places.items[i].address, (int)places.items[i].at_ms);
    const char *copy = arena_copy(&world->arena, buf_as_text(&text));
    buf_release(&text);
    return copy;
}

static void from_where_something_was_done(void **state)
{
    static const struct store_audit rows[] = {
        {.at_ms = 10, .user = "alice", .address = "a", .route = "POST /x"},
        {.at_ms = 40, .user = "alice", .address = "b", .route = "POST /x"},
        {.at_ms = 30, .user = "alice", .address = "a", .route = "POST /x"},
        {.at_ms = 20, .user = "bob", .address = "a", .route = "POST /x"},
        {.at_ms = 50, .user = "bob", .address = "a", .route = "POST /x", .code = ERR_FORBIDDEN},
        {.at_ms = 60, .user = "carol", .address = "a", .route = "POST /xy"},
    };
    struct world *world = *state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct store_audit row = rows[i];
        row.token = row.right = "";
        change(world, (struct store_change){.kind = CHANGE_AUDIT, .audit = &row}, 0);
    }
    assert_string_equal(places_of(world, "POST /x", 0, 10), "alice@b 40, alice@a 30, bob@a 20");
    assert_string_equal(places_of(world, "POST /x", 0, 2), "alice@b 40, alice@a 30");
    assert_string_equal(places_of(world, "POST /x", 30, 10), "alice@b 40, alice@a 30");
    assert_string_equal(places_of(world, "POST /", 0, 10), "");
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(accounts_before_and_after),
    WORLD(refusals),
    WORLD(whole_or_not_at_all),
    WORLD(filters_and_pages),
    WORLD(old_ones_go),
    WORLD(too_long),
    WORLD(from_where_something_was_done),
};
UNIT_FILE(tests, NULL, NULL);
