#include "doc/problem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"

void problems_init(struct problems *problems, struct arena *arena)
{
    *problems = (struct problems){.arena = arena};
}

void problems_release(struct problems *problems)
{
    ARRAY_FREE(problems);
}

/* Two roles that use one wrong thing say the same of it. */
static bool is_said(const struct problems *problems, struct place place, const char *path,
                    const char *text)
{
    for (size_t i = problems->count; i > 0; i--) {
        const struct problem *said = &problems->items[i - 1];
        if (said->place.line == place.line && said->place.column == place.column &&
            strcmp(said->path, path) == 0 && strcmp(said->text, text) == 0)
            return true;
    }
    return false;
}

/* When there are too many, an error takes the place of a warning: the first error is always told.
 */
static struct problem *warning_last(struct problems *problems)
{
    for (size_t i = problems->count; i > 0; i--)
        if (problems->items[i - 1].is_warning)
            return &problems->items[i - 1];
    return NULL;
}

static struct problem *problem_new(struct problems *problems, struct place place, bool is_warning,
                                   const char *path, const char *format, va_list args)
    __attribute__((format(printf, 5, 0)));
static struct problem *problem_new(struct problems *problems, struct place place, bool is_warning,
                                   const char *path, const char *format, va_list args)
{
    assert(problems->arena && path && format);
    char text[400];
    vsnprintf(text, sizeof text, format, args);
    if (is_said(problems, place, path, text))
        return NULL;
    if (!is_warning)
        problems->error_count++;
    struct problem *problem;
    if (problems->count < PROBLEMS_MAX) {
        problem = ARRAY_ADD(problems);
    } else {
        problems->left_out++;
        problem = is_warning ? NULL : warning_last(problems);
        if (!problem)
            return NULL;
    }
    *problem = (struct problem){.place = place, .is_warning = is_warning};
    problem->path = arena_copy(problems->arena, text_of(path));
    problem->text = arena_copy(problems->arena, text_of(text));
    return problem;
}

struct problem *problem_add(struct problems *problems, struct place place, const char *path,
                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct problem *problem = problem_new(problems, place, false, path, format, args);
    va_end(args);
    return problem;
}

struct problem *problem_warn(struct problems *problems, struct place place, const char *path,
                             const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct problem *problem = problem_new(problems, place, true, path, format, args);
    va_end(args);
    return problem;
}

void problem_hint(struct problems *problems, struct problem *problem, const char *format, ...)
{
    if (!problem)
        return;
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    problem->hint = arena_copy(problems->arena, text_of(text));
}

static int problem_compare(const void *left, const void *right)
{
    const struct problem *a = *(const struct problem *const *)left;
    const struct problem *b = *(const struct problem *const *)right;
    if (a->place.line != b->place.line)
        return a->place.line < b->place.line ? -1 : 1;
    if (a->place.column != b->place.column)
        return a->place.column < b->place.column ? -1 : 1;
    return a < b ? -1 : 1; /* in the order found */
}

const struct problem **problems_sorted(const struct problems *problems)
{
    const struct problem **sorted =
        ARENA_ARRAY(problems->arena, const struct problem *, problems->count + 1);
    for (size_t i = 0; i < problems->count; i++)
        sorted[i] = &problems->items[i];
    if (problems->count)
        qsort(sorted, problems->count, sizeof(const struct problem *), problem_compare);
    return sorted;
}

/* What a document's author wrote must not break the line or drive the terminal. */
static void clean_add(struct buf *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == 0x7f)
            buf_format(out, "\\x%02x", c);
        else
            buf_char(out, *text);
    }
}

void problems_print(const struct problems *problems, const char *file, struct buf *out)
{
    const struct problem **sorted = problems_sorted(problems);
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = sorted[i];
        clean_add(out, file);
        buf_format(out, ":%u", problem->place.line);
        if (problem->place.column)
            buf_format(out, ":%u", problem->place.column);
        buf_string(out, ": ");
        if (problem->is_warning)
            buf_string(out, "warning: ");
        if (problem->path[0]) {
            clean_add(out, problem->path);
            buf_string(out, ": ");
        }
        clean_add(out, problem->text);
        if (problem->hint) {
            buf_string(out, " (");
            clean_add(out, problem->hint);
            buf_char(out, ')');
        }
        buf_char(out, '\n');
    }
    if (problems->left_out) {
        clean_add(out, file);
        buf_format(out, ": %zu more problems are not shown\n", problems->left_out);
    }
}
