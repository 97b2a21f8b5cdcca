/* print.h — what people see: aligned tables, times, colours; JSON and YAML of a server's reply.
 *
 * Everything goes into a buffer, so that it can be tested; print_flush writes it out. Text of other
 * people (tags, messages, names) never reaches a terminal with control characters in it; only the
 * log of a task does (skep logs), as its program wrote it.
 */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H
#include "base/buf.h"
#include "cli/command.h"
#include <jansson.h>
#include <stdint.h>

enum { TABLE_COLUMNS_MAX = 16 };

struct table {
    const char *heads[TABLE_COLUMNS_MAX];
    int columns;
    bool has_colours; /* words that are states get one */
    struct {
        char **items; /* row by row */
        size_t count, room;
    } cells;
};

void table_init(struct table *table, bool has_colours, const char *const *heads); /* ends NULL */
/* NULL and "" show "-"; control characters are left out, newlines and tabs are spaces. */
void table_cell(struct table *table, const char *text);
/* The next cell, formatted; cells come row by row, `columns` of them each. */
void table_format(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Append all rows under their heads, aligned; nothing but the heads when there are none. */
void table_print(const struct table *table, struct buf *out);
void table_release(struct table *table);
#define cleanup_table __attribute__((cleanup(table_release)))

/* A state's word, coloured. */
void print_state(struct buf *out, const char *state, bool has_colours);

/* "3 m 20 s"; milliseconds. "-" below zero. */
void print_duration(struct buf *out, int64_t ms);
/* "2026-11-21 08:55:00", local time; "-" for 0. */
void print_time(struct buf *out, int64_t at_ms);

/* The reply as it is, in the form of --output json or yaml. */
void print_json(struct buf *out, const json_t *json);
void print_yaml(struct buf *out, const json_t *json);
void print_json_line(struct buf *out, const json_t *json); /* in one line */
/* True when --output asks for one of these two; then it is printed. */
bool print_raw(const struct cli *cli, const json_t *json);

void print_flush(struct buf *out); /* to standard output; clears it */

/* To standard error, as people can read it: others' text may be in it. */
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fields of JSON objects, items of arrays; absent, null or of another kind: NULL, 0, false. A text
 * comes as people can read it (base/printable.h): the tree has that in its place from then on, so
 * print what the server said (print_raw) first. */
const char *field_text(const json_t *object, const char *key);
const char *item_text(const json_t *array, size_t index);
int64_t field_int(const json_t *object, const char *key);
/* Unix ms of "2026-11-21T10:00:00.000Z"; 0 when it is no such text. */
int64_t field_instant(const json_t *object, const char *key);
bool field_has(const json_t *object, const char *key); /* there and not null */

#endif
