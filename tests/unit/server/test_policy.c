/* Another policy of a configuration that is read again takes over in several steps.
 * Covers: src/server/core_thread.c */
#include "faults.h"
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "sys/log.h"

#include <stdio.h>
#include <string.h>

enum { NODES = 2000 };

static int setup_nodes(void **state)
{
    log_to(-1);
    int code = setup_with(state, "nodes: 2000, gpus: 8, cpu: 8, runMilliseconds: 600000", "");
    metric_await(*state, "skep_nodes", NODES);
    return code;
}

/* One of which HiveD does not know the virtual cluster; the plain policies know none. */
static void elsewhere_ask(struct world *world, const char *name, struct wait *wait)
{
    struct service_submission submission = {
        .source = text_of(job_text(world, name, "defaults: {virtualCluster: elsewhere}\n"))};

    assert_int_equal(ask_submission(world, submission, wait_init(wait)), 0);
}

/* It is taken in the end. */
static void elsewhere_await(struct world *world)
{
    struct wait wait;
    char name[20];
    int code = -1;

    for (int i = 0; code != 0; i++) {
        snprintf(name, sizeof name, "late%d", i);
        elsewhere_ask(world, name, &wait);
        code = wait_for(&wait);
        assert_true(code == 0 || code == ERR_INVALID);
    }
}

/* The next commit is held: what is posted until it goes on is one batch. */
static void batch_hold(struct world *world, struct wait *wait)
{
    const struct store_change change = {.kind = CHANGE_SETTING, .setting = {"test", TEXT("x")}};

    commits_hold();
    assert_int_equal(
        world->service->change(world->service->context, &change, wait_init(wait), &world->err), 0);
    commits_await_held();
}

static void that_of_before_answers_until_then(void **state)
{
    struct world *world = *state;
    struct wait held, wait;
    char path[100];

    snprintf(path, sizeof path, "%s/said", world->directory);
    FILE *said = fopen(path, "w+");
    assert_non_null(said);
    log_to(fileno(said));
    log_setup(LOG_INFO, LOG_TEXT);
    batch_hold(world, &held);
    server_reload(world->server, config_of(world, "scheduling: {policy: best-fit}\n"));
    elsewhere_ask(world, "early", &wait);
    commits_release();
    assert_int_equal(wait_for(&held), 0);
    assert_int_equal(wait_for(&wait), ERR_INVALID);
    elsewhere_await(world);
    log_setup(LOG_ERROR, LOG_TEXT);
    log_to(-1);
    char text[4000];
    rewind(said);
    text[fread(text, 1, sizeof text - 1, said)] = '\0';
    fclose(said);
    assert_non_null(strstr(text, "the policy best-fit and its virtual clusters are in force"));
}

/* A core that is made anew is one of the configuration that was read last. */
static void a_store_that_fails_meanwhile_ends_it(void **state)
{
    struct world *world = *state;
    struct wait held, wait;

    batch_hold(world, &held);
    COMMITS(0, ERR_UNAVAILABLE); /* that which is held, and the batch after it */
    server_reload(world->server, config_of(world, "scheduling: {policy: spread}\n"));
    elsewhere_ask(world, "early", &wait);
    commits_release();
    wait_for(&held);
    assert_int_not_equal(wait_for(&wait), 0);
    metric_await(world, "skep_store_writable", 1);
    elsewhere_await(world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(that_of_before_answers_until_then, setup_nodes,
                                    teardown_faults),
    cmocka_unit_test_setup_teardown(a_store_that_fails_meanwhile_ends_it, setup_nodes,
                                    teardown_faults),
};
UNIT_FILE(tests, world_begin, NULL);
