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

#endif
