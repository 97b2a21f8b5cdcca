/* What is asked is the mail's own. */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/memory.h"
#include "store/read.h"

/* Memory of a requester, of which nothing is left when he has asked. */
struct lent {
    char *items[16];
    size_t count;
};

static char *lend(struct lent *lent, const char *string)
{
    assert_true(lent->count < COUNT_OF(lent->items));
    return lent->items[lent->count++] = mem_copy(string);
}

static void lent_spoil(struct lent *lent)
{
    while (lent->count > 0) {
        char *string = lent->items[--lent->count];
        memset(string, '?', strlen(string));
        mem_free(string);
    }
}

/* Whoever asks may go before the core thread takes what he asked: all of it is copied. */
static void what_is_asked_is_copied(void **state)
{
    struct world *world = *state;
    struct lent lent = {0};
    struct wait first, of_group, of_user;
    struct store_user user;
    struct store_group group;
    struct store_members members;

    round_begin(world, &first);
    const char **clusters = mem_zero(1, sizeof *clusters);
    struct store_member *groups = mem_zero(1, sizeof *groups);
    clusters[0] = lend(&lent, "vc1");
    groups[0].name = lend(&lent, "team");
    struct store_change change = {.kind = CHANGE_GROUP_ADD,
                                  .group = {.name = lend(&lent, "team"),
                                            .description = lend(&lent, "of red"),
                                            .external_name = lend(&lent, "cn=team"),
                                            .extension_json = lend(&lent, "{\"a\":1}"),
                                            .virtual_clusters = {clusters, 1}}};
    assert_int_equal(
        world->service->change(world->service->context, &change, wait_init(&of_group), &world->err),
        0);
    change = (struct store_change){.kind = CHANGE_USER_ADD,
                                   .user = {.name = lend(&lent, "dora"),
                                            .password_hash = lend(&lent, "hash"),
                                            .email = lend(&lent, "dora@example.org"),
                                            .groups = {groups, 1},
                                            .virtual_clusters = {clusters, 1},
                                            .extension_json = lend(&lent, "{\"b\":2}")}};
    assert_int_equal(
        world->service->change(world->service->context, &change, wait_init(&of_user), &world->err),
        0);
    lent_spoil(&lent);
    memset(clusters, 0, sizeof *clusters);
    memset(groups, 0, sizeof *groups);
    mem_free(clusters);
    mem_free(groups);
    round_end(&first);
    assert_int_equal(wait_for(&of_group), 0);
    assert_int_equal(wait_for(&of_user), 0);
    struct store_reader *rows = world->service->reader_get(world->service->context, &world->err);
    assert_int_equal(store_group(rows, TEXT("team"), &world->arena, &group, &members, &world->err),
                     0);
    assert_string_equal(group.description, "of red");
    assert_string_equal(group.external_name, "cn=team");
    assert_string_equal(group.extension_json, "{\"a\":1}");
    assert_int_equal(group.virtual_clusters.count, 1);
    assert_string_equal(group.virtual_clusters.items[0], "vc1");
    assert_int_equal(store_user(rows, TEXT("dora"), &world->arena, &user, &world->err), 0);
    assert_string_equal(user.password_hash, "hash");
    assert_string_equal(user.email, "dora@example.org");
    assert_string_equal(user.extension_json, "{\"b\":2}");
    assert_int_equal(user.virtual_clusters.count, 1);
    assert_string_equal(user.virtual_clusters.items[0], "vc1");
    assert_int_equal(user.groups.count, 1);
    assert_string_equal(user.groups.items[0].name, "team");
    world->service->reader_put(world->service->context, rows);
}

static const struct CMUnitTest tests[] = {
    ROUNDS(what_is_asked_is_copied),
};
UNIT_FILE(tests, world_begin, NULL);
