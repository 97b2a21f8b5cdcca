#include "engine/kubernetes/json_cut.h"

#include <assert.h>

static bool space_is(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void step(struct text *rest, size_t count)
{
    rest->at += count;
    rest->length -= count;
}

void json_cut_spaces(struct text *rest)
{
    while (rest->length > 0 && space_is(rest->at[0]))
        step(rest, 1);
}

bool json_cut_char(struct text *rest, char c)
{
    json_cut_spaces(rest);
    if (rest->length == 0 || rest->at[0] != c)
        return false;
    step(rest, 1);
    return true;
}

size_t json_nest_take(struct json_nest *nest, struct text bytes, bool *is_over)
{
    for (size_t i = 0; i < bytes.length; i++) {
        const char c = bytes.at[i];
        if (nest->is_escaped) {
            nest->is_escaped = false;
        } else if (nest->is_string) {
            nest->is_escaped = c == '\\';
            nest->is_string = c != '"';
        } else if (c == '"') {
            nest->is_string = true;
        } else if (c == '{' || c == '[') {
            nest->depth++;
        } else if (c == '}' || c == ']') {
            assert(nest->depth > 0); /* it begins with what opens */
            nest->depth--;
        }
        if (nest->depth == 0 && !nest->is_string) {
            *is_over = true;
            return i + 1;
        }
    }
    *is_over = false;
    return bytes.length;
}

bool json_cut_value(struct text *rest, struct text *value)
{
    size_t length = 0;
    bool is_over = true;
    json_cut_spaces(rest);
    if (rest->length == 0)
        return false;
    if (rest->at[0] == '"' || rest->at[0] == '{' || rest->at[0] == '[')
        length = json_nest_take(&(struct json_nest){0}, *rest, &is_over);
    else
        while (length < rest->length && !space_is(rest->at[length]) && rest->at[length] != ',' &&
               rest->at[length] != '}' && rest->at[length] != ']')
            length++;
    *value = (struct text){rest->at, length};
    step(rest, length);
    return is_over && length > 0;
}

bool json_cut_member(struct text *rest, struct text *key, struct text *value)
{
    if (!json_cut_value(rest, key) || key->at[0] != '"' || !json_cut_char(rest, ':') ||
        !json_cut_value(rest, value))
        return false;
    json_cut_char(rest, ',');
    return true;
}

static bool key_is(struct text key, const char *name)
{
    const size_t length = strlen(name);
    return key.length == length + 2 && memcmp(key.at + 1, name, length) == 0;
}

bool json_cut_get(struct text object, const char *name, struct text *value)
{
    struct text key;
    if (!json_cut_char(&object, '{'))
        return false;
    while (json_cut_member(&object, &key, value))
        if (key_is(key, name))
            return true;
    return false;
}

bool json_cut_string(struct text object, const char *key, struct text *string)
{
    if (!json_cut_get(object, key, string) || string->at[0] != '"' ||
        memchr(string->at, '\\', string->length))
        return false;
    *string = (struct text){string->at + 1, string->length - 2};
    return true;
}
