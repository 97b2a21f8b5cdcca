/* GET /api/v2/jobs/JOB/tasks: the tasks of a job in pages */
#include "api/handlers.h"
#include "api/page.h"
#include "api/view.h"
#include "core/plan.h"

enum { INDEX_BITS = 16 };
static const struct page_limits limits = {1, PAGE_LIMIT_MAX, PAGE_LIMIT};

static struct text task_key(struct call *call, struct task_ref task)
{
    return page_number(call, (uint64_t)task.role << INDEX_BITS | task.index);
}

static int place_parse(const struct list_page *page, struct task_filter *filter)
{
    uint64_t number;
    filter->has_after = page->after.at;
    if (!page->after.at)
        return 0;
    if (!page_number_parse(page->after, &number) || number >> INDEX_BITS > UINT16_MAX)
        return page_fail(page);
    filter->after =
        (struct task_ref){(uint16_t)(number >> INDEX_BITS), (uint16_t)(number & UINT16_MAX)};
    return 0;
}

/* from=INDEX: of one role the tasks from this one on, as a cursor would have it. */
static int from_parse(struct call *call, struct job_id job, const struct call_words *roles,
                      const struct list_page *page, struct task_filter *filter)
{
    int64_t from;
    cleanup_plan struct plan *plan = NULL;
    int code = call_number(call, "from", 0, UINT16_MAX, -1, &from);
    if (code || from < 0)
        return code;
    if (roles->count != 1 || page->after.at)
        return call_fail(call, ERR_INVALID, NULL, "from",
                         "from is an index within one role, and stands beside no cursor");
    code = store_job_plan(call->reader, job, &plan, &call->err);
    for (uint16_t r = 0; !code && r < plan->role_count; r++)
        if (text_is(roles->items[0], plan->roles[r].name))
            filter->after = (struct task_ref){r, (uint16_t)(from - 1)};
    filter->has_after = from > 0;
    return code;
}

static int filter_parse(struct call *call, struct job_id job, struct list_page *page,
                        struct task_filter *filter)
{
    struct call_words roles, nodes;
    *filter = (struct task_filter){0};
    int code = call_number(call, "attempt", 0, UINT32_MAX, -1, &filter->job_attempt);
    if (!code)
        code = call_words(call, "role", &roles);
    if (!code)
        code = call_words(call, "node", &nodes);
    if (!code)
        code = call_states(call, &filter->states);
    if (!code)
        code = place_parse(page, filter);
    if (!code)
        code = from_parse(call, job, &roles, page, filter);
    if (code)
        return code;
    filter->keyword = exchange_query(call->exchange, "keyword");
    filter->roles = roles.items;
    filter->role_count = roles.count;
    filter->nodes = nodes.items;
    filter->node_count = nodes.count;
    filter->limit = page->limit + 1; /* is there another page? */
    return 0;
}

/* Of the attempt that the tasks are of: their logs are found by its name. */
static void tasks_json(struct list_page *page, const struct store_job *job,
                       const struct store_tasks *tasks)
{
    struct call *call = page->call;
    const size_t shown = page_keep(page, tasks->count);
    if (shown > 0 && shown < tasks->count)
        page->last = task_key(call, tasks->items[shown - 1].task);
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(page, &json);
    for (size_t i = 0; i < shown; i++)
        view_task(&json,
                  &(struct view_task){
                      .job = &job->record, .task = &tasks->items[i], .rules = call_rules(call)},
                  NULL);
    page_end(page, &json);
}

int handle_task_list(struct call *call)
{
    struct store_job job;
    struct list_page page;
    struct task_filter filter;
    struct store_tasks tasks = {0};
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = page_parse(call, &page, arena_format(call->arena, "tasks of %u", job.record.id.v),
                          &limits);
    if (!code)
        code = call_reader(call) ? 0 : call->err.code;
    if (!code)
        code = filter_parse(call, job.record.id, &page, &filter);
    if (!code)
        code =
            store_task_page(call->reader, job.record.id, &filter, call->arena, &tasks, &call->err);
    if (code == ERR_NOT_FOUND)
        call->error_code = "NoJobError";
    if (code)
        return code;
    tasks_json(&page, &job, &tasks);
    return 0;
}
