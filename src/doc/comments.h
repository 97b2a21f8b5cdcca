/* comments.h — the comments of a YAML or JSON text, each with the line that it belongs to.
 *
 * Pure. A comment on a line of its own belongs to the next line that has something else, a comment
 * behind something to its own line. Whoever writes the document anew in another shape finds them
 * by the places of the tree.
 */
#ifndef DOC_COMMENTS_H
#define DOC_COMMENTS_H
#include "doc/doc.h"

struct doc_comment {
    struct text text; /* of one line, without its mark; points into the source */
    uint32_t line;    /* that it belongs to; UINT32_MAX: behind everything */
    bool is_behind;   /* it stands behind something in that line */
    bool is_taken;    /* for who writes them */
};

struct doc_comments {
    struct doc_comment *items; /* in the order of the text, and of their lines */
    size_t count, room;
};

/* `root` is what `source` was read to. */
void doc_comments_read(struct doc_comments *comments, struct text source, const struct doc *root,
                       enum doc_format format);
/* The first that belongs to this line or a later one; `count` when there is none. */
size_t doc_comments_of_line(const struct doc_comments *comments, uint32_t line);
void doc_comments_release(struct doc_comments *comments);
#define cleanup_comments __attribute__((cleanup(doc_comments_release)))

#endif
