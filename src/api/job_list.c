#include "api/handlers.h"
#include "api/view.h"
#include "base/memory.h"
#include "spec/spec.h"

enum { LIST_LIMIT = 5000, LIST_LIMIT_MAX = 50000, LIST_ITEMS_MAX = 256 };

struct list {
    struct text *items;
    size_t count;
};

/* "a,b,c"; empty parts are left out. */
static int comma_list(struct call *call, const char *name, struct list *list)
{
    struct text text = exchange_query(call->exchange, name);
    *list = (struct list){0};
    if (!text.at || !text.length)
        return 0;
    list->items = ARENA_ARRAY(call->arena, struct text, LIST_ITEMS_MAX);
    while (text.at) {
        struct text item = text_cut(&text, ',');
        if (!item.length)
            continue;
        if (list->count == LIST_ITEMS_MAX)
            return call_fail(call, ERR_INVALID, NULL, name, "%s has more than %d parts", name,
                             LIST_ITEMS_MAX);
        list->items[list->count++] = item;
    }
    return 0;
}

static int states_parse(struct call *call, struct job_filter *filter)
{
    struct list list;
    int code = comma_list(call, "state", &list);
    for (size_t i = 0; i < list.count; i++) {
        unsigned shown = 0;
        while (shown < PUBLIC_STATE_COUNT &&
               !text_is(list.items[i], public_state_name((enum public_state)shown)))
            shown++;
        if (shown == PUBLIC_STATE_COUNT)
            return call_fail(call, ERR_INVALID, NULL, "state",
                             "state '%.*s' is none of WAITING, RUNNING, STOPPING, SUCCEEDED, "
                             "STOPPED, FAILED",
                             TEXT_ARG(list.items[i]));
        filter->states |= 1u << shown;
    }
    return code;
}

static int priorities_parse(struct call *call, struct job_filter *filter)
{
    static const struct {
        const char *name;
        int32_t priority;
    } CLASSES[] = {
        {"oppo", SPEC_OPPO}, {"test", SPEC_TEST}, {"prod", SPEC_PROD}, {"crit", SPEC_CRIT}};
    struct list list;
    int code = comma_list(call, "jobPriority", &list);
    if (code)
        return code;
    int32_t *priorities = ARENA_ARRAY(call->arena, int32_t, list.count + 1);
    filter->priorities = priorities;
    for (size_t i = 0; i < list.count; i++) {
        if (text_is(list.items[i], "default")) {
            filter->wants_default_priority = true;
            continue;
        }
        size_t class = 0;
        while (class < COUNT_OF(CLASSES) && !text_is(list.items[i], CLASSES[class].name))
            class ++;
        if (class == COUNT_OF(CLASSES))
            return call_fail(call, ERR_INVALID, NULL, "jobPriority",
                             "jobPriority '%.*s' is none of oppo, test, prod, crit, default",
                             TEXT_ARG(list.items[i]));
        priorities[filter->priority_count++] = CLASSES[class].priority;
    }
    return 0;
}

/* "field,ASC|DESC"; anything else is the newest first, as in OpenPAI. */
static void order_parse(struct call *call, struct job_filter *filter)
{
    static const struct {
        const char *name;
        enum job_order order;
    } FIELDS[] = {
        {"jobName", ORDER_NAME},
        {"submissionTime", ORDER_SUBMITTED},
        {"username", ORDER_USER},
        {"vc", ORDER_VIRTUAL_CLUSTER},
        {"retries", ORDER_RETRIES},
        {"totalTaskNumber", ORDER_TASKS},
        {"totalGpuNumber", ORDER_GPUS},
        {"state", ORDER_STATE},
        {"completionTime", ORDER_COMPLETED},
        {"jobPriority", ORDER_PRIORITY},
    };
    filter->order = ORDER_SUBMITTED;
    filter->is_descending = true;
    struct text direction = exchange_query(call->exchange, "order");
    if (!direction.at)
        return;
    struct text field = text_cut(&direction, ',');
    bool is_descending = direction.at && text_is(direction, "DESC");
    if (!is_descending && !(direction.at && text_is(direction, "ASC")))
        return;
    for (size_t i = 0; i < COUNT_OF(FIELDS); i++) {
        if (text_is(field, FIELDS[i].name)) {
            filter->order = FIELDS[i].order;
            filter->is_descending = is_descending;
        }
    }
}

int job_filter_parse(struct call *call, struct job_filter *filter)
{
    struct list users, clusters, tags, tags_not;
    int64_t offset, limit;
    int code = comma_list(call, "username", &users);
    if (!code)
        code = comma_list(call, "vc", &clusters);
    if (!code)
        code = comma_list(call, "tagsContain", &tags);
    if (!code)
        code = comma_list(call, "tagsNotContain", &tags_not);
    if (!code)
        code = states_parse(call, filter);
    if (!code)
        code = priorities_parse(call, filter);
    if (!code)
        code = call_number(call, "offset", 0, INT64_MAX, 0, &offset);
    if (!code)
        code = call_number(call, "limit", 0, LIST_LIMIT_MAX, LIST_LIMIT, &limit);
    if (code)
        return code;
    filter->users = users.items;
    filter->user_count = users.count;
    filter->virtual_clusters = clusters.items;
    filter->virtual_cluster_count = clusters.count;
    filter->tags = tags.items;
    filter->tag_count = tags.count;
    filter->tags_not = tags_not.items;
    filter->tag_not_count = tags_not.count;
    filter->keyword = exchange_query(call->exchange, "keyword");
    filter->offset = (uint64_t)offset;
    filter->limit = (uint64_t)limit;
    order_parse(call, filter);
    return 0;
}

static void list_json(struct call *call, const struct job_page *page, bool has_total, bool is_v1)
{
    struct json_writer json;
    call_json(call, 200, &json);
    if (has_total) {
        json_object(&json);
        json_key_int(&json, "totalCount", (int64_t)page->total);
        json_key(&json, "data");
    }
    json_array(&json);
    for (size_t i = 0; i < page->count; i++)
        view_job_summary(&json, &page->items[i], is_v1);
    json_array_end(&json);
    if (has_total)
        json_object_end(&json);
}

int handle_job_list(struct call *call)
{
    struct job_filter filter = {0};
    int code = job_filter_parse(call, &filter);
    if (code)
        return code;
    struct job_page page = {0};
    bool has_total = text_is(exchange_query(call->exchange, "withTotalCount"), "true");
    filter.skips_total = !has_total;
    store_job_list(call->api->service->store, &filter, call->arena, &page);
    list_json(call, &page, has_total, false);
    return 0;
}

int handle_job_list_v1(struct call *call)
{
    struct job_filter filter = {.limit = LIST_LIMIT, .is_descending = true, .skips_total = true};
    struct text user = call->parameters[0]; /* of /user/:user/jobs */
    if (!user.at)
        user = exchange_query(call->exchange, "username");
    if (user.at && user.length) {
        filter.users = &user;
        filter.user_count = 1;
    }
    struct job_page page = {0};
    store_job_list(call->api->service->store, &filter, call->arena, &page);
    list_json(call, &page, false, true);
    return 0;
}
