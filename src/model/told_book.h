/* told_book.h — which alerts each of several targets has been told of, and what is still to be
 * said.
 *
 * Pure. The table of docs/rfc/0021-notifications.md, section Alerts. The book is shown again and
 * again what stands (alert_book.h); it keeps a copy of each alert that somebody is to be told of,
 * until all who may have heard of it know that it has ended. A target is a number below
 * TOLD_TARGETS_MAX, given by told_book_targets. Times are Unix milliseconds.
 */
#ifndef MODEL_TOLD_BOOK_H
#define MODEL_TOLD_BOOK_H
#include "model/alert.h"

struct err;

enum {
    TOLD_TARGETS_MAX = 32,
    TOLD_BYTES_MAX = 256 * 1024,      /* of all that is kept … */
    TOLD_WARN_BYTES_MAX = 192 * 1024, /* … beyond this, no warning begins */
    TOLD_SUMMARY_MAX = 200,           /* bytes that are kept of a summary */
};

struct told_book;

struct told_book *told_book_new(void);
void told_book_free(struct told_book *book);

/* Who is told from now on, by name, each once; a target's number is its place here. Who is not
 * among them any more is forgotten. */
void told_book_targets(struct told_book *book, const char *const *names, size_t count);

struct told_rules {
    bool is_error_only;  /* no warning is told */
    int64_t after_ms;    /* how long it has stood, or has been over, before that is told */
    int64_t given_up_ms; /* an end before this time that could not be told yet is given up */
};
struct told_round {
    size_t full;     /* alerts that wait for room */
    size_t given_up; /* ends, by target */
    int64_t next_ms; /* when the passing of time makes something due; 0: not by itself */
};
/* What stands and what has ended, as alert_book_list gives it. */
void told_book_take(struct told_book *book, const struct alert *alerts, size_t count,
                    const struct told_rules *rules, int64_t now_ms, struct told_round *round);

/* From now on the target may hear of each beginning that is due to it. True: of one of them it
 * could not before. To be stored before something is sent. */
bool told_book_announce(struct told_book *book, size_t target);
/* What is to be said to the target, ends first: those of one name, or of all (NULL), at most `most`
 * of them; beginnings only when they have been announced. They stay the book's, and are valid until
 * it is changed. */
size_t told_book_due(const struct told_book *book, size_t target, const char *name,
                     const struct alert **alerts, size_t most);
/* What the target was told of and still stands for it, of this name: also what has ended, as long
 * as that is not to be said. `left`: how many more than `most`. */
size_t told_book_standing(const struct told_book *book, size_t target, const char *name,
                          const struct alert **alerts, size_t most, size_t *left);
/* It knows now, or has refused to. */
void told_book_said(struct told_book *book, size_t target, const struct alert *const *alerts,
                    size_t count);
/* How much is to be said, by target: announced or not. */
size_t told_book_waiting(const struct told_book *book);

/* TOLD_BYTES_MAX at most and the names of the targets; an empty book is no bytes. Read: some bytes,
 * into an empty book without targets, which gets those that were written; ERR_CORRUPT, and it
 * stays empty. */
void told_book_write(const struct told_book *book, struct buf *out);
int told_book_read(struct told_book *book, struct text bytes, struct err *err);

#endif
