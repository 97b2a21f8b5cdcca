/* A job takes its secrets from one that is there. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "server/container.h"

static int long_setup(void **state)
{
    return setup_with(state, "runMilliseconds: 600000", "scheduling: {finishedKeepSeconds: 0}\n");
}

#define FILE_OF(secrets)                                                                           \
    "protocolVersion: 2\nname: %s\ntype: job\n"                                                    \
    "prerequisites:\n- {protocolVersion: 2, name: i, type: dockerimage, uri: x, auth: "            \
    "{username: me, password: <%% $secrets.pull %%>, registryuri: r}}\n"                           \
    "taskRoles:\n  w:\n    dockerImage: i\n"                                                       \
    "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n"                                     \
    "    commands: [run <%% $secrets.key %%>]\n" secrets

static const char *file(struct world *world, const char *format, const char *name)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    return arena_format(&world->arena, format, name);
#pragma GCC diagnostic pop
}

static const char whole[] = FILE_OF("secrets: '******'\n");
static const char single[] = FILE_OF("secrets: {key: other, pull: '******'}\n");

static int take(struct world *world, const char *text, struct job_id from, struct job_id *job)
{
    struct wait wait;
    struct service_reply reply = wait_init(&wait);
    const struct service_submission submission = {
        .source = text_of(text), .secrets_of = "admin~first", .secrets_job = from};
    int code = ask_submission(world, submission, reply);
    if (code == 0)
        code = wait_for(&wait);
    if (code == 0)
        *job = wait.answer.job;
    return code;
}

static struct job_id first(struct world *world)
{
    struct job_id job;
    assert_int_equal(
        submit(world, file(world, FILE_OF("secrets: {key: k1, pull: \"p 1\"}\n"), "first"), &job),
        0);
    return job;
}

/* What the launcher will give to the job's tasks. */
static void secret_is(struct world *world, struct job_id job, const char *name, const char *value)
{
    char path[100];
    struct key_file keys;
    struct store_source source;
    struct spec_pair *secrets;
    size_t count;
    snprintf(path, sizeof path, "%s/key", world->directory);
    assert_int_equal(key_file_load(path, &keys, &world->err), 0);
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    assert_non_null(reader);
    assert_int_equal(store_job_source(reader, job, &world->arena, &source, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    assert_int_equal(
        secrets_open(source.sealed, &keys, &world->arena, &secrets, &count, &world->err), 0);
    assert_int_equal(count, 2);
    assert_null(memmem(source.source.at, source.source.length, value, strlen(value)));
    for (size_t i = 0; i < count; i++)
        if (strcmp(secrets[i].name, name) == 0) {
            assert_string_equal(secrets[i].value, value);
            return;
        }
    fail_msg("no secret %s", name);
}

static void masks_stand_for_the_secrets_of_a_job(void **state)
{
    struct world *world = *state;
    struct job_id from = first(world), job = {0};
    assert_int_equal(take(world, file(world, whole, "second"), from, &job), 0);
    secret_is(world, job, "key", "k1");
    secret_is(world, job, "pull", "p 1");
    assert_int_equal(take(world, file(world, single, "third"), from, &job), 0);
    secret_is(world, job, "key", "other");
    secret_is(world, job, "pull", "p 1");
    /* a copy of a copy, and of a job that has ended */
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    wait_until(world, job, PUBLIC_STOPPED);
    from = job;
    assert_int_equal(take(world, file(world, whole, "fourth"), from, &job), 0);
    secret_is(world, job, "key", "other");
}

static void problem_is(struct world *world, const char *wanted)
{
    cleanup_buf struct buf report = BUF_INIT;
    problems_print(&world->problems, "job", &report);
    if (!strstr(buf_cstr(&report), wanted))
        fail_msg("%s\nlacks: %s", buf_cstr(&report), wanted);
}

static void a_secret_that_is_not_there_is_named(void **state)
{
    struct world *world = *state;
    const struct job_id from = first(world);
    struct job_id job;
    const char *text =
        file(world, FILE_OF("secrets: {key: '******', pul: '******', pull: x}\n"), "b");
    assert_int_equal(take(world, text, from, &job), ERR_INVALID);
    problem_is(world, "job:11:31: secrets.pul: job admin~first has no secret of this name (did you "
                      "mean pull?)");
    /* without a job that has them they are refused */
    assert_int_equal(submit(world, file(world, single, "b"), &job), ERR_INVALID);
    problem_is(world, "secrets.pull: this is the mask of a stored copy");
}

static void the_job_may_go_meanwhile(void **state)
{
    struct world *world = *state;
    const struct job_id from = first(world);
    struct job_id job;
    assert_int_equal(act(world, SERVICE_STOP, from), 0);
    wait_until(world, from, PUBLIC_STOPPED);
    assert_int_equal(act(world, SERVICE_DELETE, from), 0);
    assert_int_equal(take(world, file(world, whole, "b"), from, &job), ERR_NOT_FOUND);
    assert_string_equal(world->err.path, "secretsOf");
    assert_string_equal(world->err.text, "there is no job admin~first any more");
}

/* Sent again under its key with the secrets of another job it is another submission. */
static void the_key_is_that_of_the_secrets_too(void **state)
{
    struct world *world = *state;
    const struct job_id from = first(world);
    const char *text = file(world, whole, "b");
    struct service_submission submission = {.source = text_of(text),
                                            .key = TEXT("k"),
                                            .secrets_of = "admin~first",
                                            .secrets_job = from};
    struct job_id other = {0};
    struct wait wait;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask_submission(world, submission, wait_init(&wait)), 0);
        assert_int_equal(wait_for(&wait), 0);
    }
    assert_int_equal(take(world, file(world, single, "c"), from, &other), 0);
    submission.secrets_job = other;
    assert_int_equal(ask_submission(world, submission, wait_init(&wait)), 0);
    assert_int_equal(wait_for(&wait), ERR_CONFLICT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(masks_stand_for_the_secrets_of_a_job, long_setup, teardown),
    cmocka_unit_test_setup_teardown(a_secret_that_is_not_there_is_named, long_setup, teardown),
    cmocka_unit_test_setup_teardown(the_job_may_go_meanwhile, long_setup, teardown),
    cmocka_unit_test_setup_teardown(the_key_is_that_of_the_secrets_too, long_setup, teardown),
};
UNIT_FILE(tests, world_begin, NULL);
