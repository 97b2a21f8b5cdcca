#include "api/etag.h"
#include "api/http.h"
#include "sys/secret.h"
#include <pthread.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Another one in each process: nobody can make two replies of one tag. */
static XXH64_hash_t seed;
static pthread_once_t seed_once = PTHREAD_ONCE_INIT;

static void seed_make(void)
{
    secret_random(&seed, sizeof seed);
}

/* `"hash"`, in the exchange's arena. */
static const char *etag_of(struct exchange *exchange)
{
    const struct buf *body = &exchange->reply.body;
    pthread_once(&seed_once, seed_make);
    const XXH128_hash_t hash = XXH3_128bits_withSeed(body->at, body->length, seed);
    return arena_format(&exchange->arena, "\"%016llx%016llx\"", (unsigned long long)hash.high64,
                        (unsigned long long)hash.low64);
}

/* A list of tags, weak ones as well, or "*". */
static bool is_named(struct text list, const char *etag)
{
    while (list.length) {
        struct text one = text_trim(text_cut(&list, ','));
        if (text_starts(one, TEXT("W/")))
            one = (struct text){one.at + 2, one.length - 2};
        if (text_is(one, etag) || text_is(one, "*"))
            return true;
    }
    return false;
}

/* Files have tags of their own. */
static bool has_etag(const struct http_reply *reply)
{
    for (size_t i = 0; i < reply->header_count; i++)
        if (strcmp(reply->headers[i].name, "ETag") == 0)
            return true;
    return false;
}

void etag_reply(struct exchange *exchange)
{
    struct http_reply *reply = &exchange->reply;
    const bool is_read = exchange->method == HTTP_GET || exchange->method == HTTP_HEAD;
    if (!is_read || reply->status != 200 || reply->stream.read || !reply->body.length ||
        reply->header_count == HTTP_REPLY_HEADERS_MAX || has_etag(reply))
        return;
    const char *etag = etag_of(exchange);
    exchange_header(exchange, "ETag", etag);
    if (!is_named(exchange->if_none_match, etag))
        return;
    buf_release(&reply->body); /* may be large */
    reply->status = 304;
}
