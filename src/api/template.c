/* OpenPAI's marketplace: job files that users keep as templates and share. Everyone sees what is
 * shared with everyone once an administrator has approved it. */
#include "api/template.h"
#include "api/account.h"
#include "api/audit.h"
#include "api/handlers.h"
#include "api/http_watch.h"
#include "api/page.h"
#include "api/token.h"
#include "base/memory.h"
#include "base/printable.h"
#include "base/utc.h"
#include "spec/spec.h"
#include "sys/clock.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 100, LIMIT_MAX = 200 };
static const struct page_limits limits = {1, LIMIT_MAX, LIMIT};

static const char *const STATUS_NAMES[] = {
    [TEMPLATE_PRIVATE] = NULL,
    [TEMPLATE_PENDING] = "pending",
    [TEMPLATE_APPROVED] = "approved",
    [TEMPLATE_REJECTED] = "rejected",
};

/* ---- as JSON ---- */

/* Names as the original's objects: the name is the id. */
void template_words_json(struct json_writer *json, const struct store_names *names)
{
    json_array(json);
    for (size_t i = 0; i < names->count; i++) {
        json_object(json);
        json_key_string(json, "id", names->items[i]);
        json_key_string(json, "name", names->items[i]);
        json_object_end(json);
    }
    json_array_end(json);
}

void template_time_json(struct json_writer *json, const char *key, int64_t at_ms)
{
    char text[UTC_SIZE];
    json_key_string(json, key, at_ms ? utc_instant(at_ms, text) : NULL);
}

static void template_json(struct json_writer *json, const struct store_template *row)
{
    const bool is_private = !row->is_public && row->groups.count == 0;
    json_object(json);
    json_key_string(json, "id", row->id);
    json_key_string(json, "name", row->name);
    json_key_string(json, "author", row->author);
    json_key_string(json, "type", "job");
    json_key_string(json, "source", "marketplace");
    json_key_string(json, "summary", row->summary);
    json_key_string(json, "description", row->description);
    json_key_string(json, "protocol", row->protocol);
    json_key(json, "categories");
    template_words_json(json, &row->categories);
    json_key(json, "tags");
    template_words_json(json, &row->tags);
    json_key_bool(json, "isPublic", row->is_public);
    json_key_bool(json, "isPrivate", is_private);
    json_key_strings(json, "groupList", row->groups.items, row->groups.count);
    json_key_string(json, "status", STATUS_NAMES[row->status]);
    json_key_string(json, "reason", row->reason[0] ? row->reason : NULL);
    json_key_string(json, "reviewer", row->reviewer[0] ? row->reviewer : NULL);
    json_key_int(json, "useNumber", row->use_count);
    json_key_int(json, "starNumber", row->star_count);
    json_key_bool(json, "starred", row->is_starred);
    json_key_bool(json, "official", row->is_official);
    template_time_json(json, "usedAt", row->used_ms);
    template_time_json(json, "createdAt", row->created_ms);
    template_time_json(json, "updatedAt", row->updated_ms);
    json_object_end(json);
}

/* ---- who may see it ---- */

/* The groups of the caller, in which a template may be shared. */
static int groups_of_caller(struct call *call, struct store_members *groups)
{
    struct store_user user;
    *groups = (struct store_members){0};
    if (!call_reader(call))
        return call->err.code;
    int code =
        store_user(call->reader, text_of(call->caller.auth.user), call->arena, &user, &call->err);
    if (!code)
        *groups = user.groups;
    return code;
}

static bool has_group(const struct store_members *groups, const struct store_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        for (size_t j = 0; j < groups->count; j++)
            if (strcmp(names->items[i], groups->items[j].name) == 0)
                return true;
    return false;
}

static struct auth_subject subject_of(const struct store_template *row,
                                      const struct store_members *groups)
{
    return (struct auth_subject){.owner = row->author,
                                 .name = row->name,
                                 .is_shared = row->status == TEMPLATE_APPROVED ||
                                              has_group(groups, &row->groups)};
}

int template_of_path(struct call *call, enum auth_right right, struct store_template *row)
{
    struct store_members groups = {0};
    int code = groups_of_caller(call, &groups);
    if (!code)
        code = store_template(call->reader, call->parameters[0], call->caller.auth.user,
                              call->arena, row, &call->err);
    if (code == ERR_NOT_FOUND)
        call->error_code = "NoTemplateError";
    if (code)
        return code;
    audit_subject(call, "template",
                  text_of(arena_format(call->arena, "%s~%s", row->author, row->name)));
    const struct auth_subject subject = subject_of(row, &groups);
    return call_may_about(call, right, &subject);
}

/* ---- lists ---- */

/* All that the caller may see. */
static int visible(struct call *call, struct store_templates *templates)
{
    struct store_members groups = {0};
    int code = groups_of_caller(call, &groups);
    if (!code)
        code = store_templates(call->reader, call->caller.auth.user, call->arena, templates,
                               &call->err);
    if (code)
        return code;
    size_t kept = 0;
    for (size_t i = 0; i < templates->count; i++) {
        const struct auth_subject subject = subject_of(&templates->items[i], &groups);
        if (auth_check(&call->caller.auth, AUTH_READ_TEMPLATE, &subject, NULL) == 0)
            templates->items[kept++] = templates->items[i];
    }
    templates->count = kept;
    return 0;
}

struct template_filter {
    struct text name, author, type, source, status;
    const char *keyword;
    struct call_words tags, categories;
    bool wants_starred, wants_official, wants_shared;
};

static int filter_read(struct call *call, struct template_filter *filter)
{
    const struct exchange *exchange = call->exchange;
    *filter = (struct template_filter){.name = exchange_query(exchange, "name"),
                                       .author = exchange_query(exchange, "author"),
                                       .type = exchange_query(exchange, "type"),
                                       .source = exchange_query(exchange, "source"),
                                       .status = exchange_query(exchange, "status"),
                                       .wants_starred = call_flag(call, "starred"),
                                       .wants_official = call_flag(call, "official"),
                                       .wants_shared = call_flag(call, "shared")};
    filter->keyword = arena_copy(call->arena, exchange_query(exchange, "keyword"));
    int code = call_words(call, "tag", &filter->tags);
    return code ? code : call_words(call, "category", &filter->categories);
}

/* Every word is among the names. */
static bool has_all(const struct store_names *names, const struct call_words *words)
{
    size_t found = 0;
    for (size_t i = 0; i < words->count; i++)
        for (size_t j = 0; j < names->count; j++)
            if (text_is(words->items[i], names->items[j])) {
                found++;
                break;
            }
    return found == words->count;
}

static bool fits(const struct template_filter *filter, const struct store_template *row)
{
    const char *status = STATUS_NAMES[row->status] ? STATUS_NAMES[row->status] : "private";
    return (!filter->name.length || text_is(filter->name, row->name)) &&
           (!filter->author.length || text_is(filter->author, row->author)) &&
           (!filter->type.length || text_is(filter->type, "job")) &&
           (!filter->source.length || text_is(filter->source, "marketplace")) &&
           (!filter->status.length || text_is(filter->status, status)) &&
           (!filter->wants_starred || row->is_starred) &&
           (!filter->wants_official || row->is_official) &&
           (!filter->wants_shared || row->status == TEMPLATE_APPROVED || row->groups.count) &&
           (strcasestr(row->name, filter->keyword) || strcasestr(row->author, filter->keyword) ||
            strcasestr(row->summary, filter->keyword)) &&
           has_all(&row->tags, &filter->tags) && has_all(&row->categories, &filter->categories);
}

/* What a page is ordered by, the largest first, and what its cursor says of which list it is. */
static const struct {
    const char *name, *list;
} ORDERS[] = {
    {"updated", "templates"}, {"uses", "templates by uses"}, {"stars", "templates by stars"}};

static int order_read(struct call *call, size_t *order)
{
    const struct text asked = exchange_query(call->exchange, "order");
    *order = 0;
    if (!asked.length)
        return 0;
    for (*order = 0; *order < COUNT_OF(ORDERS); ++*order)
        if (text_is(asked, ORDERS[*order].name))
            return 0;
    return call_fail(call, ERR_INVALID, NULL, "order", "order must be updated, uses or stars");
}

static struct text key_of(struct call *call, const struct store_template *row, size_t order)
{
    assert(order < COUNT_OF(ORDERS));
    const int64_t numbers[] = {row->updated_ms, row->use_count, row->star_count};
    return text_of(arena_format(call->arena, "%016llx%016llx%s", (unsigned long long)numbers[order],
                                (unsigned long long)row->updated_ms, row->id));
}

int handle_template_list(struct call *call)
{
    struct template_filter filter;
    struct store_templates templates = {0};
    struct list_page page = {0};
    size_t order = 0;
    int code = order_read(call, &order);
    if (!code)
        code = page_parse(call, &page, ORDERS[order].list, &limits);
    if (!code)
        code = filter_read(call, &filter);
    if (!code)
        code = visible(call, &templates);
    if (code)
        return code;
    struct text *keys = ARENA_ARRAY(call->arena, struct text, templates.count + 1);
    size_t count = 0;
    for (size_t i = 0; i < templates.count; i++) {
        if (!fits(&filter, &templates.items[i]))
            continue;
        templates.items[count] = templates.items[i];
        keys[count] = key_of(call, &templates.items[count], order);
        count++;
    }
    const size_t *rows;
    page.is_cut = true;
    count = page_pick(&page, keys, count, true, &rows);
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t i = 0; i < count; i++) {
        if (i && page_is_full(&page, keys[rows[i - 1]]))
            break;
        struct store_template row; /* with its texts; removed meanwhile: left out */
        code = store_template(call->reader, text_of(templates.items[rows[i]].id),
                              call->caller.auth.user, call->arena, &row, &call->err);
        if (code == 0)
            template_json(&json, &row);
        else if (code != ERR_NOT_FOUND)
            return code;
    }
    page_end(&page, &json);
    return 0;
}

int handle_template(struct call *call)
{
    struct store_template row;
    int code = template_of_path(call, AUTH_READ_TEMPLATE, &row);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    template_json(&json, &row);
    return 0;
}

static int words_of_path(struct call *call, bool wants_tags)
{
    struct store_template row;
    int code = template_of_path(call, AUTH_READ_TEMPLATE, &row);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    template_words_json(&json, wants_tags ? &row.tags : &row.categories);
    return 0;
}

int handle_template_tags(struct call *call)
{
    return words_of_path(call, true);
}

int handle_template_categories(struct call *call)
{
    return words_of_path(call, false);
}

static int words_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Those of all templates that the caller may see, each once, with the number of these. */
static int words_of_all(struct call *call, bool wants_tags)
{
    struct store_templates templates = {0};
    size_t room = 0, count = 0;
    int code = visible(call, &templates);
    if (code)
        return code;
    for (size_t i = 0; i < templates.count; i++)
        room += wants_tags ? templates.items[i].tags.count : templates.items[i].categories.count;
    const char **words = ARENA_ARRAY(call->arena, const char *, room + 1);
    for (size_t i = 0; i < templates.count; i++) {
        const struct store_names *names =
            wants_tags ? &templates.items[i].tags : &templates.items[i].categories;
        for (size_t j = 0; j < names->count; j++)
            words[count++] = names->items[j];
    }
    qsort(words, count, sizeof *words, words_compare);
    struct json_writer json;
    call_json(call, 200, &json);
    json_array(&json);
    for (size_t i = 0, same; i < count; i += same) {
        for (same = 1; i + same < count && strcmp(words[i], words[i + same]) == 0;)
            same++;
        json_object(&json);
        json_key_string(&json, "id", words[i]);
        json_key_string(&json, "name", words[i]);
        json_key_int(&json, "count", (int64_t)same);
        json_object_end(&json);
    }
    json_array_end(&json);
    return 0;
}

int handle_tags_of_templates(struct call *call)
{
    return words_of_all(call, true);
}

int handle_categories_of_templates(struct call *call)
{
    return words_of_all(call, false);
}

/* ---- what bodies hold ---- */

static int line_check(struct call *call, const char *key, struct text line, bool may_have_separator)
{
    if (printable_is_line(line) &&
        (may_have_separator || !(memchr(line.at, ',', line.length) || !line.length)))
        return 0;
    return call_fail(call, ERR_INVALID, NULL, key, "%s must be %s in UTF-8", key,
                     may_have_separator ? "one line" : "words without a comma, each one line");
}

/* A list of names, or of objects that have one, as they are read; each once. */
static int words_read(struct call *call, const struct doc *doc, const char *key,
                      struct store_names *names)
{
    const struct doc *found = doc_get(doc, key);
    if (!found)
        return 0;
    if (found->kind != DOC_LIST)
        return call_fail(call, ERR_INVALID, NULL, key, "%s must be a list", key);
    const char **items = ARENA_ARRAY(call->arena, const char *, found->as.list.count + 1);
    *names = (struct store_names){items, 0};
    for (size_t i = 0; i < found->as.list.count; i++) {
        const struct doc *item = found->as.list.items[i];
        if (item->kind == DOC_MAP)
            item = doc_get(item, "name");
        if (!item || item->kind != DOC_STRING)
            return call_fail(call, ERR_INVALID, NULL, key, "%s must be a list of names", key);
        int code = line_check(call, key, item->as.string, false);
        if (code)
            return code;
        bool is_new = true;
        for (size_t j = 0; j < names->count; j++)
            is_new = is_new && !text_is(item->as.string, items[j]);
        if (is_new)
            items[names->count++] = arena_copy(call->arena, item->as.string);
    }
    return 0;
}

static int string_read(struct call *call, const struct doc *doc, const char *key, bool is_line,
                       const char **value)
{
    struct text text;
    int code = call_body_string(call, doc, key, false, &text);
    if (code || !text.at)
        return code;
    if (memchr(text.at, '\0', text.length))
        return call_fail(call, ERR_INVALID, NULL, key, "%s must be text", key);
    *value = arena_copy(call->arena, text);
    return is_line ? line_check(call, key, text, true) : 0;
}

/* Secrets that are no map, of which nothing is known, are masked in any case. */
static bool has_secrets(const struct spec_parsed *parsed)
{
    if (parsed->secret_count == 0)
        return true;
    for (size_t i = 0; i < parsed->secret_count; i++)
        if (parsed->secrets[i].value[0])
            return true;
    return false;
}

/* A job file that could be submitted; secrets that have a value are masked. */
static int protocol_read(struct call *call, const char *source, struct store_template *row)
{
    cleanup_buf struct buf masked = BUF_INIT;
    struct spec_parsed parsed = {.masked = &masked};
    call->problems = ARENA_NEW(call->arena, struct problems);
    problems_init(call->problems, call->arena);
    cleanup_arena struct arena scratch;
    arena_init(&scratch);
    if (spec_parse(text_of(source), &scratch, &parsed, call->problems) < 0)
        return call_fail(call, ERR_INVALID, "InvalidProtocolError", "protocol",
                         "the job file has %zu errors", call->problems->error_count);
    spec_free(parsed.spec);
    row->protocol =
        arena_copy(call->arena, has_secrets(&parsed) ? buf_as_text(&masked) : text_of(source));
    return 0;
}

/* isPrivate counts first, then isPublic, then the groups, as in the original. */
static int share_read(struct call *call, const struct doc *doc, struct store_template *row)
{
    bool is_private, is_public, has_private, has_public;
    struct store_names groups = {0};
    int code = account_bool(call, doc, "isPrivate", &is_private, &has_private);
    if (!code)
        code = account_bool(call, doc, "isPublic", &is_public, &has_public);
    if (!code)
        code = account_names(call, doc, "groupList", &groups);
    if (code)
        return code;
    if (has_private && is_private) {
        row->is_public = false;
        row->groups = (struct store_names){0};
        return 0;
    }
    if (has_public)
        row->is_public = is_public;
    if (groups.items)
        row->groups = groups;
    if (row->is_public)
        row->groups = (struct store_names){0};
    for (size_t i = 0; i < row->groups.count && !code; i++)
        code = account_group_exists(call, text_of(row->groups.items[i]));
    return code;
}

/* What a template's page reads may be sent back: what cannot be changed must be as it is. */
static int fixed_check(struct call *call, const struct doc *doc, const struct store_template *row)
{
    static const char *const keys[] = {
        "id",          "name",     "author",     "type",      "source",    "summary",
        "description", "protocol", "categories", "tags",      "isPublic",  "isPrivate",
        "groupList",   "status",   "reason",     "reviewer",  "useNumber", "starNumber",
        "starred",     "usedAt",   "createdAt",  "updatedAt", "official"};
    struct text id, author, type;
    int code = call_body_keys(call, doc, keys, COUNT_OF(keys), "the fields of a template");
    if (!code)
        code = call_body_string(call, doc, "id", false, &id);
    if (!code)
        code = call_body_string(call, doc, "author", false, &author);
    if (!code)
        code = call_body_string(call, doc, "type", false, &type);
    if (!code && id.at && !text_is(id, row->id))
        return call_fail(call, ERR_INVALID, NULL, "id", "the id is %s", row->id);
    if (!code && author.at && !text_is(author, row->author))
        return call_fail(call, ERR_FORBIDDEN, NULL, "author", "the author is %s", row->author);
    if (!code && type.at && !text_is(type, "job"))
        return call_fail(call, ERR_INVALID, NULL, "type",
                         "only templates of type job are kept: offer data as a storage");
    return code;
}

static int row_read(struct call *call, const struct doc *doc, struct store_template *row)
{
    const char *source = NULL;
    int code = fixed_check(call, doc, row);
    if (!code)
        code = string_read(call, doc, "name", true, &row->name);
    if (!code)
        code = string_read(call, doc, "summary", true, &row->summary);
    if (!code)
        code = string_read(call, doc, "description", false, &row->description);
    if (!code)
        code = words_read(call, doc, "categories", &row->categories);
    if (!code)
        code = words_read(call, doc, "tags", &row->tags);
    if (!code)
        code = share_read(call, doc, row);
    if (!code)
        code = string_read(call, doc, "protocol", false, &source);
    return !code && source ? protocol_read(call, source, row) : code;
}

/* ---- changes ---- */

static int answered(struct call *call)
{
    const struct template_reply *outcome = call->resume_state;
    if (call->answer_code) {
        call->err = call->answer_err;
        if (call->answer_code == ERR_NOT_FOUND)
            call->error_code = "NoTemplateError";
        else if (call->answer_code == ERR_CONFLICT)
            call->error_code = "ConflictTemplateError";
        return call->answer_code;
    }
    struct json_writer json;
    call_json(call, outcome->status, &json);
    json_object(&json);
    if (outcome->id)
        json_key_string(&json, "id", outcome->id);
    json_key_string(&json, "message", outcome->message);
    json_key_string(&json, "status", outcome->state);
    json_object_end(&json);
    return 0;
}

int template_change_send(struct call *call, const struct store_change *change,
                         const struct template_reply *outcome)
{
    struct service *service = call->api->service;
    struct template_reply *kept = ARENA_NEW(call->arena, struct template_reply);
    struct err err = {0};
    *kept = *outcome;
    call->resume_state = kept;
    struct service_reply reply = call_suspend(call, answered);
    int code = service->change(service->context, change, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

const char *template_state_after(const struct store_change *change)
{
    if (!change->template.row.is_public)
        return NULL;
    return STATUS_NAMES[change->template.by_admin ? TEMPLATE_APPROVED : TEMPLATE_PENDING];
}

/* An id of the caller's choice takes back a removal. */
static int id_read(struct call *call, const struct doc *doc, const char **id)
{
    enum { DIGITS = TOKEN_ID_SIZE - 1 };
    struct text given;
    int code = call_body_string(call, doc, "id", false, &given);
    if (code)
        return code;
    char *made = ARENA_ARRAY(call->arena, char, TOKEN_ID_SIZE);
    token_id_make(made);
    *id = made;
    if (!given.at)
        return 0;
    *id = arena_copy(call->arena, given);
    if (given.length == DIGITS && strspn(*id, "0123456789abcdef") == DIGITS)
        return 0;
    return call_fail(call, ERR_INVALID, NULL, "id", "an id has %d hexadecimal digits", (int)DIGITS);
}

int handle_template_create(struct call *call)
{
    const struct doc *doc;
    struct store_change change = {.kind = CHANGE_TEMPLATE_ADD};
    struct store_template *row = &change.template.row;
    int code = call_body(call, &doc);
    *row = (struct store_template){.author = call->caller.auth.user,
                                   .name = "",
                                   .summary = "",
                                   .description = "",
                                   .reviewer = call->caller.auth.user,
                                   .created_ms = clock_unix_ms()};
    row->updated_ms = row->created_ms;
    if (!code)
        code = id_read(call, doc, &row->id);
    if (!code)
        code = row_read(call, doc, row);
    if (!code && !row->name[0])
        code = call_fail(call, ERR_INVALID, NULL, "name", "name is missing");
    if (!code && !row->protocol)
        code = call_fail(call, ERR_INVALID, NULL, "protocol", "protocol, the job file, is missing");
    if (code)
        return code;
    audit_subject(call, "template",
                  text_of(arena_format(call->arena, "%s~%s", row->author, row->name)));
    change.template.by_admin = call_can(call, AUTH_ADMINISTER, NULL);
    return template_change_send(call, &change,
                                &(struct template_reply){.status = 201,
                                                         .message = "the template is saved",
                                                         .id = row->id,
                                                         .state = template_state_after(&change)});
}

int template_seen_check(struct call *call, const struct doc *doc, const struct store_template *row,
                        int64_t *seen_ms)
{
    char now[UTC_SIZE];
    struct text seen;
    int code = call_body_string(call, doc, "updatedAt", false, &seen);
    *seen_ms = 0;
    if (code || !seen.at)
        return code;
    *seen_ms = row->updated_ms;
    if (text_is(seen, utc_instant(row->updated_ms, now)))
        return 0;
    return call_fail(call, ERR_CONFLICT, "ConflictTemplateError", "updatedAt",
                     "it was changed at %s: look at it again", now);
}

int template_set_send(struct call *call, struct store_change *change, const char *message)
{
    struct store_template *row = &change->template.row;
    assert(change->kind == CHANGE_TEMPLATE_SET);
    /* what is not named is written as it was read: not over another change. The clock may stand. */
    change->template.seen_ms = row->updated_ms;
    row->updated_ms = clock_unix_ms();
    if (row->updated_ms <= change->template.seen_ms)
        row->updated_ms = change->template.seen_ms + 1;
    row->reviewer = call->caller.auth.user;
    change->template.user = call->caller.auth.user;
    change->template.by_admin = call_can(call, AUTH_ADMINISTER, NULL);
    return template_change_send(call, change,
                                &(struct template_reply){.status = 200,
                                                         .message = message,
                                                         .state = template_state_after(change)});
}

int handle_template_update(struct call *call)
{
    const struct doc *doc;
    struct store_change change = {.kind = CHANGE_TEMPLATE_SET};
    struct store_template *row = &change.template.row;
    int code = template_of_path(call, AUTH_EDIT_TEMPLATE, row);
    int64_t seen_ms;
    if (!code)
        code = call_body(call, &doc);
    if (!code)
        code = template_seen_check(call, doc, row, &seen_ms);
    if (!code)
        code = row_read(call, doc, row);
    if (code)
        return code;
    return template_set_send(call, &change, "updated");
}

int handle_template_remove(struct call *call)
{
    struct store_change change = {.kind = CHANGE_TEMPLATE_REMOVE};
    int code = template_of_path(call, AUTH_EDIT_TEMPLATE, &change.template.row);
    if (code)
        return code;
    return template_change_send(call, &change,
                                &(struct template_reply){.status = 200, .message = "deleted"});
}

int handle_template_review(struct call *call)
{
    static const char *const keys[] = {"status", "reason", "updatedAt"};
    const struct doc *doc;
    struct text status;
    int64_t seen_ms;
    struct store_change change = {.kind = CHANGE_TEMPLATE_REVIEW};
    struct store_template *row = &change.template.row;
    int code = template_of_path(call, AUTH_READ_TEMPLATE, row);
    row->reason = "";
    if (!code)
        code = call_body_of(call, keys, COUNT_OF(keys), "status, reason and updatedAt", &doc);
    if (!code)
        code = call_body_string(call, doc, "status", true, &status);
    if (!code)
        code = string_read(call, doc, "reason", true, &row->reason);
    if (!code)
        code = template_seen_check(call, doc, row, &seen_ms);
    if (code)
        return code;
    row->updated_ms = seen_ms;
    if (text_is(status, "approved"))
        row->status = TEMPLATE_APPROVED;
    else if (text_is(status, "rejected"))
        row->status = TEMPLATE_REJECTED;
    else
        return call_fail(call, ERR_INVALID, NULL, "status", "status must be approved or rejected");
    if (row->status == TEMPLATE_REJECTED && !row->reason[0])
        return call_fail(call, ERR_INVALID, NULL, "reason",
                         "reason is missing: its author reads why it is rejected");
    row->reviewer = call->caller.auth.user;
    return template_change_send(call, &change,
                                &(struct template_reply){.status = 200,
                                                         .message = "reviewed",
                                                         .state = STATUS_NAMES[row->status]});
}

int handle_template_use(struct call *call)
{
    struct store_change change = {.kind = CHANGE_TEMPLATE_USE};
    int code = template_of_path(call, AUTH_READ_TEMPLATE, &change.template.row);
    if (code)
        return code;
    change.template.now_ms = clock_unix_ms();
    return template_change_send(call, &change,
                                &(struct template_reply){.status = 200, .message = "counted"});
}

static int star(struct call *call, bool is_starred)
{
    struct store_change change = {.kind = CHANGE_TEMPLATE_STAR};
    int code = template_of_path(call, AUTH_READ_TEMPLATE, &change.template.row);
    if (code)
        return code;
    change.template.user = call->caller.auth.user;
    change.template.is_starred = is_starred;
    return template_change_send(
        call, &change,
        &(struct template_reply){.status = 200, .message = is_starred ? "starred" : "not starred"});
}

int handle_template_star(struct call *call)
{
    return star(call, true);
}

int handle_template_unstar(struct call *call)
{
    return star(call, false);
}
