/* convert.h — an early job file written anew in protocol 2.
 *
 * Pure. What is written means what the file meant; its comments stay with what they are about. What
 * protocol 2 cannot say is a loss: a warning at its place, counted, and a comment in the new file.
 */
#ifndef SPEC_CONVERT_H
#define SPEC_CONVERT_H
#include "spec/spec.h"

struct spec_converted {
    enum spec_format format; /* that the file had; one of protocol 2 is given back as it is */
    size_t loss_count;
};

/* Append the file in protocol 2 to `out`. ERR_INVALID when it is not a valid job file. */
int spec_convert(struct text source, struct arena *scratch, struct buf *out,
                 struct problems *problems, struct spec_converted *converted);

#endif
