/* throttle.h — how often users may call, and how many streams they may have open, by their quotas.
 *
 * Edge. Any thread. What is counted is in memory: a restart of the server begins anew. A user's
 * quotas are read when they call first, and again after any account has changed; between, a
 * decision costs one look into a table.
 */
#ifndef API_THROTTLE_H
#define API_THROTTLE_H
#include <stddef.h>
#include <stdint.h>

struct api;
struct call;
struct throttle;

struct throttle *throttle_new(void);
void throttle_free(struct throttle *throttle);

/* One more request of the call's caller. ERR_QUOTA: later. */
int throttle_request(struct call *call);
/* The request that was let in stands for so many: those after it wait until as many would have been
 * let in. */
int throttle_request_of(struct call *call, size_t requests);
/* One more stream of the caller, until throttle_stream_remove. ERR_QUOTA. */
int throttle_stream_add(struct call *call);
void throttle_stream_remove(struct api *api, const char *user);
/* One more search of the caller's that waits or runs, of LOG_SEARCH_OF_USER_MAX at most, until
 * throttle_search_remove. ERR_BUSY. */
int throttle_search_add(struct call *call);
void throttle_search_remove(struct api *api, const char *user);

/* A visitor asks for an account: SIGN_UPS_OF_ADDRESS an hour from one address (an IPv6 address
 * counts with all of its /64), and SIGN_UPS in all. ERR_BUSY, with call->retry_s. */
enum { SIGN_UPS_OF_ADDRESS = 10, SIGN_UPS = 60 };
int throttle_sign_up(struct call *call);

/* What is used now. */
struct throttle_use {
    int64_t requests, streams;
};
struct throttle_use throttle_use_of(struct api *api, const char *user);

#endif
