#include "cli/print.h"
#include "base/memory.h"
#include "base/printable.h"
#include <string.h>
#include <time.h>

/* ---- tables ---- */

void table_init(struct table *table, bool has_colours, const char *const *heads)
{
    memset(table, 0, sizeof *table);
    table->has_colours = has_colours;
    while (heads[table->columns]) {
        table->heads[table->columns] = heads[table->columns];
        table->columns++;
    }
}

void table_cell(struct table *table, const char *text)
{
    cleanup_buf struct buf shown = BUF_INIT;
    printable_put(&shown, text_of(text && text[0] ? text : "-"));
    for (size_t i = 0; i < shown.length; i++)
        if (shown.at[i] == '\n' || shown.at[i] == '\t')
            shown.at[i] = ' '; /* a cell is one line of its row */
    *ARRAY_ADD(&table->cells) = mem_copy(buf_cstr(&shown));
}

void table_format(struct table *table, const char *format, ...)
{
    cleanup_buf struct buf text = BUF_INIT;
    va_list args;
    va_start(args, format);
    buf_vformat(&text, format, args);
    va_end(args);
    table_cell(table, buf_cstr(&text));
}

/* Characters, not bytes: continuation bytes of UTF-8 take no place. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void put_cell(struct buf *out, const char *text, size_t width, bool is_last, bool colours)
{
    if (colours)
        print_state(out, text, true);
    else
        buf_string(out, text);
    if (is_last) {
        buf_char(out, '\n');
        return;
    }
    for (size_t i = width_of(text); i < width + 2; i++)
        buf_char(out, ' ');
}

void table_print(const struct table *table, struct buf *out)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    int columns = table->columns;
    for (int column = 0; column < columns; column++)
        widths[column] = width_of(table->heads[column]);
    for (size_t i = 0; i < table->cells.count; i++) {
        size_t width = width_of(table->cells.items[i]);
        if (width > widths[i % (size_t)columns])
            widths[i % (size_t)columns] = width;
    }
    for (int column = 0; column < columns; column++)
        put_cell(out, table->heads[column], widths[column], column + 1 == columns, false);
    for (size_t i = 0; i < table->cells.count; i++) {
        size_t column = i % (size_t)columns;
        put_cell(out, table->cells.items[i], widths[column], column + 1 == (size_t)columns,
                 table->has_colours);
    }
}

void table_release(struct table *table)
{
    for (size_t i = 0; i < table->cells.count; i++)
        mem_free(table->cells.items[i]);
    ARRAY_FREE(&table->cells);
}

/* ---- words ---- */

void print_state(struct buf *out, const char *state, bool has_colours)
{
    static const struct {
        const char *state, *colour;
    } COLOURS[] = {
        {"RUNNING", "34"}, {"SUCCEEDED", "32"}, {"FAILED", "31"},  {"STOPPED", "35"},
        {"WAITING", "33"}, {"STOPPING", "35"},  {"READY", "32"},   {"UNHEALTHY", "31"},
        {"LOST", "31"},    {"CORDONED", "33"},  {"Warning", "33"},
    };
    for (size_t i = 0; has_colours && i < COUNT_OF(COLOURS); i++) {
        if (strcmp(COLOURS[i].state, state) == 0) {
            buf_format(out, "\033[%sm%s\033[0m", COLOURS[i].colour, state);
            return;
        }
    }
    buf_string(out, state);
}

void print_duration(struct buf *out, int64_t ms)
{
    if (ms < 0) {
        buf_char(out, '-');
        return;
    }
    int64_t seconds = ms / 1000;
    if (ms < 10000)
        buf_format(out, "%.1f s", (double)ms / 1000);
    else if (seconds < 60)
        buf_format(out, "%lld s", (long long)seconds);
    else if (seconds < 3600)
        buf_format(out, "%lld m %lld s", (long long)(seconds / 60), (long long)(seconds % 60));
    else if (seconds < 86400)
        buf_format(out, "%lld h %lld m", (long long)(seconds / 3600),
                   (long long)(seconds % 3600 / 60));
    else
        buf_format(out, "%lld d %lld h", (long long)(seconds / 86400),
                   (long long)(seconds % 86400 / 3600));
}

void print_time(struct buf *out, int64_t at_ms)
{
    char text[64];
    time_t seconds = (time_t)(at_ms / 1000);
    struct tm local;
    if (!at_ms || !localtime_r(&seconds, &local) ||
        !strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local)) {
        buf_char(out, '-');
        return;
    }
    buf_string(out, text);
}

/* ---- JSON and YAML ---- */

/* JSON that a terminal shows and does not obey: jansson leaves DEL and U+0080 … U+009F as they are,
 * of which U+009B means what ESC [ does. They can stand in strings only. */
static void json_dump(struct buf *out, const json_t *json, size_t flags)
{
    char *text = json_dumps(json, flags | JSON_ENCODE_ANY);
    for (const char *at = text ? text : "null"; *at; at++) {
        unsigned char next = (unsigned char)at[1];
        if (*at == 0x7f)
            buf_string(out, "\\u007f");
        else if ((unsigned char)*at == 0xc2 && next >= 0x80 && next < 0xa0)
            buf_format(out, "\\u%04x", (unsigned)(unsigned char)*++at);
        else
            buf_char(out, *at);
    }
    free(text);
}

void print_json(struct buf *out, const json_t *json)
{
    json_dump(out, json, JSON_INDENT(2));
    buf_char(out, '\n');
}

void print_json_line(struct buf *out, const json_t *json)
{
    json_dump(out, json, JSON_COMPACT);
    buf_char(out, '\n');
}

/* Words that YAML would take for something else than a string, and all that is not plainly one. */
static bool is_plain(const char *text)
{
    static const char *const RESERVED[] = {"true", "false", "null", "yes", "no",
                                           "on",   "off",   "y",    "n",   "~"};
    if (!text[0])
        return false;
    for (size_t i = 0; i < COUNT_OF(RESERVED); i++)
        if (strcasecmp(text, RESERVED[i]) == 0)
            return false;
    bool has_letter = false;
    for (const char *at = text; *at; at++) {
        bool is_letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_';
        if (at == text && !is_letter)
            return false;
        has_letter = has_letter || is_letter;
        if (!is_letter && !(*at >= '0' && *at <= '9') && !strchr("-./~", *at))
            return false;
    }
    return has_letter;
}

static void yaml_scalar(struct buf *out, const json_t *json)
{
    const char *text = json_string_value(json);
    if (text && is_plain(text)) {
        buf_string(out, text);
        return;
    }
    json_dump(out, json, 0);
}

static void yaml_value(struct buf *out, const json_t *json, int depth, bool is_after_dash);

static bool is_block(const json_t *json)
{
    return (json_is_object(json) && json_object_size(json)) ||
           (json_is_array(json) && json_array_size(json));
}

static void yaml_indent(struct buf *out, int depth)
{
    for (int i = 0; i < depth; i++)
        buf_string(out, "  ");
}

static void yaml_object(struct buf *out, json_t *json, int depth, bool is_after_dash)
{
    const char *key;
    json_t *value;
    json_object_foreach (json, key, value) {
        if (!is_after_dash)
            yaml_indent(out, depth);
        is_after_dash = false;
        json_t *name = json_string(key);
        yaml_scalar(out, name);
        json_decref(name);
        buf_char(out, ':');
        if (!is_block(value)) {
            buf_char(out, ' ');
            yaml_value(out, value, 0, false);
        } else {
            buf_char(out, '\n');
            yaml_value(out, value, depth + 1, false);
        }
    }
}

static void yaml_value(struct buf *out, const json_t *json, int depth, bool is_after_dash)
{
    if (json_is_object(json) && json_object_size(json)) {
        yaml_object(out, (json_t *)(uintptr_t)json, depth, is_after_dash);
    } else if (json_is_array(json) && json_array_size(json)) {
        for (size_t i = 0; i < json_array_size(json); i++) {
            if (i || !is_after_dash)
                yaml_indent(out, depth);
            buf_string(out, "- ");
            yaml_value(out, json_array_get(json, i), depth + 1, true);
        }
    } else {
        yaml_scalar(out, json);
        buf_char(out, '\n');
    }
}

void print_yaml(struct buf *out, const json_t *json)
{
    yaml_value(out, json, 0, false);
}

bool print_raw(const struct cli *cli, const json_t *json)
{
    cleanup_buf struct buf out = BUF_INIT;
    if (cli->output == OUTPUT_JSON)
        print_json(&out, json);
    else if (cli->output == OUTPUT_YAML)
        print_yaml(&out, json);
    else
        return false;
    print_flush(&out);
    return true;
}

void print_flush(struct buf *out)
{
    fwrite(buf_cstr(out), 1, out->length, stdout);
    fflush(stdout);
    buf_clear(out);
}

void print_error(const char *format, ...)
{
    cleanup_buf struct buf text = BUF_INIT, shown = BUF_INIT;
    va_list args;
    va_start(args, format);
    buf_vformat(&text, format, args);
    va_end(args);
    printable_put(&shown, buf_as_text(&text));
    fflush(stdout);
    fputs(buf_cstr(&shown), stderr);
}

/* The text of a value, which is changed to what people can read when it is anything else. */
static const char *value_text(json_t *value)
{
    const char *text = json_string_value(value);
    if (!text || printable_is_line(text_of(text)))
        return text;
    cleanup_buf struct buf shown = BUF_INIT;
    printable_put(&shown, text_of(text));
    if (strcmp(buf_cstr(&shown), text) != 0)
        json_string_set(value, buf_cstr(&shown));
    return json_string_value(value);
}

const char *field_text(const json_t *object, const char *key)
{
    return value_text(json_object_get(object, key));
}

const char *item_text(const json_t *array, size_t index)
{
    return value_text(json_array_get(array, index));
}

int64_t field_instant(const json_t *object, const char *key)
{
    const char *text = field_text(object, key);
    struct tm utc = {0};
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &utc) : NULL;
    int ms = 0;
    if (!rest || sscanf(rest, ".%3dZ", &ms) != 1)
        return 0;
    return (int64_t)timegm(&utc) * 1000 + ms;
}

int64_t field_int(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

bool field_has(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value && !json_is_null(value);
}
