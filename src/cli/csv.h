/* csv.h — lines of comma-separated values (RFC 4180), as spreadsheets write them. */
#ifndef CLI_CSV_H
#define CLI_CSV_H
#include "base/arena.h"
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>

enum { CSV_FIELDS_MAX = 64 };

struct csv_row {
    unsigned line; /* where it begins, from 1 */
    struct text fields[CSV_FIELDS_MAX];
    size_t count;
};

/* The next row that is not empty, out of `rest`, which is moved behind it; fields in the arena,
 * without white space around them. *line is where `rest` begins: 1 at first. False: there is none,
 * or `problem` says what is wrong with it (at row->line); it is NULL otherwise. A byte order mark
 * at the beginning is left out. */
bool csv_next(struct text *rest, unsigned *line, struct arena *arena, struct csv_row *row,
              const char **problem);

#endif
