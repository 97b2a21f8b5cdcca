#include "api/handlers.h"
#include "api/page.h"
#include "api/view.h"
#include "base/memory.h"
#include "spec/spec.h"

enum { LIST_LIMIT = 5000, LIST_LIMIT_MAX = 50000 };
static const struct page_limits limits = {0, LIST_LIMIT_MAX, LIST_LIMIT};

int call_states(struct call *call, uint32_t *states)
{
    struct call_words list;
    int code = call_words(call, "state", &list);
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
        *states |= 1u << shown;
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
    struct call_words list;
    int code = call_words(call, "jobPriority", &list);
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
    struct call_words users, clusters, tags, tags_not;
    int64_t offset;
    int code = call_words(call, "username", &users);
    if (!code)
        code = call_words(call, "vc", &clusters);
    if (!code)
        code = call_words(call, "tagsContain", &tags);
    if (!code)
        code = call_words(call, "tagsNotContain", &tags_not);
    if (!code)
        code = call_states(call, &filter->states);
    if (!code)
        code = priorities_parse(call, filter);
    if (!code)
        code = call_number(call, "offset", 0, INT64_MAX, 0, &offset);
    if (!code)
        code = call_number(call, "since", 1, INT64_MAX, 0, &filter->since_ms);
    if (!code)
        code = call_number(call, "until", 1, INT64_MAX, 0, &filter->until_ms);
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
    order_parse(call, filter);
    return 0;
}

/* Number and text that a job was ordered by, between them its id: a cursor's key. */
static struct text place_key(struct call *call, const struct job_place *place)
{
    return text_of(arena_format(call->arena, "%016llx%016llx%.*s",
                                (unsigned long long)place->number, (unsigned long long)place->job.v,
                                TEXT_ARG(place->text)));
}

static bool place_parse(struct text key, struct job_place *place)
{
    enum { NUMBER = PAGE_NUMBER_SIZE - 1 };
    uint64_t job = 0;
    bool is_good = key.length >= (size_t)2 * NUMBER &&
                   page_number_parse((struct text){key.at, NUMBER}, &place->number) &&
                   page_number_parse((struct text){key.at + NUMBER, NUMBER}, &job) &&
                   job <= UINT32_MAX;
    if (is_good) {
        place->job.v = (uint32_t)job;
        place->text = (struct text){key.at + 2 * NUMBER, key.length - 2 * NUMBER};
    }
    return is_good;
}

int handle_job_list(struct call *call)
{
    struct job_filter filter = {0};
    struct job_place place;
    struct list_page page;
    int code = job_filter_parse(call, &filter);
    if (!code)
        code = page_parse(call, &page,
                          arena_format(call->arena, "jobs by %d%c", (int)filter.order,
                                       filter.is_descending ? '-' : '+'),
                          &limits);
    if (!code && page.after.at && !place_parse(page.after, &place))
        code = page_fail(&page);
    if (code)
        return code;
    struct job_page jobs = {0};
    const bool has_total = text_is(exchange_query(call->exchange, "withTotalCount"), "true");
    filter.limit = page.limit + 1; /* is there another page? */
    filter.after = page.after.at ? &place : NULL;
    filter.wants_places = true;
    filter.skips_total = !has_total;
    store_job_list(call->api->service->store, &filter, call->arena, &jobs);
    const size_t count = page_keep(&page, jobs.count);
    if (count > 0 && count < jobs.count)
        page.last = place_key(call, &jobs.places[count - 1]);
    page.total = has_total ? (int64_t)jobs.total : -1;
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t i = 0; i < count; i++)
        view_job_summary(&json, &jobs.items[i], false);
    page_end(&page, &json);
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
    struct json_writer json;
    call_json(call, 200, &json);
    json_array(&json);
    for (size_t i = 0; i < page.count; i++)
        view_job_summary(&json, &page.items[i], true);
    json_array_end(&json);
    return 0;
}
