/* audits.h — what an audit of the event log must find, and the ends of attempts, for the tests of
 * the server. */
#ifndef TESTS_SERVER_AUDITS_H
#define TESTS_SERVER_AUDITS_H
#include "unit.h"

#include "world.h"

#include <sqlite3.h>

#include "base/err.h"
#include "server/audit.h"
#include "server/config.h"
#include "store/read.h"

/* Of a server that has ended: its log gives what its rows say. */
static inline void expect_audit(struct world *world, uint64_t restores, uint64_t jobs)
{
    struct server_config *config = config_of(world, world->extra);
    struct audit audit;
    struct store *store;
    int code;

    assert_int_equal(store_open(world->directory, &store, &world->err), 0);
    code = server_audit(store, &config->core, &audit, &world->err);
    store_close(store);
    server_config_free(config);
    assert_string_equal(code < 0 ? world->err.text : "", "");
    assert_int_equal(audit.restores, restores);
    assert_int_equal(audit.jobs, jobs);
    assert_true(audit.events > restores);
}

/* Each ended attempt of the job has both: the exit's row and what is kept of its end. */
static inline void expect_ends(struct world *world, struct store *store, struct job_id job,
                               size_t *ended)
{
    struct store_reader *reader;
    struct store_tasks tasks;

    assert_int_equal(store_reader_open(store, &reader, &world->err), 0);
    assert_int_equal(store_tasks(reader, job, -1, &world->arena, &tasks, &world->err), 0);
    for (size_t i = 0; i < tasks.count; i++) {
        const struct task_record *task = &tasks.items[i];
        struct store_attempt_end end;
        int code = store_attempt_end(reader, task->attempt, &world->arena, &end, &world->err);
        if (task->state < LIFE_ATTEMPT_COMPLETED) {
            assert_int_equal(code, ERR_NOT_FOUND);
            continue;
        }
        if (task->completion.code != 231) { /* ended with its peer, or lost with the server */
            assert_true(code == ERR_NOT_FOUND || end.rule.number == 0);
            continue;
        }
        assert_int_equal(code, 0);
        assert_true(text_is(end.tail, "started\nSyntaxError: invalid syntax\n"));
        assert_int_equal(end.rule.code, 231);
        assert_string_equal(end.rule.phrase, "ContainerSyntaxError");
        assert_string_equal(end.rule.file, "");
        assert_string_equal(end.rule.log, "user");
        assert_true(text_is(end.rule.text, "SyntaxError: invalid syntax"));
        assert_true(end.rule.number > 0 && end.rule.pattern > 0 && end.rule.line > 0);
        (*ended)++;
    }
    store_reader_close(reader);
}

#define SYNTAX_ERROR "exitCode: 1, log: \"\\e[31mSyntaxError: invalid syntax\\e[0m\\n\""

static inline int audit(struct world *world)
{
    struct server_config *config = config_of(world, "");
    struct audit audit;
    struct store *store;
    int code;

    assert_int_equal(store_open(world->directory, &store, &world->err), 0);
    code = server_audit(store, &config->core, &audit, &world->err);
    store_close(store);
    server_config_free(config);
    return code;
}

#endif
