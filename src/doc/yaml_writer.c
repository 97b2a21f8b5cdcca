#include "doc/yaml_writer.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_writer.h"
#include "doc/build.h"

static void indent(struct yaml_writer *yaml)
{
    for (unsigned i = 0; i < yaml->depth; i++)
        buf_string(yaml->out, "  ");
}

/* Whether YAML takes the character as it is, anywhere in a line. */
static bool is_printable(struct text text, size_t at, size_t length)
{
    const unsigned char *c = (const unsigned char *)text.at + at;
    if (length == 1)
        return (c[0] >= 0x20 && c[0] != 0x7f) || c[0] == '\t';
    if (length == 2)
        return c[0] != 0xc2 || c[1] >= 0xa0; /* C1 and NEL */
    if (length == 3 && c[0] == 0xe2 && c[1] == 0x80)
        return c[2] != 0xa8 && c[2] != 0xa9; /* LS, PS */
    if (length == 3 && c[0] == 0xef)
        return !(c[1] == 0xbb && c[2] == 0xbf) && !(c[1] == 0xbf && c[2] >= 0xbe);
    return length > 0;
}

static void comment_write(struct buf *out, struct text text)
{
    for (size_t i = 0; i < text.length;) {
        size_t length = text_utf8_length(text, i);
        if (is_printable(text, i, length))
            buf_add(out, text.at + i, length);
        else
            buf_string(out, "\xef\xbf\xbd");
        i += length ? length : 1;
    }
}

void yaml_comment(struct yaml_writer *yaml, struct text text)
{
    indent(yaml);
    buf_string(yaml->out, text.length ? "# " : "#");
    comment_write(yaml->out, text);
    buf_char(yaml->out, '\n');
}

static void comments_before(struct yaml_writer *yaml)
{
    struct doc_comments *all = yaml->comments;
    size_t i = all ? doc_comments_of_line(all, yaml->line) : 0;
    for (; all && i < all->count && all->items[i].line == yaml->line; i++) {
        struct doc_comment *comment = &all->items[i];
        if (comment->is_taken || comment->is_behind)
            continue;
        yaml_comment(yaml, comment->text);
        comment->is_taken = true;
    }
}

static void line_end(struct yaml_writer *yaml)
{
    struct doc_comments *all = yaml->line ? yaml->comments : NULL;
    size_t i = all ? doc_comments_of_line(all, yaml->line) : 0;
    for (; all && i < all->count && all->items[i].line == yaml->line; i++) {
        struct doc_comment *comment = &all->items[i];
        if (comment->is_taken)
            continue;
        buf_string(yaml->out, " # ");
        comment_write(yaml->out, comment->text);
        comment->is_taken = true;
    }
    buf_char(yaml->out, '\n');
}

void yaml_comments_left(struct yaml_writer *yaml, uint32_t first, uint32_t last)
{
    struct doc_comments *all = yaml->comments;
    size_t i = all ? doc_comments_of_line(all, first) : 0;
    for (; all && i < all->count && all->items[i].line <= last; i++) {
        struct doc_comment *comment = &all->items[i];
        if (comment->is_taken)
            continue;
        yaml_comment(yaml, comment->text);
        comment->is_taken = true;
    }
}

static void line_begin(struct yaml_writer *yaml, const struct place *from)
{
    if (yaml->is_in_item) {
        yaml->is_in_item = false;
        if (from && !yaml->line)
            yaml->line = from->line;
        return;
    }
    yaml->line = from ? from->line : 0;
    if (yaml->line)
        comments_before(yaml);
    indent(yaml);
}

/* ---- scalars ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
}

/* YAML 1.1 reads these as booleans, and other programs may read the file. */
static bool is_old_boolean(struct text text)
{
    static const char *const words[] = {"y", "n", "yes", "no", "on", "off", NULL};
    char lower[4] = "";
    if (text.length >= sizeof lower)
        return false;
    for (size_t i = 0; i < text.length; i++)
        lower[i] = (char)(text.at[i] | 0x20);
    for (const char *const *word = words; *word; word++)
        if (strcmp(*word, lower) == 0)
            return true;
    return false;
}

/* Plain only what nobody could read as something else. */
static bool is_plain(struct text text)
{
    bool boolean;
    double real;
    if (text.length == 0 || text.length > 200 || !is_word(text.at[0]) ||
        text.at[text.length - 1] == ' ' || text.at[text.length - 1] == ':' ||
        scalar_is_null(text) || scalar_to_bool(text, &boolean) || scalar_to_real(text, &real))
        return false;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.at[i];
        bool is_digit = c >= '0' && c <= '9';
        if (!is_word(c) && !is_digit && (c == '\0' || !strchr(" .-+,@=%:", c)))
            return false;
        if (c == ':' && text.at[i + 1] == ' ')
            return false;
    }
    return !is_old_boolean(text);
}

/* Lines of text that a literal block gives back byte by byte. */
static bool is_block(struct text text)
{
    if (text.length == 0 || !memchr(text.at, '\n', text.length) || text.at[0] == ' ' ||
        text.at[0] == '\n' || text.at[0] == '\t' ||
        (text.at[text.length - 1] == '\n' && text.at[text.length - 2] == '\n'))
        return false;
    for (size_t i = 0, length; i < text.length; i += length) {
        length = text_utf8_length(text, i);
        if (!is_printable(text, i, length) && text.at[i] != '\n')
            return false;
    }
    return true;
}

static void block_write(struct yaml_writer *yaml, struct text text)
{
    bool is_ended = text.at[text.length - 1] == '\n';
    buf_string(yaml->out, is_ended ? "|" : "|-");
    text.length -= is_ended;
    line_end(yaml);
    yaml->depth++;
    while (text.at) {
        struct text line = text_cut(&text, '\n');
        if (line.length) {
            indent(yaml);
            buf_text(yaml->out, line);
        }
        buf_char(yaml->out, '\n');
    }
    yaml->depth--;
}

/* As JSON writes it, with escapes for what YAML would not take or would take for a line break. */
static void quoted_write(struct buf *out, struct text text)
{
    cleanup_buf struct buf quoted = BUF_INIT;
    struct json_writer json;
    json_init(&json, &quoted);
    json_text(&json, text);
    const struct text all = buf_as_text(&quoted);
    for (size_t i = 0, length; i < all.length; i += length) {
        const unsigned char *c = (const unsigned char *)all.at + i;
        length = text_utf8_length(all, i);
        assert(length > 0); /* JSON is UTF-8 */
        if (is_printable(all, i, length))
            buf_add(out, all.at + i, length);
        else if (length == 3)
            buf_format(out, "\\u%04x", (c[0] & 0xfU) << 12 | (c[1] & 0x3fU) << 6 | (c[2] & 0x3fU));
        else if (length == 2)
            buf_format(out, "\\u%04x", (c[0] & 0x1fU) << 6 | (c[1] & 0x3fU));
        else
            buf_format(out, "\\u%04x", c[0]);
    }
}

void yaml_key(struct yaml_writer *yaml, struct text key, const struct place *from)
{
    enum { SIMPLE_MAX = 1000 }; /* a longer one needs a line of its own */
    line_begin(yaml, from);
    if (is_plain(key) && !memchr(key.at, ' ', key.length) && !memchr(key.at, ':', key.length)) {
        buf_text(yaml->out, key);
    } else {
        cleanup_buf struct buf quoted = BUF_INIT;
        quoted_write(&quoted, key);
        bool is_long = quoted.length > SIMPLE_MAX;
        if (is_long)
            buf_string(yaml->out, "? ");
        buf_text(yaml->out, buf_as_text(&quoted));
        if (is_long) {
            buf_char(yaml->out, '\n');
            indent(yaml);
        }
    }
    buf_char(yaml->out, ':');
}

void yaml_item(struct yaml_writer *yaml, const struct place *from)
{
    line_begin(yaml, from);
    buf_char(yaml->out, '-');
}

void yaml_text(struct yaml_writer *yaml, struct text text)
{
    buf_char(yaml->out, ' ');
    if (is_block(text)) {
        block_write(yaml, text);
        return;
    }
    if (is_plain(text))
        buf_text(yaml->out, text);
    else
        quoted_write(yaml->out, text);
    line_end(yaml);
}

void yaml_int(struct yaml_writer *yaml, int64_t value)
{
    buf_char(yaml->out, ' ');
    buf_int(yaml->out, value);
    line_end(yaml);
}

void yaml_bool(struct yaml_writer *yaml, bool value)
{
    buf_string(yaml->out, value ? " true" : " false");
    line_end(yaml);
}

void yaml_open(struct yaml_writer *yaml)
{
    line_end(yaml);
    yaml->depth++;
}

void yaml_close(struct yaml_writer *yaml)
{
    assert(yaml->depth > 0 && !yaml->is_in_item);
    yaml->depth--;
}

void yaml_item_open(struct yaml_writer *yaml, const struct place *from)
{
    line_begin(yaml, from);
    buf_string(yaml->out, "- ");
    yaml->is_in_item = true;
    yaml->depth++;
}

static void plain_write(struct yaml_writer *yaml, const char *text)
{
    buf_string(yaml->out, text);
    line_end(yaml);
}

static void entries_write(struct yaml_writer *yaml, const struct doc *doc)
{
    for (size_t i = 0; i < doc->as.map.count; i++) {
        const struct doc_entry *entry = &doc->as.map.entries[i];
        yaml_key(yaml, entry->key, &entry->place);
        yaml_doc(yaml, entry->value);
    }
}

static void list_write(struct yaml_writer *yaml, const struct doc *doc)
{
    yaml_open(yaml);
    for (size_t i = 0; i < doc->as.list.count; i++) {
        const struct doc *item = doc->as.list.items[i];
        if (item->kind == DOC_MAP && item->as.map.count) {
            yaml_item_open(yaml, &item->place);
            entries_write(yaml, item);
            yaml_close(yaml);
        } else {
            yaml_item(yaml, &item->place);
            yaml_doc(yaml, item);
        }
    }
    yaml_close(yaml);
}

static void map_write(struct yaml_writer *yaml, const struct doc *doc)
{
    yaml_open(yaml);
    entries_write(yaml, doc);
    yaml_close(yaml);
}

void yaml_doc(struct yaml_writer *yaml, const struct doc *doc)
{
    switch (doc->kind) {
    case DOC_NULL:
        plain_write(yaml, " null");
        break;
    case DOC_BOOL:
        yaml_bool(yaml, doc->as.boolean);
        break;
    case DOC_INT:
    case DOC_REAL: /* as it was written: 0.0010 stays that */
        buf_char(yaml->out, ' ');
        buf_text(yaml->out, doc->source);
        line_end(yaml);
        break;
    case DOC_STRING:
        yaml_text(yaml, doc->as.string);
        break;
    case DOC_LIST:
        if (doc->as.list.count)
            list_write(yaml, doc);
        else
            plain_write(yaml, " []");
        break;
    case DOC_MAP:
        if (doc->as.map.count)
            map_write(yaml, doc);
        else
            plain_write(yaml, " {}");
        break;
    }
}
