/* problem.h — everything that is wrong with a document, each with its place.
 *
 * Pure. A reader goes on after a problem, so that all of them are reported at once; it stops adding
 * at PROBLEMS_MAX and counts the rest; an error then takes the place of a warning.
 */
#ifndef DOC_PROBLEM_H
#define DOC_PROBLEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;

enum { PROBLEMS_MAX = 100 };

struct place {
    /* from 1; columns count characters (code points), not bytes; column 0: not known */
    uint32_t line, column;
};

struct problem {
    struct place place;
    bool is_warning;  /* accepted all the same */
    const char *path; /* "taskRoles.worker.instances", "" for the whole document */
    const char *text; /* one sentence, no full stop */
    const char *hint; /* "did you mean taskNumber?", or NULL */
};

struct problems {
    struct arena *arena; /* owns the strings */
    struct problem *items;
    size_t count, room;
    size_t error_count, left_out; /* left_out: beyond PROBLEMS_MAX */
};

void problems_init(struct problems *problems, struct arena *arena);
void problems_release(struct problems *problems);
#define cleanup_problems __attribute__((cleanup(problems_release)))

/* Path and text are copied. Returns the problem so that a hint can be set, or NULL at the
 * limit and when the same has been said of the same place before. */
struct problem *problem_add(struct problems *problems, struct place place, const char *path,
                            const char *format, ...) __attribute__((format(printf, 4, 5)));
struct problem *problem_warn(struct problems *problems, struct place place, const char *path,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Set the hint of a problem just added; nothing when `problem` is NULL. */
void problem_hint(struct problems *problems, struct problem *problem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Pointers to all problems in order of place; in the arena. */
const struct problem **problems_sorted(const struct problems *problems);

/* One a line: `FILE:LINE:COLUMN: PATH: what is wrong (hint)` in order of place;
 * a warning says "warning: " before the path. Control characters are escaped. A last line says how
 * many were left out. */
void problems_print(const struct problems *problems, const char *file, struct buf *out);

#endif
