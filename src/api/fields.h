/* fields.h — of the items of a list only the fields that a client wants: `?fields=name,state`.
 *
 * Works on the JSON of the reply, so that every list has it and none has it in its own way. The
 * JSON is ours: it is whole and well formed.
 */
#ifndef API_FIELDS_H
#define API_FIELDS_H
#include "base/buf.h"
#include "base/text.h"
#include <stdbool.h>

struct call;

enum { FIELDS_MAX = 64 };

struct fields {
    struct text names[FIELDS_MAX];
    size_t count;
};

/* Names of letters, digits and _, with commas between them. */
bool fields_parse(struct text text, struct fields *fields);

/* Of a list, or of each list that an object has: the fields of its objects that are wanted. What
 * the object has beside its lists, and items that are no objects, stay as they are. */
void fields_project(struct text json, const struct fields *fields, struct buf *out);

/* After a list was answered with 200: as its query wants it. ERR_INVALID: not names. */
int fields_reply(struct call *call);

#endif
