#include "cli/csv.h"
#include "base/buf.h"

/* Behind the opening quote: the field's text up to its closing quote. False: there is none. */
static bool quoted(struct text *rest, unsigned *line, struct buf *field)
{
    for (size_t i = 0; i < rest->length; i++) {
        char c = rest->at[i];
        if (c == '\n')
            ++*line;
        if (c != '"') {
            buf_char(field, c);
        } else if (i + 1 < rest->length && rest->at[i + 1] == '"') {
            buf_char(field, c);
            i++;
        } else {
            *rest = (struct text){rest->at + i + 1, rest->length - i - 1};
            return true;
        }
    }
    return false;
}

/* Up to the comma or the end of the line, which is left. */
static struct text plain(struct text *rest)
{
    size_t length = 0;
    while (length < rest->length && rest->at[length] != ',' && rest->at[length] != '\n')
        length++;
    struct text field = {rest->at, length};
    *rest = (struct text){rest->at + length, rest->length - length};
    return field;
}

static bool field_take(struct text *rest, unsigned *line, struct arena *arena, struct text *field,
                       const char **problem)
{
    while (rest->length && (rest->at[0] == ' ' || rest->at[0] == '\t'))
        *rest = (struct text){rest->at + 1, rest->length - 1};
    if (!rest->length || rest->at[0] != '"') {
        struct text found = text_trim(plain(rest));
        *field = (struct text){arena_copy(arena, found), found.length};
        return true;
    }
    cleanup_buf struct buf text = BUF_INIT;
    *rest = (struct text){rest->at + 1, rest->length - 1};
    if (!quoted(rest, line, &text)) {
        *problem = "a quote is not closed";
        return false;
    }
    *field = (struct text){arena_copy(arena, buf_as_text(&text)), text.length};
    if (text_trim(plain(rest)).length) {
        *problem = "something stands between a closing quote and the comma";
        return false;
    }
    return true;
}

static bool row_take(struct text *rest, unsigned *line, struct arena *arena, struct csv_row *row,
                     const char **problem)
{
    *row = (struct csv_row){.line = *line};
    for (;;) {
        if (row->count == CSV_FIELDS_MAX) {
            *problem = "a line has more than 64 fields";
            return false;
        }
        if (!field_take(rest, line, arena, &row->fields[row->count], problem))
            return false;
        row->count++;
        bool goes_on = rest->length && rest->at[0] == ',';
        if (rest->length) /* the comma, or the end of the line */
            *rest = (struct text){rest->at + 1, rest->length - 1};
        if (goes_on)
            continue;
        ++*line;
        return true;
    }
}

bool csv_next(struct text *rest, unsigned *line, struct arena *arena, struct csv_row *row,
              const char **problem)
{
    *problem = NULL;
    if (*line == 1 && text_starts(*rest, TEXT("\xEF\xBB\xBF")))
        *rest = (struct text){rest->at + 3, rest->length - 3};
    while (rest->length) {
        if (!row_take(rest, line, arena, row, problem))
            return false;
        if (row->count > 1 || row->fields[0].length)
            return true;
    }
    return false;
}
