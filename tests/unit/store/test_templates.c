/* Templates: what they keep, how they are approved, and with whom they go. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "store/read.h"

static const char *const tags[] = {"vision", "mnist"};

static struct store_template row_of(const char *id, const char *author, const char *name)
{
    return (struct store_template){.id = id,
                                   .author = author,
                                   .name = name,
                                   .summary = "a summary",
                                   .description = "# A description",
                                   .protocol = "name: x\n",
                                   .tags = {tags, 2},
                                   .reviewer = author,
                                   .created_ms = 10,
                                   .updated_ms = 10};
}

static void add(struct world *world, struct store_template row, int expected)
{
    change(world, (struct store_change){.kind = CHANGE_TEMPLATE_ADD, .template.row = row},
           expected);
}

static void user_make(struct world *world, const char *name)
{
    change(world,
           (struct store_change){.kind = CHANGE_USER_ADD,
                                 .user = {.name = name,
                                          .password_hash = "x",
                                          .email = "",
                                          .extension_json = "{}",
                                          .is_admin = true}},
           0);
}

static struct store_template find(struct world *world, const char *name, const char *reader)
{
    struct store_template row;
    assert_int_equal(
        store_template(world->reader, text_of(name), reader, &world->arena, &row, &world->err), 0);
    return row;
}

static void absent(struct world *world, const char *name)
{
    struct store_template row;
    assert_int_equal(
        store_template(world->reader, text_of(name), "", &world->arena, &row, &world->err),
        ERR_NOT_FOUND);
}

static void kept_and_found_by_both_names(void **state)
{
    struct world *world = *state;
    struct store_templates all;
    user_make(world, "alice");
    add(world, row_of("1", "alice", "a~b"), 0);
    world_close(world);
    world_open(world);
    struct store_template row = find(world, "1", "alice");
    assert_string_equal(row.author, "alice");
    assert_string_equal(row.name, "a~b");
    assert_string_equal(row.protocol, "name: x\n");
    assert_string_equal(row.description, "# A description");
    assert_int_equal(row.tags.count, 2);
    assert_string_equal(row.tags.items[0], "vision");
    assert_string_equal(row.tags.items[1], "mnist");
    assert_int_equal(row.categories.count, 0);
    assert_int_equal(row.status, TEMPLATE_PRIVATE);
    assert_int_equal(row.use_count, 0);
    assert_string_equal(find(world, "alice~a~b", "").id, "1");
    absent(world, "2");
    absent(world, "alice~a");
    absent(world, "bob~a~b");
    assert_int_equal(store_templates(world->reader, "", &world->arena, &all, &world->err), 0);
    assert_int_equal(all.count, 1);
    assert_string_equal(all.items[0].summary, "a summary");
    assert_string_equal(all.items[0].protocol, "");
}

static void a_name_is_one_of_its_author(void **state)
{
    struct world *world = *state;
    user_make(world, "alice");
    user_make(world, "bob");
    add(world, row_of("1", "alice", "x"), 0);
    add(world, row_of("2", "alice", "x"), ERR_CONFLICT);
    add(world, row_of("1", "alice", "y"), ERR_CONFLICT); /* the id */
    add(world, row_of("2", "bob", "x"), 0);
    add(world, row_of("3", "nobody", "x"), ERR_NOT_FOUND);
    add(world, row_of("3", "alice", "y"), 0);
    struct store_template renamed = row_of("3", "ignored", "x");
    change(world, (struct store_change){.kind = CHANGE_TEMPLATE_SET, .template.row = renamed},
           ERR_CONFLICT);
    renamed.name = "z";
    change(world, (struct store_change){.kind = CHANGE_TEMPLATE_SET, .template.row = renamed}, 0);
    assert_string_equal(find(world, "alice~z", "").id, "3");
    renamed.id = "4";
    change(world, (struct store_change){.kind = CHANGE_TEMPLATE_SET, .template.row = renamed},
           ERR_NOT_FOUND);
}

static void too_long(void **state)
{
    struct world *world = *state;
    static char long_text[STORE_TEMPLATE_PROTOCOL_MAX + 2];
    static const char *words[STORE_TEMPLATE_WORDS_MAX + 1];
    memset(long_text, 'x', sizeof long_text - 1);
    user_make(world, "alice");
    struct store_template row = row_of("1", "alice", "");
    add(world, row, ERR_INVALID);
    row.name = long_text;
    add(world, row, ERR_INVALID);
    row = row_of("1", "alice", "x");
    row.summary = long_text;
    add(world, row, ERR_TOO_BIG);
    row = row_of("1", "alice", "x");
    row.description = long_text;
    add(world, row, ERR_TOO_BIG);
    row = row_of("1", "alice", "x");
    row.protocol = long_text;
    add(world, row, ERR_TOO_BIG);
    row = row_of("1", "alice", "x");
    for (size_t i = 0; i < COUNT_OF(words); i++)
        words[i] = "w";
    row.categories = (struct store_names){words, COUNT_OF(words)};
    add(world, row, ERR_TOO_BIG);
    words[0] = "two\nlines";
    row.categories.count = 1;
    add(world, row, ERR_INVALID);
    words[0] = "";
    add(world, row, ERR_INVALID);
    words[0] = long_text;
    add(world, row, ERR_INVALID);
    absent(world, "1");
}

static void so_many_of_one_author(void **state)
{
    struct world *world = *state;
    char id[16], name[16];
    user_make(world, "alice");
    for (int i = 0; i < STORE_USER_TEMPLATES_MAX; i++) {
        snprintf(id, sizeof id, "%d", i);
        snprintf(name, sizeof name, "n%d", i);
        add(world, row_of(id, "alice", name), 0);
    }
    add(world, row_of("more", "alice", "more"), ERR_TOO_BIG);
}

static void review(struct world *world, enum template_status status, const char *reason,
                   int64_t seen_ms, int expected)
{
    change(world,
           (struct store_change){.kind = CHANGE_TEMPLATE_REVIEW,
                                 .template.row = {.id = "1",
                                                  .status = status,
                                                  .reason = reason,
                                                  .reviewer = "root",
                                                  .updated_ms = seen_ms}},
           expected);
}

static void approved_anew_after_each_change(void **state)
{
    struct world *world = *state;
    user_make(world, "alice");
    struct store_template row = row_of("1", "alice", "x");
    add(world, row, 0);
    review(world, TEMPLATE_APPROVED, "", 0, ERR_CONFLICT); /* it is private */
    row.is_public = true;
    struct store_change set = {.kind = CHANGE_TEMPLATE_SET, .template.row = row};
    set.template.row.updated_ms = 20;
    set.template.seen_ms = 9;
    change(world, set, ERR_CONFLICT); /* another version was changed */
    assert_int_equal(find(world, "1", "").status, TEMPLATE_PRIVATE);
    set.template.seen_ms = 10;
    change(world, set, 0);
    set.template.seen_ms = 0;
    assert_int_equal(find(world, "1", "").status, TEMPLATE_PENDING);
    review(world, TEMPLATE_APPROVED, "", 10, ERR_CONFLICT); /* another version was looked at */
    review(world, TEMPLATE_REJECTED, "no image", 20, 0);
    row = find(world, "1", "");
    assert_int_equal(row.status, TEMPLATE_REJECTED);
    assert_string_equal(row.reason, "no image");
    assert_string_equal(row.reviewer, "root");
    set.template.row.updated_ms = 30;
    change(world, set, 0);
    row = find(world, "1", "");
    assert_int_equal(row.status, TEMPLATE_PENDING);
    assert_string_equal(row.reason, "");
    assert_string_equal(row.reviewer, "");
    review(world, TEMPLATE_APPROVED, "", 0, 0);
    assert_int_equal(find(world, "1", "").status, TEMPLATE_APPROVED);
    set.template.by_admin = true;
    change(world, set, 0);
    row = find(world, "1", "");
    assert_int_equal(row.status, TEMPLATE_APPROVED);
    assert_string_equal(row.reviewer, "alice");
    set.template.row.is_public = false;
    change(world, set, 0);
    assert_int_equal(find(world, "1", "").status, TEMPLATE_PRIVATE);
    static char long_reason[STORE_TEMPLATE_SUMMARY_MAX + 2];
    memset(long_reason, 'x', sizeof long_reason - 1);
    review(world, TEMPLATE_REJECTED, long_reason, 0, ERR_TOO_BIG);
}

static void star(struct world *world, const char *id, const char *user, bool is_starred,
                 int expected)
{
    change(
        world,
        (struct store_change){.kind = CHANGE_TEMPLATE_STAR,
                              .template = {.row.id = id, .user = user, .is_starred = is_starred}},
        expected);
}

static void stars_and_uses_are_counted(void **state)
{
    struct world *world = *state;
    user_make(world, "alice");
    add(world, row_of("1", "alice", "x"), 0);
    star(world, "1", "alice", true, 0);
    star(world, "1", "alice", true, 0);
    star(world, "1", "bob", true, 0);
    star(world, "2", "bob", true, ERR_NOT_FOUND);
    struct store_template row = find(world, "1", "bob");
    assert_int_equal(row.star_count, 2);
    assert_true(row.is_starred);
    assert_false(find(world, "1", "carol").is_starred);
    star(world, "1", "bob", false, 0);
    assert_int_equal(find(world, "1", "bob").star_count, 1);
    struct store_change use = {.kind = CHANGE_TEMPLATE_USE,
                               .template = {.row.id = "1", .now_ms = 77}};
    change(world, use, 0);
    change(world, use, 0);
    row = find(world, "1", "");
    assert_int_equal(row.use_count, 2);
    assert_int_equal(row.used_ms, 77);
    use.template.row.id = "2";
    change(world, use, ERR_NOT_FOUND);
}

static void removed_with_its_stars(void **state)
{
    struct world *world = *state;
    struct store_change removal = {.kind = CHANGE_TEMPLATE_REMOVE, .template.row.id = "1"};
    user_make(world, "alice");
    add(world, row_of("1", "alice", "x"), 0);
    star(world, "1", "alice", true, 0);
    change(world, removal, 0);
    change(world, removal, ERR_NOT_FOUND);
    add(world, row_of("1", "alice", "x"), 0); /* the removal is taken back */
    assert_int_equal(find(world, "1", "alice").star_count, 0);
}

static void they_go_with_their_author(void **state)
{
    struct world *world = *state;
    user_make(world, "alice");
    user_make(world, "bob");
    add(world, row_of("1", "alice", "x"), 0);
    add(world, row_of("2", "bob", "x"), 0);
    star(world, "2", "alice", true, 0);
    star(world, "1", "bob", true, 0);
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user.name = "alice"}, 0);
    absent(world, "1");
    assert_int_equal(find(world, "2", "").star_count, 0);
}

static void a_group_that_is_removed_takes_its_share(void **state)
{
    struct world *world = *state;
    static const char *const groups[] = {"la", "lab", "labs", "lab"};
    user_make(world, "alice");
    for (size_t i = 0; i < 3; i++)
        change(world,
               (struct store_change){.kind = CHANGE_GROUP_ADD,
                                     .group = {.name = groups[i],
                                               .description = "",
                                               .external_name = "",
                                               .extension_json = "{}"}},
               0);
    struct store_template row = row_of("1", "alice", "x");
    row.groups = (struct store_names){groups, 4};
    add(world, row, 0);
    row = row_of("2", "alice", "y");
    row.groups = (struct store_names){groups + 1, 1};
    add(world, row, 0);
    assert_int_equal(find(world, "1", "").groups.count, 3); /* each once */
    change(world, (struct store_change){.kind = CHANGE_GROUP_REMOVE, .group.name = "lab"}, 0);
    row = find(world, "1", "");
    assert_int_equal(row.groups.count, 2);
    assert_string_equal(row.groups.items[0], "la");
    assert_string_equal(row.groups.items[1], "labs");
    assert_int_equal(find(world, "2", "").groups.count, 0);
}

static void the_audit_says_what_changed(void **state)
{
    struct world *world = *state;
    static const struct store_audit by_root = {
        .at_ms = 1, .user = "root", .route = "PUT /marketplace/api/items/:item/status"};
    struct store_audits audits;
    user_make(world, "alice");
    struct store_template row = row_of("1", "alice", "x");
    row.is_public = true;
    add(world, row, 0);
    change(world,
           (struct store_change){.kind = CHANGE_TEMPLATE_REVIEW,
                                 .audit = &by_root,
                                 .template.row = {.id = "1",
                                                  .status = TEMPLATE_REJECTED,
                                                  .reason = "no image",
                                                  .reviewer = "root"}},
           0);
    assert_int_equal(store_audits(world->reader, &(struct audit_filter){.limit = 1}, &world->arena,
                                  &audits, &world->err),
                     0);
    assert_string_equal(audits.items[0].subject_kind, "template");
    assert_string_equal(audits.items[0].subject, "1");
    assert_string_equal(audits.items[0].before, "{\"status\":1,\"reason\":\"\"}");
    assert_string_equal(audits.items[0].after, "{\"status\":3,\"reason\":\"no image\"}");
    struct store_change set = {.kind = CHANGE_TEMPLATE_SET, .audit = &by_root, .template.row = row};
    set.template.row.protocol = "name: y\n";
    change(world, set, 0);
    assert_int_equal(store_audits(world->reader, &(struct audit_filter){.limit = 1}, &world->arena,
                                  &audits, &world->err),
                     0);
    assert_non_null(strstr(audits.items[0].after, "\"protocol\":\"(secret)\""));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
static const struct CMUnitTest tests[] = {
    TEST(kept_and_found_by_both_names),
    TEST(a_name_is_one_of_its_author),
    TEST(too_long),
    TEST(so_many_of_one_author),
    TEST(approved_anew_after_each_change),
    TEST(stars_and_uses_are_counted),
    TEST(removed_with_its_stars),
    TEST(they_go_with_their_author),
    TEST(a_group_that_is_removed_takes_its_share),
    TEST(the_audit_says_what_changed),
};
UNIT_FILE(tests, NULL, NULL);
