/* json_cut.h — cuts a JSON text into its parts without reading them.
 *
 * Pure. For answers of which little is wanted: labels of thousands of nodes are stepped over, not
 * made into trees. Nesting is counted, not checked: whoever reads a part must check it.
 */
#ifndef ENGINE_KUBERNETES_JSON_CUT_H
#define ENGINE_KUBERNETES_JSON_CUT_H
#include "base/text.h"
#include <stdbool.h>

void json_cut_spaces(struct text *rest);
/* After spaces, if it is the next. */
bool json_cut_char(struct text *rest, char c);
/* After spaces, the next value, as it is written. False: there is none, or it does not end. */
bool json_cut_value(struct text *rest, struct text *value);
/* The next member of an object whose { has been taken, and the comma that follows; the key as it
 * is written, with its quotes. False: there is none, or it is not well-formed. */
bool json_cut_member(struct text *rest, struct text *key, struct text *value);

/* Of an object as it is written: the value of a key that is written without escapes. False: it has
 * none. */
bool json_cut_get(struct text object, const char *key, struct text *value);
/* The same of a string that is written without escapes; without its quotes. */
bool json_cut_string(struct text object, const char *key, struct text *string);

/* Where an object, a list or a string ends that comes in pieces: zeroed before its first byte. */
struct json_nest {
    size_t depth;
    bool is_string, is_escaped;
};

/* How many of these bytes belong to it, whose first is {, [ or ". *is_over: it ends with the last
 * of them. */
size_t json_nest_take(struct json_nest *nest, struct text bytes, bool *is_over);

#endif
