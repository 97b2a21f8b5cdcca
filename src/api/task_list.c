/* GET /api/v2/jobs/JOB/tasks: the tasks of a job in pages; and what values they have to filter by
 */
#include "api/handlers.h"
#include "api/page.h"
#include "api/view.h"
#include "core/plan.h"
#include "exits/rules.h"
#include <assert.h>
#include <stdlib.h>

enum { INDEX_BITS = 16 };
static const struct page_limits limits = {1, PAGE_LIMIT_MAX, PAGE_LIMIT};

/* --- how a task ended --- */

static bool has_ended(const struct task_record *task)
{
    return task->state >= LIFE_DELETION_PENDING;
}

/* The type that its reply has; NULL: it has not ended, or nothing is known of its code. */
static const char *exit_type(const struct task_record *task, const struct exit_rules *rules)
{
    assert(rules);
    return has_ended(task) ? exit_rules_find(rules, task->completion.code)->type : NULL;
}

/* The process's own code, or where it has none that of the platform. */
static int32_t exit_code(const struct completion *completion)
{
    return completion->is_success || completion->exit_code ? completion->exit_code
                                                           : completion->code;
}

struct exit_filter {
    const struct exit_rules *rules;
    struct call_words types, codes;
    const int32_t *numbers; /* of the codes */
};

static bool exit_passes(const void *context, const struct task_record *task)
{
    const struct exit_filter *filter = context;
    const char *type = exit_type(task, filter->rules);
    bool has_type = !filter->types.count, has_code = !filter->codes.count;
    for (size_t i = 0; type && i < filter->types.count && !has_type; i++)
        has_type = text_is(filter->types.items[i], type);
    for (size_t i = 0; has_ended(task) && i < filter->codes.count && !has_code; i++)
        has_code = filter->numbers[i] == exit_code(&task->completion);
    return has_type && has_code;
}

static int exit_filter_parse(struct call *call, struct exit_filter *exits)
{
    *exits = (struct exit_filter){.rules = call_rules(call)};
    int code = call_words(call, "exitType", &exits->types);
    if (!code)
        code = call_words(call, "exitCode", &exits->codes);
    if (code)
        return code;
    int32_t *numbers = ARENA_ARRAY(call->arena, int32_t, exits->codes.count + 1);
    for (size_t i = 0; i < exits->codes.count; i++) {
        int64_t number;
        if (!text_to_int64(exits->codes.items[i], &number) || number < INT32_MIN ||
            number > INT32_MAX)
            return call_fail(call, ERR_INVALID, NULL, "exitCode",
                             "exitCode '%.*s' is no whole number in %d..%d",
                             TEXT_ARG(exits->codes.items[i]), INT32_MIN, INT32_MAX);
        numbers[i] = (int32_t)number;
    }
    exits->numbers = numbers;
    return 0;
}

/* --- order --- */

/* Another one than by role and index. Such a list, and one with an offset or a total, is read whole
 * before it is cut. */
struct task_order {
    enum { BY_PLACE, BY_STATE, BY_EXIT_TYPE } field;
    bool is_descending;
    bool is_whole;
    bool has_total;
    int64_t offset;
    const struct exit_rules *rules;
};

static int order_parse(struct call *call, const struct list_page *page, struct task_order *order)
{
    static const struct {
        const char *name;
        struct task_order order;
    } ORDERS[] = {
        {"state,ASC", {.field = BY_STATE}},
        {"state,DESC", {.field = BY_STATE, .is_descending = true}},
        {"exitType,ASC", {.field = BY_EXIT_TYPE}},
        {"exitType,DESC", {.field = BY_EXIT_TYPE, .is_descending = true}},
    };
    const struct text text = exchange_query(call->exchange, "order");
    const bool has_offset = exchange_query(call->exchange, "offset").at;
    *order = (struct task_order){0};
    if (text.at) {
        size_t i = 0;
        while (i < COUNT_OF(ORDERS) && !text_is(text, ORDERS[i].name))
            i++;
        if (i == COUNT_OF(ORDERS))
            return call_fail(call, ERR_INVALID, NULL, "order",
                             "order '%.*s' is none of state,ASC state,DESC exitType,ASC "
                             "exitType,DESC",
                             TEXT_ARG(text));
        *order = ORDERS[i].order;
    }
    if (text.at && page->has_cursor)
        return call_fail(call, ERR_INVALID, NULL, "order",
                         "tasks in this order have no cursor: use offset and limit");
    if ((text.at || has_offset) && exchange_query(call->exchange, "from").at)
        return call_fail(call, ERR_INVALID, NULL, "from",
                         "from is an index of a role's tasks in their order: give neither order "
                         "nor offset with it");
    order->rules = call_rules(call);
    order->has_total = text_is(exchange_query(call->exchange, "withTotalCount"), "true");
    order->is_whole = text.at || has_offset || order->has_total;
    if (order->has_total && page->has_cursor)
        return call_fail(call, ERR_INVALID, NULL, "withTotalCount",
                         "pages with a cursor have no total: use offset and limit");
    return call_number(call, "offset", 0, INT64_MAX, 0, &order->offset);
}

static int tasks_compare(const void *a, const void *b, void *context)
{
    const struct task_record *left = *(const struct task_record *const *)a;
    const struct task_record *right = *(const struct task_record *const *)b;
    const struct task_order *order = context;
    int found = 0;
    if (order->field == BY_STATE) {
        found = (int)life_public(left->state, left->completion.code, false) -
                (int)life_public(right->state, right->completion.code, false);
    } else if (order->field == BY_EXIT_TYPE) {
        const char *first = exit_type(left, order->rules), *second = exit_type(right, order->rules);
        if (!first || !second) /* those without one are the last in either direction */
            return !first && !second ? (left > right) - (left < right) : first ? -1 : 1;
        found = strcmp(first, second);
    }
    if (found)
        return order->is_descending ? -found : found;
    return (left > right) - (left < right); /* they stand by role and index */
}

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
                       const struct store_tasks *tasks, struct task_order *order)
{
    struct call *call = page->call;
    const struct task_record **rows =
        ARENA_ARRAY(call->arena, const struct task_record *, tasks->count + 1);
    for (size_t i = 0; i < tasks->count; i++)
        rows[i] = &tasks->items[i];
    if (order->field != BY_PLACE)
        qsort_r(rows, tasks->count, sizeof *rows, tasks_compare, order);
    const size_t first =
        (uint64_t)order->offset < tasks->count ? (size_t)order->offset : tasks->count;
    const size_t shown = page_keep(page, tasks->count - first);
    if (shown > 0 && first + shown < tasks->count && order->field == BY_PLACE && !order->has_total)
        page->last = task_key(call, rows[first + shown - 1]->task);
    page->total = order->has_total ? (int64_t)tasks->count : -1;
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(page, &json);
    for (size_t i = first; i < first + shown; i++)
        view_task(
            &json,
            &(struct view_task){.job = &job->record, .task = rows[i], .rules = call_rules(call)},
            NULL);
    page_end(page, &json);
}

int handle_task_list(struct call *call)
{
    struct store_job job;
    struct list_page page;
    struct task_filter filter;
    struct task_order order = {0};
    struct exit_filter exits;
    struct store_tasks tasks = {0};
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = page_parse(call, &page, arena_format(call->arena, "tasks of %u", job.record.id.v),
                          &limits);
    if (!code)
        code = call_reader(call) ? 0 : call->err.code;
    if (!code)
        code = order_parse(call, &page, &order);
    if (!code)
        code = exit_filter_parse(call, &exits);
    if (!code)
        code = filter_parse(call, job.record.id, &page, &filter);
    if (!code && (exits.types.count || exits.codes.count)) {
        filter.passes = exit_passes;
        filter.context = &exits;
    }
    if (!code && order.is_whole)
        filter.limit = UINT64_MAX;
    if (!code)
        code =
            store_task_page(call->reader, job.record.id, &filter, call->arena, &tasks, &call->err);
    if (code == ERR_NOT_FOUND)
        call->error_code = "NoJobError";
    if (code)
        return code;
    tasks_json(&page, &job, &tasks, &order);
    return 0;
}

/* --- the values that the tasks have --- */

enum { VALUES_MAX = 1000 };

static int strings_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int numbers_compare(const void *a, const void *b)
{
    const int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

/* Each once, the first VALUES_MAX of them. True: there are more. */
static bool strings_json(struct json_writer *json, const char *key, const char **items,
                         size_t count)
{
    size_t shown = 0, different = 0;
    qsort(items, count, sizeof *items, strings_compare);
    json_key(json, key);
    json_array(json);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(items[i - 1], items[i]) == 0)
            continue;
        different++;
        if (shown < VALUES_MAX) {
            json_string(json, items[i]);
            shown++;
        }
    }
    json_array_end(json);
    return different > shown;
}

static bool numbers_json(struct json_writer *json, const char *key, int32_t *items, size_t count)
{
    size_t shown = 0, different = 0;
    qsort(items, count, sizeof *items, numbers_compare);
    json_key(json, key);
    json_array(json);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && items[i - 1] == items[i])
            continue;
        different++;
        if (shown < VALUES_MAX) {
            json_int(json, items[i]);
            shown++;
        }
    }
    json_array_end(json);
    return different > shown;
}

static void values_json(struct call *call, const struct store_tasks *tasks)
{
    const struct exit_rules *rules = call_rules(call);
    const char **types = ARENA_ARRAY(call->arena, const char *, tasks->count + 1);
    const char **nodes = ARENA_ARRAY(call->arena, const char *, tasks->count + 1);
    int32_t *codes = ARENA_ARRAY(call->arena, int32_t, tasks->count + 1);
    size_t type_count = 0, node_count = 0, code_count = 0;
    for (size_t i = 0; i < tasks->count; i++) {
        const struct task_record *task = &tasks->items[i];
        const char *type = exit_type(task, rules);
        if (type)
            types[type_count++] = type;
        if (has_ended(task))
            codes[code_count++] = exit_code(&task->completion);
        if (task->node[0])
            nodes[node_count++] = task->node;
    }
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    bool is_cut = strings_json(&json, "exitTypes", types, type_count);
    is_cut |= numbers_json(&json, "exitCodes", codes, code_count);
    is_cut |= strings_json(&json, "nodes", nodes, node_count);
    json_key_bool(&json, "isCut", is_cut);
    json_object_end(&json);
}

int handle_task_values(struct call *call)
{
    struct store_job job;
    struct store_tasks tasks = {0};
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = call_reader(call) ? 0 : call->err.code;
    if (!code)
        code = store_tasks(call->reader, job.record.id, -1, call->arena, &tasks, &call->err);
    if (code)
        return code;
    values_json(call, &tasks);
    return 0;
}
