/* JSON by RFC 8259, on request with `//` and block comments. */
#include "doc/build.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/memory.h"

struct json_reader {
    struct builder builder;
    struct text source;
    size_t at;
    size_t placed; /* `place` is the place of this offset */
    struct place place;
    bool has_comments;
    bool is_failed;
};

/* Places are asked for in rising order, so that a long line costs its length once. */
static struct place place_now(struct json_reader *reader)
{
    while (reader->placed < reader->at)
        reader->placed = place_step(reader->source, reader->placed, &reader->place);
    return reader->place;
}

static void fail(struct json_reader *reader, const char *text, const char *hint)
{
    if (reader->is_failed)
        return;
    reader->is_failed = true;
    struct problem *problem =
        build_problem(&reader->builder, place_now(reader), "not valid JSON: %s", text);
    if (problem)
        problem->hint = hint;
}

static int peek(const struct json_reader *reader)
{
    return reader->at < reader->source.length ? (unsigned char)reader->source.at[reader->at] : -1;
}

static void comment_skip(struct json_reader *reader)
{
    struct text rest = {reader->source.at + reader->at, reader->source.length - reader->at};
    if (!reader->has_comments) {
        fail(reader, "a comment", NULL);
    } else if (text_starts(rest, TEXT("//"))) {
        while (peek(reader) >= 0 && peek(reader) != '\n' && peek(reader) != '\r')
            reader->at++;
    } else if (text_starts(rest, TEXT("/*"))) {
        struct text body = {rest.at + 2, rest.length - 2};
        size_t end = text_find(body, TEXT("*/"));
        if (end == SIZE_MAX)
            fail(reader, "a comment without end", NULL);
        else
            reader->at += 2 + end + 2;
    } else {
        fail(reader, "unexpected \"/\"", NULL);
    }
}

static void blank_skip(struct json_reader *reader)
{
    while (!reader->is_failed) {
        int c = peek(reader);
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
            reader->at++;
        else if (c == '/')
            comment_skip(reader);
        else
            return;
    }
}

static int hex4(const struct json_reader *reader, size_t at)
{
    int value = 0;
    if (reader->source.length - at < 4)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        char c = reader->source.at[i];
        int digit = c >= '0' && c <= '9'                     ? c - '0'
                    : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                             : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static size_t utf8_write(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* At the character behind a backslash; returns the bytes written, 0 after a failure. */
static size_t escape_take(struct json_reader *reader, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c = peek(reader);
    const char *found = c > 0 ? strchr(from, c) : NULL;
    if (found) {
        reader->at++;
        out[0] = to[found - from];
        return 1;
    }
    int code = c == 'u' ? hex4(reader, reader->at + 1) : -1;
    if (code < 0) {
        fail(reader, "an unknown escape in a string", "write \\\\ for a backslash");
        return 0;
    }
    reader->at += 5;
    if (code < 0xd800 || code > 0xdfff)
        return utf8_write(out, (uint32_t)code);
    struct text rest = {reader->source.at + reader->at, reader->source.length - reader->at};
    int low = code < 0xdc00 && text_starts(rest, TEXT("\\u")) ? hex4(reader, reader->at + 2) : -1;
    if (low < 0xdc00 || low > 0xdfff) {
        fail(reader, "half a surrogate pair in a string", NULL);
        return 0;
    }
    reader->at += 6;
    return utf8_write(out, 0x10000u + ((uint32_t)(code - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
}

/* Bytes up to the closing quote: an upper limit of the string's length. */
static size_t string_room(const struct json_reader *reader)
{
    size_t at = reader->at;
    while (at < reader->source.length && reader->source.at[at] != '"')
        at += reader->source.at[at] == '\\' ? 2 : 1;
    return (at < reader->source.length ? at : reader->source.length) - reader->at;
}

/* At the opening quote. */
static struct text string_take(struct json_reader *reader)
{
    reader->at++;
    char *out = arena_alloc(reader->builder.arena, string_room(reader) + 1);
    size_t length = 0;
    while (!reader->is_failed) {
        int c = peek(reader);
        if (c < 0) {
            fail(reader, "a string without closing quote", NULL);
        } else if (c == '"') {
            reader->at++;
            break;
        } else if (c == '\\') {
            reader->at++;
            length += escape_take(reader, out + length);
        } else if (c < 0x20) {
            fail(reader, "a control character in a string", "write \\n for a line break");
        } else {
            size_t more = text_utf8_length(reader->source, reader->at);
            if (more == 0)
                fail(reader, "bytes that are not UTF-8", NULL);
            memcpy(out + length, reader->source.at + reader->at, more);
            reader->at += more;
            length += more;
        }
    }
    return (struct text){out, length};
}

static size_t digits_skip(struct json_reader *reader)
{
    size_t first = reader->at;
    while (peek(reader) >= '0' && peek(reader) <= '9')
        reader->at++;
    return reader->at - first;
}

static void number_take(struct json_reader *reader, struct doc *doc)
{
    size_t first = reader->at;
    if (peek(reader) == '-')
        reader->at++;
    bool is_zero_first = peek(reader) == '0';
    size_t whole = digits_skip(reader);
    bool is_right = whole == 1 || (whole > 1 && !is_zero_first);
    if (is_right && peek(reader) == '.') {
        reader->at++;
        is_right = digits_skip(reader) > 0;
    }
    if (is_right && (peek(reader) == 'e' || peek(reader) == 'E')) {
        reader->at++;
        if (peek(reader) == '+' || peek(reader) == '-')
            reader->at++;
        is_right = digits_skip(reader) > 0;
    }
    if (!is_right) {
        fail(reader, "a number that JSON does not know", NULL);
        return;
    }
    struct text text = {reader->source.at + first, reader->at - first};
    doc->source = (struct text){arena_copy(reader->builder.arena, text), text.length};
    scalar_resolve(doc);
}

static void word_take(struct json_reader *reader, struct doc *doc)
{
    size_t first = reader->at, at = first;
    while (at < reader->source.length && ((reader->source.at[at] | 0x20) >= 'a') &&
           ((reader->source.at[at] | 0x20) <= 'z'))
        at++;
    struct text word = {reader->source.at + first, at - first};
    if (!text_is(word, "true") && !text_is(word, "false") && !text_is(word, "null")) {
        fail(reader, word.length ? "an unknown word" : "a value is expected",
             word.length ? "strings stand in double quotes" : NULL);
        return;
    }
    reader->at = at;
    doc->source = (struct text){arena_copy(reader->builder.arena, word), word.length};
    scalar_resolve(doc);
}

static void value_take(struct json_reader *reader)
{
    int c = peek(reader);
    struct doc *doc = build_node(&reader->builder, DOC_STRING, place_now(reader));
    if (c == '{' || c == '[') {
        doc->kind = c == '{' ? DOC_MAP : DOC_LIST;
        reader->at++;
        build_open(&reader->builder, doc);
        return;
    }
    if (c == '"')
        doc->source = doc->as.string = string_take(reader);
    else if (c == '-' || (c >= '0' && c <= '9'))
        number_take(reader, doc);
    else
        word_take(reader, doc);
    if (reader->is_failed)
        return;
    doc->end = place_now(reader);
    build_value(&reader->builder, doc, 1, 0);
}

static void key_take(struct json_reader *reader)
{
    struct place place = place_now(reader);
    if (peek(reader) != '"') {
        fail(reader,
             peek(reader) == '}' ? "a comma before \"}\"" : "a key in double quotes is expected",
             NULL);
        return;
    }
    struct text key = string_take(reader);
    blank_skip(reader);
    if (reader->is_failed)
        return;
    if (peek(reader) != ':') {
        fail(reader, "\":\" is expected behind a key", NULL);
        return;
    }
    reader->at++;
    build_key(&reader->builder, key, place, false);
    blank_skip(reader);
}

/* Behind a value: close what ends here; true when another value follows. */
static bool has_next(struct json_reader *reader)
{
    struct builder *builder = &reader->builder;
    while (builder->depth > 0 && !reader->is_failed) {
        struct build_frame *top = &builder->frames[builder->depth - 1];
        int close = top->node->kind == DOC_MAP ? '}' : ']';
        bool is_empty = builder->count == top->first && !top->has_key;
        blank_skip(reader);
        int c = peek(reader);
        if (c == close) {
            reader->at++;
            top->node->end = place_now(reader);
            build_close(builder);
        } else if (is_empty) {
            return true;
        } else if (c == ',') {
            reader->at++;
            blank_skip(reader);
            if (peek(reader) == ']' && close == ']')
                fail(reader, "a comma before \"]\"", NULL);
            return true;
        } else {
            fail(reader, close == '}' ? "\",\" or \"}\" is expected" : "\",\" or \"]\" is expected",
                 NULL);
        }
    }
    return false;
}

const struct doc *json_parse(struct text source, bool has_comments, struct arena *arena,
                             struct problems *problems)
{
    struct json_reader reader = {.source = source, .has_comments = has_comments, .place = {1, 1}};
    build_init(&reader.builder, arena, problems);
    blank_skip(&reader);
    if (reader.at == source.length && !reader.is_failed)
        return build_node(&reader.builder, DOC_NULL, (struct place){1, 1});
    do {
        if (!reader.is_failed && build_wants_key(&reader.builder))
            key_take(&reader);
        if (!reader.is_failed)
            value_take(&reader);
    } while (!reader.is_failed && !reader.builder.is_stopped && has_next(&reader));
    blank_skip(&reader);
    if (!reader.builder.is_stopped && reader.at < source.length)
        fail(&reader, "something follows the document", NULL);
    const struct doc *root =
        reader.is_failed || reader.builder.is_stopped ? NULL : reader.builder.root;
    build_release(&reader.builder);
    return root;
}
