#include "doc/comments.h"

#include <stdlib.h>

#include "base/memory.h"
#include "doc/build.h"

/* Where scalars stand: what looks like a comment in there is none. */
struct scalar_range {
    struct place begin, end;
};

struct scan {
    struct doc_comments *comments;
    struct text source;
    size_t at;
    struct place place;
    uint32_t content_line; /* the last line that had something before the place; 0: none yet */
    size_t pending;        /* the first comment whose line is not known */
    struct scalar_range *items;
    size_t count, room;
    size_t next; /* range */
};

static void ranges_add(struct scan *scan, const struct doc *doc)
{
    for (size_t i = 0; doc->kind == DOC_LIST && i < doc->as.list.count; i++)
        ranges_add(scan, doc->as.list.items[i]);
    for (size_t i = 0; doc->kind == DOC_MAP && i < doc->as.map.count; i++)
        ranges_add(scan, doc->as.map.entries[i].value);
    if (doc->kind != DOC_LIST && doc->kind != DOC_MAP && doc->source.length)
        *ARRAY_ADD(scan) = (struct scalar_range){doc->place, doc->end};
}

static int place_compare(struct place a, struct place b)
{
    if (a.line != b.line)
        return a.line < b.line ? -1 : 1;
    return a.column < b.column ? -1 : a.column > b.column;
}

static int range_compare(const void *a, const void *b)
{
    const struct scalar_range *one = a, *other = b;
    return place_compare(one->begin, other->begin);
}

static void step(struct scan *scan)
{
    scan->at = place_step(scan->source, scan->at, &scan->place);
}

static bool is_at(const struct scan *scan, const char *what)
{
    struct text rest = {scan->source.at + scan->at, scan->source.length - scan->at};
    return text_starts(rest, text_of(what));
}

/* Something that is no comment: the comments before it belong to its line. */
static void content(struct scan *scan)
{
    for (; scan->pending < scan->comments->count; scan->pending++)
        scan->comments->items[scan->pending].line = scan->place.line;
    scan->content_line = scan->place.line;
}

static void comment_add(struct scan *scan, struct text text, uint32_t line)
{
    bool is_behind = scan->content_line == line;
    text = text_trim(text);
    *ARRAY_ADD(scan->comments) = (struct doc_comment){
        .text = text, .line = is_behind ? line : UINT32_MAX, .is_behind = is_behind};
    if (is_behind)
        scan->pending = scan->comments->count;
}

/* From the mark to the end of the line. */
static void line_comment(struct scan *scan, size_t mark)
{
    const uint32_t line = scan->place.line;
    size_t begin = scan->at + mark, end = begin;
    while (scan->at < scan->source.length && scan->place.line == line) {
        end = scan->at;
        step(scan);
        if (scan->place.line == line)
            end = scan->at;
    }
    comment_add(scan, (struct text){scan->source.at + begin, end > begin ? end - begin : 0}, line);
}

/* Without the star that many put before each line. */
static struct text star_skip(struct text text)
{
    text = text_trim(text);
    return text.length && text.at[0] == '*' ? (struct text){text.at + 1, text.length - 1} : text;
}

/* One comment a line. */
static void block_comment(struct scan *scan)
{
    size_t begin = scan->at + 2;
    uint32_t line = scan->place.line;
    step(scan);
    step(scan);
    while (scan->at < scan->source.length && !is_at(scan, "*/")) {
        size_t end = scan->at;
        step(scan);
        if (scan->place.line == line)
            continue;
        comment_add(scan, star_skip((struct text){scan->source.at + begin, end - begin}), line);
        line = scan->place.line;
        begin = scan->at;
    }
    comment_add(scan, star_skip((struct text){scan->source.at + begin, scan->at - begin}), line);
    for (int i = 0; i < 2 && scan->at < scan->source.length; i++)
        step(scan);
}

/* Behind a quote; in JSON and in double quotes a backslash takes the next character with it. */
static void quoted_skip(struct scan *scan)
{
    const char quote = scan->source.at[scan->at];
    step(scan);
    while (scan->at < scan->source.length && scan->source.at[scan->at] != quote) {
        if (quote == '"' && scan->source.at[scan->at] == '\\')
            step(scan);
        if (scan->at < scan->source.length)
            step(scan);
    }
    if (scan->at < scan->source.length)
        step(scan);
}

static bool is_blank_before(const struct scan *scan)
{
    if (scan->at == 0 || scan->place.column == 1)
        return true;
    char before = scan->source.at[scan->at - 1];
    return before == ' ' || before == '\t';
}

/* The head of a block scalar, `|` or `>`, may have a comment of its own. */
static void scalar_skip(struct scan *scan, struct place end)
{
    char first = scan->source.at[scan->at];
    content(scan);
    if (first == '|' || first == '>') {
        const uint32_t line = scan->place.line;
        while (scan->at < scan->source.length && scan->place.line == line) {
            if (scan->source.at[scan->at] == '#' && is_blank_before(scan))
                line_comment(scan, 1);
            else
                step(scan);
        }
    }
    while (scan->at < scan->source.length && place_compare(scan->place, end) < 0)
        step(scan);
    if (scan->place.column > 1) /* a plain text may have several lines */
        scan->content_line = scan->place.line;
}

static bool range_skip(struct scan *scan)
{
    while (scan->next < scan->count &&
           place_compare(scan->items[scan->next].begin, scan->place) < 0)
        scan->next++;
    if (scan->next == scan->count ||
        place_compare(scan->items[scan->next].begin, scan->place) != 0 ||
        place_compare(scan->place, scan->items[scan->next].end) >= 0)
        return false;
    scalar_skip(scan, scan->items[scan->next].end);
    return true;
}

static bool is_quote_opening(const struct scan *scan)
{
    char c = scan->source.at[scan->at];
    const char *before = scan->at ? &scan->source.at[scan->at - 1] : " ";
    return (c == '"' || c == '\'') &&
           (is_blank_before(scan) || *before == '{' || *before == '[' || *before == ',');
}

static void yaml_step(struct scan *scan)
{
    char c = scan->source.at[scan->at];
    if (range_skip(scan))
        return;
    if (c == '#' && is_blank_before(scan)) {
        line_comment(scan, 1);
    } else if (is_quote_opening(scan)) {
        content(scan);
        quoted_skip(scan);
    } else {
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            content(scan);
        step(scan);
    }
}

static void json_step(struct scan *scan)
{
    char c = scan->source.at[scan->at];
    if (is_at(scan, "//")) {
        line_comment(scan, 2);
    } else if (is_at(scan, "/*")) {
        block_comment(scan);
    } else if (c == '"') {
        content(scan);
        quoted_skip(scan);
    } else {
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            content(scan);
        step(scan);
    }
}

void doc_comments_read(struct doc_comments *comments, struct text source, const struct doc *root,
                       enum doc_format format)
{
    struct scan scan = {.comments = comments, .source = source, .place = {1, 1}};
    *comments = (struct doc_comments){0};
    if (text_starts(source, TEXT("\xef\xbb\xbf")))
        scan.at = 3;
    if (format == DOC_YAML) {
        ranges_add(&scan, root);
        if (scan.count)
            qsort(scan.items, scan.count, sizeof *scan.items, range_compare);
    }
    while (scan.at < source.length) {
        if (format == DOC_YAML)
            yaml_step(&scan);
        else
            json_step(&scan);
    }
    ARRAY_FREE(&scan);
}

size_t doc_comments_of_line(const struct doc_comments *comments, uint32_t line)
{
    size_t low = 0, high = comments->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (comments->items[middle].line < line)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void doc_comments_release(struct doc_comments *comments)
{
    ARRAY_FREE(comments);
}
