/* http_proxy.h — whom a reverse proxy speaks for.
 *
 * Pure. A proxy appends the address of its client to X-Forwarded-For. What stands there counts only
 * as far as those who wrote it are proxies that the operator names: it is read from its end, and
 * the first address that is none of theirs is the client's.
 */
#ifndef API_HTTP_PROXY_H
#define API_HTTP_PROXY_H
#include "base/text.h"
#include <stddef.h>

struct address_range;

/* The client of a request that `peer` (numeric) sent with such a header; a part of one of the two.
 * `forwarded` is empty when there was no header. */
struct text http_proxy_client(const struct address_range *proxies, size_t count, struct text peer,
                              struct text forwarded);

#endif
