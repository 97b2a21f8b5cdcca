/* history.c — see history.h. */
#include "cli/history.h"
#include "cli/job.h"
#include "cli/print.h"

enum { EVENTS_PAGE = 10000 };

/* All attempts of one task within one attempt of the job, into the task's `attempts`. */
static int task_fetch(struct client *client, const char *job, int64_t job_attempt, const char *role,
                      json_t *task)
{
    cleanup_buf struct buf rest = BUF_INIT, path = BUF_INIT;
    json_auto_t *whole = NULL;
    buf_format(&rest, "/attempts/%lld/taskRoles/", (long long)job_attempt);
    client_encode(&rest, role);
    buf_format(&rest, "/taskIndex/%lld/attempts", (long long)field_int(task, "taskIndex"));
    job_path(&path, job, buf_cstr(&rest));
    int code = client_get(client, buf_cstr(&path), &whole);
    if (!code)
        json_object_set(task, "attempts", json_object_get(whole, "attempts"));
    return code;
}

/* The tasks of one attempt of the job with all their attempts, into its `tasks`. A table needs no
 * more of a task that ended well at its first try than the task itself. */
static int tasks_fetch(struct client *client, const char *job, json_t *attempt, bool is_table)
{
    cleanup_buf struct buf rest = BUF_INIT, path = BUF_INIT;
    json_t *detail = NULL, *all = json_array(), *value;
    const int64_t index = field_int(attempt, "attemptIndex");
    buf_format(&rest, "/attempts/%lld", (long long)index);
    job_path(&path, job, buf_cstr(&rest));
    int code = client_get(client, buf_cstr(&path), &detail);
    const char *role;
    json_object_foreach (json_object_get(detail, "taskRoles"), role, value) {
        json_t *tasks = json_object_get(value, "taskStatuses");
        for (size_t i = 0; i < json_array_size(tasks) && !code; i++) {
            json_t *task = json_array_get(tasks, i);
            bool is_plain = !field_int(task, "retries") && !field_int(task, "containerExitCode");
            if (!is_table || !is_plain)
                code = task_fetch(client, job, index, role, task);
            json_array_append(all, task);
        }
    }
    json_object_set_new(attempt, "tasks", all);
    json_decref(detail);
    return code;
}

int history_attempts(struct client *client, const char *job, bool is_table, json_t *detail)
{
    cleanup_buf struct buf path = BUF_INIT;
    json_auto_t *attempts = NULL;
    job_path(&path, job, "/attempts");
    int code = client_get(client, buf_cstr(&path), &attempts);
    for (size_t i = 0; i < json_array_size(attempts) && !code; i++)
        code = tasks_fetch(client, job, json_array_get(attempts, i), is_table);
    if (!code)
        json_object_set(detail, "attempts", attempts);
    return code;
}

int history_events(struct client *client, const char *job, json_t *detail)
{
    json_t *newest_first = json_array(), *events = json_array();
    int64_t total = 1;
    int code = 0;
    while (!code && (int64_t)json_array_size(newest_first) < total) {
        cleanup_buf struct buf rest = BUF_INIT, path = BUF_INIT;
        json_t *page = NULL;
        buf_format(&rest, "/events?limit=%d&offset=%zu", EVENTS_PAGE,
                   json_array_size(newest_first));
        job_path(&path, job, buf_cstr(&rest));
        code = client_get(client, buf_cstr(&path), &page);
        json_t *data = json_object_get(page, "data");
        total = json_array_size(data) ? field_int(page, "totalCount") : 0;
        json_array_extend(newest_first, data);
        json_decref(page);
    }
    for (size_t i = json_array_size(newest_first); i-- > 0;)
        json_array_append(events, json_array_get(newest_first, i));
    json_object_set_new(detail, "events", events);
    json_decref(newest_first);
    return code;
}
