#include "api/throttle.h"
#include "api/call.h"
#include "api/http_watch.h"
#include "api/log_search.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/rate.h"
#include "sys/clock.h"
#include "sys/secret.h"
#include <assert.h>
#include <pthread.h>

enum { SECOND_US = 1000000, STREAM_RETRY_S = 60 };
#define HOUR_US INT64_C(3600000000)

struct throttle {
    pthread_mutex_t lock;
    struct rate_table rates;
    struct rate_table sign_ups;     /* by network */
    struct rate_table all_sign_ups; /* one name: what empties the table of networks leaves it */
    struct text_map map;            /* user → item */
    struct throttle_item {
        char *user;
        uint64_t version; /* of the accounts when the quotas were read; 0: never */
        int64_t requests, streams;
        char *requests_group, *streams_group; /* whose they are; NULL: the user's own */
        int64_t streams_open;
        unsigned searches; /* that wait or run */
    } * items;
    size_t count, room;
};

struct throttle *throttle_new(void)
{
    struct throttle *throttle = mem_zero(1, sizeof *throttle);
    pthread_mutex_init(&throttle->lock, NULL);
    secret_random(&throttle->map.seed, sizeof throttle->map.seed);
    throttle->rates.map.seed = throttle->sign_ups.map.seed = throttle->all_sign_ups.map.seed =
        throttle->map.seed;
    return throttle;
}

void throttle_free(struct throttle *throttle)
{
    if (!throttle)
        return;
    for (size_t i = 0; i < throttle->count; i++) {
        mem_free(throttle->items[i].user);
        mem_free(throttle->items[i].requests_group);
        mem_free(throttle->items[i].streams_group);
    }
    ARRAY_FREE(throttle);
    text_map_release(&throttle->map);
    rate_release(&throttle->rates);
    rate_release(&throttle->sign_ups);
    rate_release(&throttle->all_sign_ups);
    pthread_mutex_destroy(&throttle->lock);
    mem_free(throttle);
}

/* Under the lock. Users who have called are kept; there are STORE_USERS_MAX at most, but for those
 * who were removed since the start. */
static struct throttle_item *item_of(struct throttle *throttle, const char *user)
{
    const uint32_t index = text_map_get(&throttle->map, text_of(user));
    if (index != MAP_NONE)
        return &throttle->items[index];
    struct throttle_item *item = ARRAY_ADD(throttle);
    item->user = mem_copy(user);
    item->requests = item->streams = QUOTA_NONE;
    text_map_set(&throttle->map, text_of(item->user), (uint32_t)throttle->count - 1);
    return item;
}

static void group_keep(char **kept, const char *group)
{
    mem_free(*kept);
    *kept = group ? mem_copy(group) : NULL;
}

/* The caller's item with the quotas of now, and the lock taken. NULL: call->err; it is not. */
static struct throttle_item *item_enter(struct call *call)
{
    struct throttle *throttle = call->api->throttle;
    const char *user = call->caller.auth.user;
    const uint64_t version = store_account_version(call->api->service->store);
    assert(user[0]);
    pthread_mutex_lock(&throttle->lock);
    struct throttle_item *item = item_of(throttle, user);
    if (item->version == version)
        return item;
    pthread_mutex_unlock(&throttle->lock);
    struct store_user_quotas quotas;
    if (!call_reader(call) ||
        store_user_quotas(call->reader, text_of(user), call->arena, &quotas, &call->err))
        return NULL;
    pthread_mutex_lock(&throttle->lock);
    item = item_of(throttle, user);
    item->version = version;
    item->requests = quotas.values.values[QUOTA_REQUESTS_SECOND];
    item->streams = quotas.values.values[QUOTA_STREAMS];
    group_keep(&item->requests_group, quotas.groups[QUOTA_REQUESTS_SECOND]);
    group_keep(&item->streams_group, quotas.groups[QUOTA_STREAMS]);
    return item;
}

int throttle_request(struct call *call)
{
    struct throttle *throttle = call->api->throttle;
    struct throttle_item *item = item_enter(call);
    int code = 0;
    if (!item)
        return call->err.code;
    if (item->requests != QUOTA_NONE) {
        const int64_t wait_us = rate_take(&throttle->rates, text_of(item->user), item->requests,
                                          SECOND_US, clock_monotonic_us());
        if (wait_us > 0)
            code = quota_refuse(QUOTA_REQUESTS_SECOND, item->requests_group, item->requests,
                                item->requests, &call->err);
        call->retry_s = (wait_us + SECOND_US - 1) / SECOND_US;
    }
    pthread_mutex_unlock(&throttle->lock);
    return code;
}

int throttle_request_of(struct call *call, size_t requests)
{
    struct throttle *throttle = call->api->throttle;
    struct throttle_item *item = item_enter(call);
    if (!item)
        return call->err.code;
    if (item->requests != QUOTA_NONE && requests > 1)
        rate_owe(&throttle->rates, text_of(item->user), item->requests, SECOND_US,
                 (int64_t)requests - 1, clock_monotonic_us());
    pthread_mutex_unlock(&throttle->lock);
    return 0;
}

int throttle_stream_add(struct call *call)
{
    struct throttle_item *item = item_enter(call);
    int code = 0;
    if (!item)
        return call->err.code;
    if (item->streams != QUOTA_NONE && item->streams_open >= item->streams)
        code = quota_refuse(QUOTA_STREAMS, item->streams_group, item->streams, item->streams_open,
                            &call->err);
    else
        item->streams_open++;
    call->retry_s = code ? STREAM_RETRY_S : 0;
    pthread_mutex_unlock(&call->api->throttle->lock);
    return code;
}

void throttle_stream_remove(struct api *api, const char *user)
{
    struct throttle *throttle = api->throttle;
    pthread_mutex_lock(&throttle->lock);
    struct throttle_item *item = item_of(throttle, user);
    assert(item->streams_open > 0);
    item->streams_open--;
    pthread_mutex_unlock(&throttle->lock);
}

int throttle_search_add(struct call *call)
{
    struct throttle *throttle = call->api->throttle;
    pthread_mutex_lock(&throttle->lock);
    struct throttle_item *item = item_of(throttle, call->caller.auth.user);
    const bool is_room = item->searches < LOG_SEARCH_OF_USER_MAX;
    item->searches += is_room;
    pthread_mutex_unlock(&throttle->lock);
    return is_room ? 0
                   : call_fail(call, ERR_BUSY, NULL, "",
                               "%d searches of yours wait or run already: try again",
                               LOG_SEARCH_OF_USER_MAX);
}

void throttle_search_remove(struct api *api, const char *user)
{
    struct throttle *throttle = api->throttle;
    pthread_mutex_lock(&throttle->lock);
    struct throttle_item *item = item_of(throttle, user);
    assert(item->searches > 0);
    item->searches--;
    pthread_mutex_unlock(&throttle->lock);
}

int throttle_sign_up(struct call *call)
{
    struct throttle *throttle = call->api->throttle;
    const struct text network = text_of(call_network(call));
    const int64_t now_us = clock_monotonic_us();
    pthread_mutex_lock(&throttle->lock);
    /* who is refused takes no token of all, and leaves no name behind */
    int64_t wait_us = rate_wait(&throttle->all_sign_ups, TEXT("all"), SIGN_UPS, HOUR_US, now_us);
    if (wait_us == 0)
        wait_us = rate_take(&throttle->sign_ups, network, SIGN_UPS_OF_ADDRESS, HOUR_US, now_us);
    if (wait_us == 0)
        wait_us = rate_take(&throttle->all_sign_ups, TEXT("all"), SIGN_UPS, HOUR_US, now_us);
    pthread_mutex_unlock(&throttle->lock);
    call->retry_s = (wait_us + SECOND_US - 1) / SECOND_US;
    return wait_us ? call_fail(call, ERR_BUSY, NULL, "",
                               "too many accounts were asked for: try again later")
                   : 0;
}

struct throttle_use throttle_use_of(struct api *api, const char *user)
{
    struct throttle *throttle = api->throttle;
    struct throttle_use use = {0};
    pthread_mutex_lock(&throttle->lock);
    const uint32_t index = text_map_get(&throttle->map, text_of(user));
    if (index != MAP_NONE) {
        const struct throttle_item *item = &throttle->items[index];
        use.streams = item->streams_open;
        if (item->requests != QUOTA_NONE)
            use.requests = rate_used(&throttle->rates, text_of(user), item->requests, SECOND_US,
                                     clock_monotonic_us());
    }
    pthread_mutex_unlock(&throttle->lock);
    return use;
}
