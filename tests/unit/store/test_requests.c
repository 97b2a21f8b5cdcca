/* What users and visitors ask administrators for, and what becomes of it. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/migrations.h"
#include "store/read.h"

static void user(struct world *world, const char *name, bool is_admin)
{
    change(world,
           (struct store_change){.kind = CHANGE_USER_ADD,
                                 .user = {.name = name,
                                          .password_hash = "x",
                                          .email = "",
                                          .is_admin = is_admin,
                                          .extension_json = "{}"}},
           0);
}

static void group(struct world *world, const char *name, const char *cluster, bool is_admin)
{
    change(world,
           (struct store_change){.kind = CHANGE_GROUP_ADD,
                                 .group = {.name = name,
                                           .description = "",
                                           .is_admin = is_admin,
                                           .virtual_clusters = {&cluster, cluster ? 1 : 0}}},
           0);
}

static void ask(struct world *world, const char *id, const char *who, const char *cluster,
                int64_t at_ms, int expected)
{
    change(world,
           (struct store_change){.kind = CHANGE_REQUEST_ADD,
                                 .request.row = {.id = id,
                                                 .user = who,
                                                 .virtual_cluster = cluster,
                                                 .why = "a course",
                                                 .asked_ms = at_ms}},
           expected);
}

static void ask_from(struct world *world, const char *address, const char *id, const char *who,
                     int64_t at_ms, int expected)
{
    change(world,
           (struct store_change){.kind = CHANGE_REQUEST_ADD,
                                 .request.row = {.id = id,
                                                 .kind = REQUEST_ACCOUNT,
                                                 .user = who,
                                                 .email = "new@example.org",
                                                 .password_hash = "hash",
                                                 .address = address,
                                                 .why = "",
                                                 .asked_ms = at_ms}},
           expected);
}

static void ask_account(struct world *world, const char *id, const char *who, int64_t at_ms,
                        int expected)
{
    ask_from(world, "10.0.0.7", id, who, at_ms, expected);
}

static void act(struct world *world, const char *id, enum request_act act, const char *group,
                int64_t at_ms, int expected)
{
    change(world,
           (struct store_change){.kind = CHANGE_REQUEST_ACT,
                                 .request = {.row = {.id = id,
                                                     .decided_ms = at_ms,
                                                     .decider = "root",
                                                     .answer = "for a month",
                                                     .group = group},
                                             .act = act},
                                 .err = &world->err},
           expected);
}

static struct store_requests all(struct world *world, const char *who, bool is_open)
{
    const struct request_filter filter = {.user = text_of(who), .is_open = is_open};
    struct store_requests requests;
    assert_int_equal(store_requests(world->reader, &filter, &world->arena, &requests, &world->err),
                     0);
    return requests;
}

static struct store_request one(struct world *world, const char *id)
{
    struct store_request row;
    assert_int_equal(store_request(world->reader, text_of(id), &world->arena, &row, &world->err),
                     0);
    return row;
}

static struct store_user read_user(struct world *world, const char *name)
{
    struct store_user row;
    assert_int_equal(store_user(world->reader, text_of(name), &world->arena, &row, &world->err), 0);
    return row;
}

static size_t clusters_of(struct world *world, const char *name)
{
    struct store_names names;
    assert_int_equal(store_user_clusters(world->reader, name, &world->arena, &names, &world->err),
                     0);
    return names.count;
}

static void a_request_is_kept_and_found(void **state)
{
    struct world *world = *state;
    struct store_request row;
    user(world, "alice", false);
    user(world, "bob", false);
    ask(world, "1", "alice", "vc1", 1000, 0);
    ask(world, "2", "alice", "vc1", 1001, ERR_CONFLICT); /* while that one is open */
    ask(world, "1", "alice", "vc2", 1001, ERR_CONFLICT);
    ask(world, "2", "bob", "vc1", 1002, 0);
    ask(world, "3", "nobody", "vc1", 1003, ERR_NOT_FOUND);
    ask_account(world, "4", "bob", 1004, 0);
    ask_account(world, "5", "carol", 1005, 0);
    ask_account(world, "6", "", 1005, ERR_INVALID);
    world_close(world);
    world_open(world);
    assert_int_equal(all(world, "", false).count, 4);
    assert_int_equal(all(world, "alice", false).count, 1);
    assert_int_equal(all(world, "bob", false).count, 1); /* a visitor's is not the user's */
    assert_int_equal(all(world, "carol", false).count, 0);
    row = one(world, "1");
    assert_int_equal(row.kind, REQUEST_CLUSTER);
    assert_int_equal(row.state, REQUEST_OPEN);
    assert_string_equal(row.user, "alice");
    assert_string_equal(row.virtual_cluster, "vc1");
    assert_string_equal(row.why, "a course");
    assert_int_equal(row.asked_ms, 1000);
    assert_int_equal(row.decided_ms, 0);
    assert_string_equal(row.decider, "");
    assert_false(row.is_name_taken);
    row = one(world, "4");
    assert_int_equal(row.kind, REQUEST_ACCOUNT);
    assert_true(row.is_name_taken);
    assert_string_equal(row.email, "new@example.org");
    assert_string_equal(row.address, "10.0.0.7");
    assert_string_equal(row.password_hash, ""); /* is never read */
    assert_false(one(world, "5").is_name_taken);
    assert_int_equal(store_request(world->reader, TEXT("9"), &world->arena, &row, &world->err),
                     ERR_NOT_FOUND);
    char why[REQUEST_WHY_MAX + 2];
    memset(why, 'x', sizeof why - 1);
    why[sizeof why - 1] = '\0';
    change(world,
           (struct store_change){
               .kind = CHANGE_REQUEST_ADD,
               .request.row = {.id = "7", .user = "alice", .virtual_cluster = "vc3", .why = why}},
           ERR_TOO_BIG);
    change(world,
           (struct store_change){
               .kind = CHANGE_REQUEST_ACT,
               .request = {.row = {.id = "1", .decided_ms = 1, .decider = "root", .answer = why},
                           .act = REQUEST_REFUSE}},
           ERR_TOO_BIG);
}

static void an_acceptance_grants_it(void **state)
{
    struct world *world = *state;
    user(world, "alice", false);
    group(world, "lab", "vc1", false);
    group(world, "other", NULL, false);
    group(world, "admins", "vc1", true);
    ask(world, "1", "alice", "vc1", 1000, 0);
    ask(world, "2", "alice", "vc2", 1001, 0);
    /* what does not grant it changes nothing, and the request stays open */
    act(world, "1", REQUEST_ACCEPT, "other", 2000, ERR_CONFLICT);
    act(world, "1", REQUEST_ACCEPT, "nowhere", 2000, ERR_CONFLICT);
    act(world, "1", REQUEST_ACCEPT, "admins", 2000, ERR_CONFLICT);
    assert_int_equal(one(world, "1").state, REQUEST_OPEN);
    assert_int_equal(clusters_of(world, "alice"), 0);
    const uint64_t version = store_account_version(world->store);
    act(world, "1", REQUEST_ACCEPT, "lab", 2000, 0);
    assert_true(store_account_version(world->store) > version);
    struct store_request row = one(world, "1");
    assert_int_equal(row.state, REQUEST_ACCEPTED);
    assert_int_equal(row.decided_ms, 2000);
    assert_string_equal(row.decider, "root");
    assert_string_equal(row.answer, "for a month");
    assert_string_equal(row.group, "lab");
    assert_int_equal(read_user(world, "alice").groups.count, 1);
    assert_int_equal(read_user(world, "alice").virtual_clusters.count, 0);
    act(world, "2", REQUEST_ACCEPT, "", 2001, 0);
    assert_int_equal(read_user(world, "alice").virtual_clusters.count, 1);
    assert_int_equal(clusters_of(world, "alice"), 2);
    /* decided is decided */
    act(world, "1", REQUEST_ACCEPT, "lab", 2002, ERR_CONFLICT);
    assert_string_equal(world->err.text, "it was accepted by root at 1970-01-01 00:00:02 UTC");
    act(world, "1", REQUEST_REFUSE, "", 2002, ERR_CONFLICT);
    act(world, "2", REQUEST_WITHDRAW, "", 2002, ERR_CONFLICT);
    act(world, "9", REQUEST_REFUSE, "", 2002, ERR_NOT_FOUND);
    assert_int_equal(all(world, "", true).count, 0);
    /* a member already stays what they are */
    change(world,
           (struct store_change){.kind = CHANGE_MEMBER_ADD, .member = {"alice", "lab", true}}, 0);
    ask(world, "3", "alice", "vc1", 3000, 0);
    act(world, "3", REQUEST_ACCEPT, "lab", 3001, 0);
    assert_true(read_user(world, "alice").groups.items[0].is_admin);
}

static void decide_told(struct world *world, const char *id, enum request_act act,
                        const char *group, int expected)
{
    change(world,
           (struct store_change){
               .kind = CHANGE_REQUEST_ACT,
               .request = {.row = {.id = id,
                                   .decided_ms = 2000,
                                   .decider = "root",
                                   .answer = act == REQUEST_WITHDRAW ? "" : "for a month",
                                   .group = group},
                           .act = act,
                           .is_told = true},
               .err = &world->err},
           expected);
}

static struct store_notices told(struct world *world)
{
    struct store_notices rows;
    assert_int_equal(store_notices(world->reader, 100, &world->arena, &rows, &world->err), 0);
    return rows;
}

/* The mail's row is of the same transaction; who is no user gets none. */
static void who_has_asked_is_told(void **state)
{
    struct world *world = *state;
    user(world, "root", true);
    user(world, "alice", false);
    group(world, "lab", "vc1", false);
    ask(world, "1", "alice", "vc1", 1000, 0);
    ask(world, "2", "alice", "vc2", 1001, 0);
    ask(world, "3", "alice", "vc3", 1002, 0);
    ask(world, "4", "alice", "vc4", 1003, 0);
    ask_account(world, "5", "carol", 1004, 0);
    ask_account(world, "6", "dave", 1005, 0);
    act(world, "4", REQUEST_ACCEPT, "", 1999, 0); /* no mail is sent here */
    decide_told(world, "1", REQUEST_ACCEPT, "nowhere", ERR_CONFLICT);
    decide_told(world, "3", REQUEST_WITHDRAW, "", 0);
    decide_told(world, "6", REQUEST_REFUSE, "", 0);
    assert_int_equal(told(world).count, 0);
    decide_told(world, "1", REQUEST_ACCEPT, "lab", 0);
    decide_told(world, "1", REQUEST_ACCEPT, "lab", ERR_CONFLICT); /* once */
    decide_told(world, "2", REQUEST_REFUSE, "", 0);
    decide_told(world, "5", REQUEST_ACCEPT, "", 0);
    const struct store_notices rows = told(world);
    assert_int_equal(rows.count, 3);
    static const struct {
        enum notice_kind kind;
        const char *user, *id, *cluster, *group;
    } wanted[] = {{NOTICE_ACCEPTED, "alice", "1", "vc1", "lab"},
                  {NOTICE_REFUSED, "alice", "2", "vc2", ""},
                  {NOTICE_ACCEPTED, "carol", "5", "", ""}};
    for (size_t i = 0; i < rows.count; i++) {
        const struct notice *notice = &rows.items[i].notice;
        assert_string_equal(rows.items[i].target, NOTICE_MAIL);
        assert_int_equal(notice->kind, wanted[i].kind);
        assert_int_equal(notice->at_ms, 2000);
        assert_string_equal(notice->user, wanted[i].user);
        assert_string_equal(notice->job_name, wanted[i].id);
        assert_string_equal(notice->virtual_cluster, wanted[i].cluster);
        assert_string_equal(notice->phrase, wanted[i].group);
        assert_string_equal(notice->why, "for a month");
    }
}

static void refused_withdrawn_and_asked_again(void **state)
{
    struct world *world = *state;
    user(world, "alice", false);
    ask(world, "1", "alice", "vc1", 1000, 0);
    act(world, "1", REQUEST_REFUSE, "", 2000, 0);
    assert_int_equal(one(world, "1").state, REQUEST_REFUSED);
    assert_int_equal(clusters_of(world, "alice"), 0);
    ask(world, "2", "alice", "vc1", 2001, 0);
    act(world, "2", REQUEST_WITHDRAW, "", 2002, 0);
    act(world, "2", REQUEST_WITHDRAW, "", 2003, 0); /* once more changes nothing */
    assert_int_equal(one(world, "2").decided_ms, 2002);
    act(world, "2", REQUEST_ACCEPT, "", 2004, ERR_CONFLICT);
    ask(world, "3", "alice", "vc1", 2005, 0);
    assert_int_equal(all(world, "alice", true).count, 1);
    assert_int_equal(all(world, "alice", false).count, 3);
}

static void an_account_is_made(void **state)
{
    struct world *world = *state;
    user(world, "root", true);
    group(world, "lab", "vc1", false);
    group(world, "admins", NULL, true);
    ask_account(world, "1", "carol", 1000, 0);
    ask_account(world, "2", "carol", 1001, 0);
    ask_account(world, "3", "dave", 1002, 0);
    act(world, "1", REQUEST_ACCEPT, "admins", 2000, ERR_CONFLICT);
    act(world, "1", REQUEST_ACCEPT, "nowhere", 2000, ERR_CONFLICT);
    act(world, "1", REQUEST_ACCEPT, "", 2000, 0); /* without a group `default` */
    struct store_user carol = read_user(world, "carol");
    assert_string_equal(carol.password_hash, "hash");
    assert_string_equal(carol.email, "new@example.org");
    assert_false(carol.is_admin || carol.is_admin_by_group || carol.is_inactive);
    assert_int_equal(carol.groups.count, 0);
    assert_int_equal(carol.created_ms, 2000);
    assert_true(one(world, "2").is_name_taken);
    act(world, "2", REQUEST_ACCEPT, "", 2001, ERR_CONFLICT);
    assert_int_equal(one(world, "2").state, REQUEST_OPEN);
    act(world, "2", REQUEST_REFUSE, "", 2002, 0);
    group(world, "default", NULL, false);
    act(world, "3", REQUEST_ACCEPT, "lab", 2003, 0);
    assert_int_equal(read_user(world, "dave").groups.count, 2);
    ask_account(world, "4", "eve", 3000, 0);
    act(world, "4", REQUEST_ACCEPT, "default", 3001, 0);
    assert_int_equal(read_user(world, "eve").groups.count, 1);
}

static void token(struct world *world, const char *id, const char *who, bool is_application)
{
    change(
        world,
        (struct store_change){.kind = CHANGE_TOKEN_ADD,
                              .token = {.id = id, .user = who, .is_application = is_application}},
        0);
}

static size_t tokens_of(struct world *world, const char *who)
{
    struct store_tokens tokens;
    assert_int_equal(store_tokens(world->reader, text_of(who), &world->arena, &tokens, &world->err),
                     0);
    return tokens.count;
}

static void identify(struct world *world, const char *name, const char *identity)
{
    change(world,
           (struct store_change){.kind = CHANGE_USER_SET,
                                 .user = {.name = name, .identity = identity},
                                 .fields = USER_IDENTITY},
           0);
}

/* An administrator sees that the name was another one's, and says that it may be used again. */
static void a_used_name_is_shown_and_confirmed(void **state)
{
    struct world *world = *state;
    struct store_change accept = {
        .kind = CHANGE_REQUEST_ACT,
        .request =
            {.row = {.id = "1", .decided_ms = 2000, .decider = "root", .answer = "", .group = ""},
             .act = REQUEST_ACCEPT},
        .err = &world->err};
    user(world, "root", true);
    user(world, "carol", false);
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user.name = "carol"}, 0);
    ask_account(world, "1", "carol", 1000, 0);
    ask_account(world, "2", "dave", 1000, 0);
    assert_true(one(world, "1").is_name_used);
    assert_false(one(world, "1").is_name_taken);
    assert_false(one(world, "2").is_name_used);
    assert_true(all(world, "", true).items[0].is_name_used ||
                all(world, "", true).items[1].is_name_used);
    change(world, accept, ERR_CONFLICT);
    assert_string_equal(world->err.path, STORE_REUSES_NAME);
    assert_int_equal(one(world, "1").state, REQUEST_OPEN);
    accept.reuses_name = true;
    change(world, accept, 0);
    assert_string_equal(read_user(world, "carol").password_hash, "hash");
    assert_false(one(world, "1").is_name_used);
    /* more were removed than are kept by name */
    assert_int_equal(world_sql(world, "INSERT INTO removed_users (name, identity) VALUES ('', '')"),
                     0);
    assert_true(one(world, "2").is_name_used);
}

/* The provider's user of the name gets the account: the visitor is locked out. */
static void an_adoption_locks_the_visitor_out(void **state)
{
    struct world *world = *state;
    user(world, "root", true);
    user(world, "bob", false); /* an administrator made him: his password goes on working */
    ask_account(world, "1", "carol", 1000, 0);
    act(world, "1", REQUEST_ACCEPT, "", 2000, 0);
    assert_true(read_user(world, "carol").is_requested);
    assert_false(read_user(world, "bob").is_requested);
    token(world, "t1", "carol", false);
    token(world, "t2", "carol", true);
    token(world, "t3", "bob", true);
    change(world,
           (struct store_change){
               .kind = CHANGE_USER_SET,
               .user = {.name = "carol", .extension_json = "{\"sshKeys\":[{\"value\":\"k\"}]}"},
               .fields = USER_EXTENSION},
           0);
    identify(world, "carol", ""); /* nobody's */
    assert_string_equal(read_user(world, "carol").password_hash, "hash");
    const uint64_t version = store_token_version(world->store);
    identify(world, "carol", "issuer carol");
    identify(world, "bob", "issuer bob");
    assert_true(store_token_version(world->store) > version);
    struct store_user carol = read_user(world, "carol");
    assert_string_equal(carol.password_hash, "");
    assert_string_equal(carol.extension_json, "{}");
    assert_string_equal(carol.identity, "issuer carol");
    assert_false(carol.is_requested);
    assert_int_equal(tokens_of(world, "carol"), 0);
    assert_string_equal(read_user(world, "bob").password_hash, "x");
    assert_int_equal(tokens_of(world, "bob"), 1);
    /* she is herself now: what she makes stays */
    token(world, "t4", "carol", true);
    identify(world, "carol", "issuer carol 2");
    assert_int_equal(tokens_of(world, "carol"), 1);
}

/* What was accepted before accounts were marked is marked, too, as long as that is kept. */
static void accounts_of_before_are_marked(void **state)
{
    struct world *world = *state;
    SQLITE_ONLY(world);
    world_close(world);
    unlink(arena_format(&world->arena, "%s/skep.db", world->directory));
    unlink(arena_format(&world->arena, "%s/mark", world->directory));
    for (int i = 0; i < 25; i++)
        assert_int_equal(world_sql(world, sqlite_migrations[i].sql), 0);
    assert_int_equal(
        world_sql(world,
                  "INSERT INTO users (name, password_hash, email, is_admin, extension_json, "
                  "created_ms) VALUES ('carol', 'h', '', 0, '{}', 1), ('dave', 'h', '', 0, '{}', "
                  "1), ('erin', 'h', '', 0, '{}', 1);"
                  "INSERT INTO requests VALUES "
                  "('1', 1, 1, 'carol', '', '', '', '', '', 1, 2, 'root', '', ''), "
                  "('2', 1, 2, 'dave', '', '', '', '', '', 1, 2, 'root', '', ''), "
                  "('3', 0, 1, 'erin', 'vc1', '', '', '', '', 1, 2, 'root', '', '');"
                  "INSERT INTO audit (at_ms, user_name, token, address, permission, route, "
                  "subject_kind, subject, code, reason, before_json, after_json) VALUES "
                  "(1, 'root', '', '', '', 'DELETE /api/v2/users/:user', 'user', 'gone', 0, '', "
                  "'', ''), "
                  "(2, 'root', '', '', '', 'DELETE /api/v1/user', 'user', 'gone', 0, '', '', ''), "
                  "(3, 'root', '', '', '', 'DELETE /api/v1/user', 'user', 'dave', 0, '', '', ''), "
                  "(4, 'root', '', '', '', 'DELETE /api/v1/user', 'user', 'kept', -1, '', '', '');"
                  "PRAGMA user_version = 25; PRAGMA application_id = 1399547248"),
        0);
    world_open(world);
    assert_true(read_user(world, "carol").is_requested);
    assert_false(read_user(world, "dave").is_requested);
    assert_false(read_user(world, "erin").is_requested);
    /* as are the names of users who were removed, as long as that is kept */
    ask_account(world, "4", "gone", 1000, 0);
    ask_account(world, "5", "dave", 1000, 0);
    ask_account(world, "6", "kept", 1000, 0);
    assert_true(one(world, "4").is_name_used);
    assert_false(one(world, "5").is_name_used); /* he is here again */
    assert_false(one(world, "6").is_name_used); /* was not removed */
}

static void they_go_in_time(void **state)
{
    struct world *world = *state;
    user(world, "root", true);
    user(world, "alice", false);
    ask(world, "old", "alice", "vc1", 1000, 0);
    act(world, "old", REQUEST_REFUSE, "", 1001, 0);
    ask(world, "open", "alice", "vc1", 1000, 0);
    ask_account(world, "visitor", "carol", 1000, 0);
    ask_account(world, "late", "carol", 5000, 0);
    ask(world, "new", "alice", "vc2", 1000, 0);
    act(world, "new", REQUEST_REFUSE, "", 5000, 0);
    change(world, (struct store_change){.kind = CHANGE_REQUESTS_TRIM, .before_ms = 2000}, 0);
    assert_int_equal(all(world, "", false).count, 3); /* open, late, new */
    assert_int_equal(all(world, "", true).count, 2);
    ask(world, "newer", "alice", "vc3", 6000, 0);
    act(world, "newer", REQUEST_WITHDRAW, "", 6001, 0);
    change(world, (struct store_change){.kind = CHANGE_REQUESTS_TRIM, .most = 1}, 0);
    assert_int_equal(all(world, "", false).count, 3); /* open, late, newer */
    assert_int_equal(one(world, "newer").state, REQUEST_WITHDRAWN);
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user.name = "alice"}, 0);
    assert_int_equal(all(world, "", false).count, 1);
}

/* Of one network; what is decided makes room. */
static void a_network_has_its_share(void **state)
{
    struct world *world = *state;
    char id[16], address[40];
    for (int i = 0; i < REQUESTS_OF_SITE_MAX; i++) {
        snprintf(id, sizeof id, "a%d", i);
        snprintf(address, sizeof address, "10.0.0.%d", i);
        ask_from(world, address, id, "carol", 1000, 0);
        snprintf(id, sizeof id, "b%d", i);
        snprintf(address, sizeof address, "2001:db8:1:%x::1", i);
        ask_from(world, address, id, "carol", 1000, 0);
        snprintf(id, sizeof id, "c%d", i);
        ask_from(world, i % 2 ? "" : "uid 7", id, "carol", 1000, 0);
    }
    ask_from(world, "10.0.0.255", "more", "carol", 1000, ERR_BUSY);
    ask_from(world, "2001:db8:1:ffff::1", "more", "carol", 1000, ERR_BUSY);
    ask_from(world, "", "more", "carol", 1000, ERR_BUSY);
    assert_int_equal(store_request_site(world->reader, "10.0.0.1", &world->err), ERR_BUSY);
    assert_int_equal(store_request_site(world->reader, "10.0.1.1", &world->err), 0);
    ask_from(world, "10.0.1.1", "other", "carol", 1000, 0);
    ask_from(world, "2001:db8:2::1", "another", "carol", 1000, 0);
    act(world, "a0", REQUEST_REFUSE, "", 2000, 0);
    ask_from(world, "10.0.0.255", "more", "carol", 1000, 0);
}

static void there_are_not_too_many(void **state)
{
    struct world *world = *state;
    char name[16], address[40];
    user(world, "alice", false);
    for (int i = 0; i < REQUESTS_OF_USER_MAX; i++) {
        snprintf(name, sizeof name, "a%d", i);
        ask(world, name, "alice", name, 1000, 0);
    }
    ask(world, "one more", "alice", "vc", 1000, ERR_TOO_BIG);
    for (int i = 0; i < REQUESTS_ACCOUNTS_MAX; i++) {
        snprintf(name, sizeof name, "v%d", i);
        snprintf(address, sizeof address, "10.0.%d.7", i + 1);
        ask_from(world, address, name, "carol", 1000, 0);
    }
    ask_account(world, "one more", "carol", 1000, ERR_BUSY);
    act(world, "v0", REQUEST_REFUSE, "", 2000, 0);
    ask_account(world, "one more", "carol", 1000, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
static const struct CMUnitTest tests[] = {
    TEST(a_request_is_kept_and_found),
    TEST(an_acceptance_grants_it),
    TEST(who_has_asked_is_told),
    TEST(refused_withdrawn_and_asked_again),
    TEST(an_account_is_made),
    TEST(a_used_name_is_shown_and_confirmed),
    TEST(an_adoption_locks_the_visitor_out),
    TEST(accounts_of_before_are_marked),
    TEST(they_go_in_time),
    TEST(a_network_has_its_share),
    TEST(there_are_not_too_many),
};
UNIT_FILE(tests, NULL, NULL);
