/* form.h — the body of an HTML form as the tree that JSON would give.
 *
 * Pure but for the arena. "a=1" is a key of the map; "a[b]=1" one of a map in it; "a[0]=1", "a[]=1"
 * and a repeated "a" make lists, as the library qs of JavaScript writes and reads them, which
 * OpenPAI's clients use. All values are strings.
 */
#ifndef API_FORM_H
#define API_FORM_H
#include "base/text.h"
#include <stdbool.h>

struct arena;
struct doc;
struct err;

enum {
    FORM_FIELDS_MAX = 1000,
    FORM_DEPTH_MAX = 8, /* brackets of one key */
};

bool form_is_type(struct text content_type);

/* Could this be a form at all? Encoded ones have no blanks, line ends, braces or colons, which JSON
 * and YAML have: curl sends those under the type of a form unless it is told otherwise. */
bool form_is_text(struct text body);

/* ERR_INVALID: bad percent code, a key that is a value and a map; ERR_TOO_BIG: a limit. */
int form_parse(struct text body, struct arena *arena, const struct doc **out, struct err *err);

#endif
