/* origin.h — a family of web origins: all that have a name below one domain, one label each.
 *
 * Pure. Of "https://ID.jobs.example.org:9187" with a star instead of the ID; "http" is the other
 * scheme, and the port may be missing, where it is the scheme's own.
 */
#ifndef BASE_ORIGIN_H
#define BASE_ORIGIN_H
#include "base/text.h"

struct err;

struct origin_pattern {
    bool is_secure;     /* https */
    struct text suffix; /* ".jobs.example.org:9187"; borrowed */
};

/* ERR_INVALID. */
int origin_pattern_parse(const char *pattern, struct origin_pattern *origin, struct err *err);

/* Of "https://example.org:8443/a/b?c=d" the part before the path: an address of http or https,
 * whose name is one of letters, digits, ".", "-" and "_" or an IPv6 address in brackets, and all of
 * which is printable ASCII without spaces, quotes, "<", ">", "\", "," and ";". ERR_INVALID. */
int web_origin_of(struct text uri, struct text *origin, struct err *err);

#endif
