/* range.h — a request for a part of something: the header Range (RFC 9110, 14.1 and 14.2).
 *
 * Pure. One range of bytes is understood. What is not (several, another unit, a wrong one) is left
 * aside, as the RFC has it: the whole is the reply.
 */
#ifndef API_RANGE_H
#define API_RANGE_H
#include "base/text.h"
#include <stdint.h>

struct byte_range {
    uint64_t begin, end; /* `end` is not in it */
};

enum range_kind {
    RANGE_NONE,  /* no range: all of it */
    RANGE_BYTES, /* at least one byte */
    RANGE_OUTSIDE,
};

/* Of bytes, of which those of `whole` are there: ones before it may be gone. `part` is set with
 * RANGE_BYTES, and is cut to what is there. */
enum range_kind range_parse(struct text header, const struct byte_range *whole,
                            struct byte_range *part);

#endif
