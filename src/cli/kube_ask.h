/* kube_ask.h — asks the API server of a cluster, one request after the other.
 *
 * Edge. What cannot be asked is not tried again: a check says what it found.
 */
#ifndef CLI_KUBE_ASK_H
#define CLI_KUBE_ASK_H
#include "base/buf.h"
#include "kube/access.h"
#include <jansson.h>
#include <stdint.h>

struct kube_ask;

enum { KUBE_ASK_MAX = 64 << 20, KUBE_ASK_MS = 30 * 1000 };

struct kube_reply {
    int status;        /* of HTTP; 0: none came, or it was cut off */
    json_t *json;      /* NULL: it is none */
    int64_t date_ms;   /* what time it is there, in whole seconds; 0: it does not say */
    char trouble[200]; /* of what did not come, or the server's own words; "": none */
};

void kube_reply_release(struct kube_reply *reply);
#define cleanup_reply __attribute__((cleanup(kube_reply_release)))

/* `access` is borrowed. ERR_INVALID, ERR_UNAVAILABLE. */
int kube_ask_new(const struct kube_access *access, struct kube_ask **ask, struct err *err);
void kube_ask_free(struct kube_ask *ask);

/* `body` is JSON and taken; NULL: a GET. With `begins` only the first line of a stream is awaited.
 * Released first, so that one reply can be used again and again. */
void kube_ask_send(struct kube_ask *ask, const char *path, json_t *body, bool begins,
                   struct kube_reply *reply);

#endif
