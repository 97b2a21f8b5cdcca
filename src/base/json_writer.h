/* json_writer.h — JSON written as a stream into a buffer.
 *
 * Pure. Commas and quotes are placed by the writer; the caller opens and closes. Text that is not
 * UTF-8 gets U+FFFD for every bad byte, so that the output is always valid JSON (RFC 8259).
 * At most 64 levels; deeper nesting is a defect of ours and asserts.
 */
#ifndef BASE_JSON_WRITER_H
#define BASE_JSON_WRITER_H
#include "base/buf.h"
#include <stdint.h>

struct json_writer {
    struct buf *out;
    unsigned depth;
    bool is_after_key;
    uint64_t has_items; /* one bit a level */
};

/* jansson, which comes into the server with libjwt, exports functions of these names: without other
 * symbols for ours, libjwt would call them instead of its own. */
#define JSON_SYMBOL(name) __asm__("skep_" name)

void json_init(struct json_writer *json, struct buf *out);

void json_object(struct json_writer *json) JSON_SYMBOL("json_object"); /* { */
void json_object_end(struct json_writer *json);
void json_array(struct json_writer *json) JSON_SYMBOL("json_array"); /* [ */
void json_array_end(struct json_writer *json);
void json_key(struct json_writer *json, const char *key);

void json_text(struct json_writer *json, struct text value);
void json_string(struct json_writer *json, const char *value)
    JSON_SYMBOL("json_string"); /* NULL writes null */
void json_int(struct json_writer *json, int64_t value);
void json_real(struct json_writer *json, double value)
    JSON_SYMBOL("json_real"); /* not finite writes null */
void json_bool(struct json_writer *json, bool value);
void json_null(struct json_writer *json) JSON_SYMBOL("json_null");
void json_raw(struct json_writer *json, struct text value); /* already JSON */

/* key and value in one call */
void json_key_text(struct json_writer *json, const char *key, struct text value);
void json_key_string(struct json_writer *json, const char *key, const char *value);
void json_key_int(struct json_writer *json, const char *key, int64_t value);
void json_key_bool(struct json_writer *json, const char *key, bool value);
void json_key_null(struct json_writer *json, const char *key);
void json_key_strings(struct json_writer *json, const char *key, const char *const *items,
                      size_t count); /* an array */

#endif
