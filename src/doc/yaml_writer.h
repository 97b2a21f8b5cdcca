/* yaml_writer.h — a YAML document written as a stream into a buffer, block style, two spaces a
 * level.
 *
 * Pure. Every line may say which place of an older document it comes from: the comments that belong
 * there go with it. Texts get quotes where they need them, or are blocks of lines, so that reading
 * gives back what was written, but for bytes that are not UTF-8, each of which becomes U+FFFD.
 */
#ifndef DOC_YAML_WRITER_H
#define DOC_YAML_WRITER_H
#include "doc/comments.h"

struct buf;

struct yaml_writer {
    struct buf *out;
    struct doc_comments *comments; /* NULL: there are none */
    unsigned depth;                /* of the next line */
    bool is_in_item;               /* "- " has been written: the key stands behind it */
    uint32_t line;                 /* that the line being written comes from; 0: none */
};

/* "KEY:", then one of the values, or yaml_open … yaml_close around what it holds. `from` may be
 * NULL. */
void yaml_key(struct yaml_writer *yaml, struct text key, const struct place *from);
/* "-", then the same. */
void yaml_item(struct yaml_writer *yaml, const struct place *from);
void yaml_text(struct yaml_writer *yaml, struct text text);
void yaml_int(struct yaml_writer *yaml, int64_t value);
void yaml_bool(struct yaml_writer *yaml, bool value);
void yaml_open(struct yaml_writer *yaml);
void yaml_close(struct yaml_writer *yaml);
/* An item whose map begins in its line: yaml_item_open, yaml_key …, yaml_close. */
void yaml_item_open(struct yaml_writer *yaml, const struct place *from);
/* A tree as the value, with the comments in it. */
void yaml_doc(struct yaml_writer *yaml, const struct doc *doc);

/* "# TEXT", a line of its own. */
void yaml_comment(struct yaml_writer *yaml, struct text text);
/* The comments of these lines that nobody has written. */
void yaml_comments_left(struct yaml_writer *yaml, uint32_t first, uint32_t last);

#endif
