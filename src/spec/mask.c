/* The secrets block: taken apart for the launcher, masked in the text that is stored. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "doc/shape.h"
#include "spec/read.h"

#define MASK_VALUE "******"
#define MASK       "\"" MASK_VALUE "\""

static bool is_mask(const struct doc *doc)
{
    return doc->kind == DOC_STRING && text_is(doc->as.string, MASK_VALUE);
}

static bool shared_find(const struct doc *doc, struct place *place)
{
    *place = doc->place;
    if (doc->is_shared)
        return true;
    for (size_t i = 0; doc->kind == DOC_LIST && i < doc->as.list.count; i++)
        if (shared_find(doc->as.list.items[i], place))
            return true;
    for (size_t i = 0; doc->kind == DOC_MAP && i < doc->as.map.count; i++)
        if (shared_find(doc->as.map.entries[i].value, place))
            return true;
    return false;
}

/* What stands for a value that is masked in the file; `name` is the dotted one. */
static const char *kept_value(struct spec_reader *reader, const char *name, const struct doc *doc)
{
    const struct spec_kept *kept = reader->kept;
    if (!kept) {
        reader_problem(reader, doc,
                       "this is the mask of a stored copy: write the secret in again, or name the "
                       "job that has it (skep submit --secrets-of JOB)",
                       "secrets.%s", name);
        return "";
    }
    for (size_t i = 0; i < kept->count; i++)
        if (strcmp(kept->secrets[i].name, name) == 0)
            return kept->secrets[i].value;
    struct near near = {0};
    for (size_t i = 0; i < kept->count; i++)
        near_offer(&near, text_of(name), text_of(kept->secrets[i].name));
    struct problem *problem = reader_problem(
        reader, doc, arena_format(reader->scratch, "job %s has no secret of this name", kept->job),
        "secrets.%s", name);
    near_hint(&near, reader->problems, problem);
    return "";
}

void spec_secrets_unmask(struct spec_reader *reader)
{
    const struct doc *secrets = doc_get(reader->root, "secrets");
    if (!reader->kept || !secrets || !is_mask(secrets))
        return;
    struct doc *empty = ARENA_NEW(reader->scratch, struct doc);
    struct doc *root = ARENA_NEW(reader->scratch, struct doc);
    *empty = *secrets;
    empty->kind = DOC_MAP;
    memset(&empty->as, 0, sizeof empty->as);
    *root = *reader->root;
    root->as.map.by_key = NULL; /* it would name the mask */
    root->as.map.entries =
        ARENA_ARRAY(reader->scratch, struct doc_entry, reader->root->as.map.count);
    for (size_t i = 0; i < root->as.map.count; i++) {
        root->as.map.entries[i] = reader->root->as.map.entries[i];
        if (root->as.map.entries[i].value == secrets)
            root->as.map.entries[i].value = empty;
    }
    reader->root = root;
    reader->has_all_kept = true;
}

/* Those that the mask of the whole block stands for. */
static void kept_take(struct spec_reader *reader)
{
    const struct spec_kept *kept = reader->kept;
    assert(kept->count <= SPEC_LIST_MAX && reader->secret_count == 0);
    reader->secrets = ARENA_ARRAY(reader->scratch, struct spec_pair, kept->count);
    for (size_t i = 0; i < kept->count; i++)
        reader->secrets[i] = kept->secrets[i];
    reader->secret_count = kept->count;
}

static void secret_add(struct spec_reader *reader, const char *name, const struct doc *doc)
{
    if (reader->secret_count == SPEC_LIST_MAX) {
        reader_problem(reader, doc, "too many secrets", "secrets");
        reader->secret_count++; /* said once */
    }
    if (reader->secret_count > SPEC_LIST_MAX)
        return;
    if (doc->source.length > SPEC_SECRET_MAX)
        reader_problem(reader, doc, "longer than 65536 bytes", "%s", name);
    if (doc->source.length && memchr(doc->source.at, '\0', doc->source.length))
        reader_problem(reader, doc, "must not hold a NUL character", "%s", name);
    if (!reader->secrets)
        reader->secrets = ARENA_ARRAY(reader->scratch, struct spec_pair, SPEC_LIST_MAX);
    const char *value = is_mask(doc)            ? kept_value(reader, name + strlen("secrets."), doc)
                        : doc->kind == DOC_BOOL ? (doc->as.boolean ? "true" : "false")
                        : doc->kind == DOC_NULL ? ""
                                                : arena_copy(reader->scratch, doc->source);
    reader->secrets[reader->secret_count++] =
        (struct spec_pair){.name = name + strlen("secrets."), .value = value};
}

static void secrets_walk(struct spec_reader *reader, const char *name, const struct doc *doc)
{
    if (doc->kind != DOC_LIST && doc->kind != DOC_MAP) {
        secret_add(reader, name, doc);
        return;
    }
    for (size_t i = 0; i < doc_count(doc) && reader->secret_count <= SPEC_LIST_MAX; i++) {
        if (doc->kind == DOC_LIST) {
            secrets_walk(reader, arena_format(reader->scratch, "%s.%zu", name, i),
                         doc->as.list.items[i]);
            continue;
        }
        const struct doc_entry *entry = &doc->as.map.entries[i];
        if (strlen(name) + entry->key.length > SPEC_NAME_MAX)
            reader_problem(reader, entry->value, "the name of a secret is too long", "%s", name);
        else
            secrets_walk(reader, arena_format(reader->scratch, "%s.%s", name, entry->key.at),
                         entry->value);
    }
}

void spec_secrets_read(struct spec_reader *reader)
{
    const struct doc *secrets = doc_get(reader->root, "secrets");
    struct doc found = {0};
    if (!secrets)
        return;
    for (size_t i = 0; i < reader->root->as.map.count; i++) {
        const struct doc_entry *entry = &reader->root->as.map.entries[i];
        if (entry->value == secrets && entry->is_merged)
            reader_problem(reader, secrets, "must be written here, not merged from elsewhere",
                           "secrets");
    }
    if (shared_find(secrets, &found.place))
        reader_problem(
            reader, &found,
            "no anchors, aliases and merge keys here: they would show the value elsewhere",
            "secrets");
    if (is_mask(secrets))
        reader_warning(
            reader, secrets,
            "this is a stored copy: write the secrets in again, or name the job that has "
            "them (skep submit --secrets-of JOB)",
            "secrets");
    if (reader->has_all_kept)
        kept_take(reader);
    else if (secrets->kind == DOC_MAP)
        secrets_walk(reader, "secrets", secrets);
    if (reader->secret_count > SPEC_LIST_MAX)
        reader->secret_count = SPEC_LIST_MAX;
}

static size_t blank_end(struct text source, size_t at)
{
    while (at < source.length && (source.at[at] == ' ' || source.at[at] == '\t'))
        at++;
    return at;
}

static bool is_break(char c)
{
    return c == '\n' || c == '\r';
}

static size_t line_end(struct text source, size_t at)
{
    while (at < source.length && !is_break(source.at[at]))
        at++;
    return at;
}

/* Of the line that holds `at`; `? key` is a key too, and stands two columns in. */
static size_t line_indentation(struct text source, size_t at)
{
    while (at > 0 && !is_break(source.at[at - 1]))
        at--;
    return blank_end(source, at) - at;
}

/* Comments behind the block belong to it when they stand in its last line or are indented more
 * than its key: they may hold a secret that was commented out. */
static size_t comments_end(struct text source, size_t end, size_t indentation)
{
    size_t at = blank_end(source, end);
    if (at < source.length && source.at[at] == '#' && at > end)
        end = line_end(source, at);
    for (at = line_end(source, end); at < source.length;) {
        at += source.at[at] == '\r' && at + 1 < source.length && source.at[at + 1] == '\n' ? 2 : 1;
        size_t first = blank_end(source, at), last = line_end(source, first);
        bool is_comment = first < source.length && source.at[first] == '#';
        if (first < last && !(is_comment && first - at > indentation))
            break;
        if (is_comment)
            end = last;
        at = last;
    }
    return end;
}

/* Comments between the key and a value that begins its line belong to the block as well: the
 * beginning of the first of their lines, or `begin`. */
static size_t comments_begin(struct text source, size_t begin, size_t key)
{
    size_t line = begin, first = begin;
    while (line > key && (source.at[line - 1] == ' ' || source.at[line - 1] == '\t'))
        line--; /* back over the indentation */
    while (line > key && is_break(source.at[line - 1])) {
        size_t before = line - 1;
        while (before > key && !is_break(source.at[before - 1]))
            before--;
        size_t start = blank_end(source, before);
        if (before <= key || (source.at[start] != '#' && line_end(source, start) != start))
            break;
        line = before;
        first = source.at[start] == '#' ? before : first;
    }
    return first;
}

static size_t trimmed_end(struct text source, size_t begin, size_t end)
{
    struct text value = {source.at + begin, end - begin};
    struct text trimmed = text_trim(value);
    return trimmed.length ? (size_t)(trimmed.at - source.at) + trimmed.length : begin;
}

void spec_mask(struct text source, const struct doc *root, struct buf *out)
{
    size_t from = 0;
    for (size_t n = 0; root->kind == DOC_MAP && n < root->as.map.count; n++) {
        const struct doc_entry *entry = &root->as.map.entries[n];
        if (!text_is(entry->key, "secrets") || entry->value->kind == DOC_NULL)
            continue;
        size_t key = doc_offset(source, entry->place);
        size_t begin = doc_offset(source, entry->value->place);
        size_t end = trimmed_end(source, begin, doc_offset(source, entry->value->end));
        /* only a block value may be followed by comments of its own; behind `}` of a flow map or of
         * JSON they are taken too when nothing else stands in the line */
        end = comments_end(source, end, line_indentation(source, key));
        size_t cut = comments_begin(source, begin, key);
        buf_add(out, source.at + from, cut - from);
        for (uint32_t i = 1; cut < begin && i < entry->value->place.column; i++)
            buf_char(out, ' ');
        buf_string(out, MASK);
        from = end;
    }
    buf_add(out, source.at + from, source.length - from);
}
