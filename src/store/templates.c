/* templates.c — job files that users keep to begin others from, and share. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>
#include <string.h>

#define HEAD(C)                                                                                                         \
    C(id)                                                                                                               \
    "," C(author) "," C(name) "," C(summary) "," C(categories) "," C(tags) "," C(shared_groups) "," C(is_public) "," C( \
        status) "," C(reason) "," C(reviewer) "," C(use_count) "," C(used_ms) "," C(created_ms) "," C(updated_ms) "," C(is_official)
#define COLUMNS(C) HEAD(C) "," C(description) "," C(protocol)
/* of `t`, with the number of stars, and whether one of them is by ?1 */
#define T(column) "t." #column
#define STARS                                                                                      \
    "(SELECT count(*) FROM template_stars s WHERE s.template = t.id), "                            \
    "(SELECT count(*) FROM template_stars s WHERE s.template = t.id AND s.user_name = ?1)"

static const char insert[] = INSERT_INTO("templates", COLUMNS);
static const char update[] =
    "UPDATE templates SET name = ?2, summary = ?3, description = ?4, protocol = ?5, categories = "
    "?6, tags = ?7, shared_groups = ?8, is_public = ?9, status = ?10, reason = '', reviewer = ?11, "
    "updated_ms = ?12, is_official = is_official * ?13 WHERE id = ?1";
static const char review[] = "UPDATE templates SET status = ?2, reason = ?3, reviewer = ?4, "
                             "is_official = is_official * ?5 WHERE id = ?1";
static const char set_official[] = "UPDATE templates SET is_official = ?2 WHERE id = ?1";
static const char use[] =
    "UPDATE templates SET use_count = use_count + 1, used_ms = ?2 WHERE id = ?1";
static const char delete[] = "DELETE FROM templates WHERE id = ?";
static const char delete_stars[] = "DELETE FROM template_stars WHERE template = ?";
static const char delete_author[] = "DELETE FROM templates WHERE author = ?";
static const char delete_author_stars[] =
    "DELETE FROM template_stars WHERE user_name = ?1 OR template IN "
    "(SELECT id FROM templates WHERE author = ?1)";
/* ?1: a new line, ?2: the group's name between two of them */
static const char delete_group[] =
    "UPDATE templates SET shared_groups = substr(replace(?1 || shared_groups, ?2, ?1), 2) WHERE "
    "replace(?1 || shared_groups, ?2, ?1) <> ?1 || shared_groups";
static const char put_star[] =
    "INSERT INTO template_stars (template, user_name) VALUES (?,?) ON CONFLICT DO NOTHING";
static const char delete_star[] = "DELETE FROM template_stars WHERE template = ? AND user_name = ?";
static const char count_all[] = "SELECT count(*) FROM templates";
static const char count_author[] = "SELECT count(*) FROM templates WHERE author = ?";
static const char count_id[] = "SELECT count(*) FROM templates WHERE id = ?";
/* another one of this author and name */
static const char count_name[] =
    "SELECT count(*) FROM templates WHERE author = ? AND name = ? AND id <> ?";
static const char select_id[] = "SELECT " COLUMNS(T) "," STARS " FROM templates t WHERE t.id = ?2";
static const char select_name[] =
    "SELECT " COLUMNS(T) "," STARS " FROM templates t WHERE t.author = ?2 AND t.name = ?3";
static const char select_all[] = "SELECT " HEAD(T) ",'',''," STARS " FROM templates t";

/* ---- rows ---- */

static bool is_before(const struct store_names *names, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(names->items[i], names->items[at]) == 0)
            return true;
    return false;
}

void template_words_put(struct sql *sql, const struct store_names *names, struct buf *lines)
{
    assert(lines->length == 0);
    for (size_t i = 0; i < names->count; i++) {
        if (is_before(names, i))
            continue;
        buf_string(lines, names->items[i]);
        buf_string(lines, "\n");
    }
    sql_put_string(sql, buf_cstr(lines));
}

struct store_names template_words_get(struct sql *sql, struct arena *arena)
{
    struct text rest = sql_text(sql, arena);
    size_t room = 0;
    for (size_t i = 0; i < rest.length; i++)
        room += rest.at[i] == '\n';
    const char **items = ARENA_ARRAY(arena, const char *, room + 1);
    size_t count = 0;
    while (rest.length)
        items[count++] = arena_copy(arena, text_cut(&rest, '\n'));
    return (struct store_names){items, count};
}

static void row_get(struct sql *sql, struct store_template *row, struct arena *arena)
{
    *row = (struct store_template){.id = sql_string(sql, arena)};
    row->author = sql_string(sql, arena);
    row->name = sql_string(sql, arena);
    row->summary = sql_string(sql, arena);
    row->categories = template_words_get(sql, arena);
    row->tags = template_words_get(sql, arena);
    row->groups = template_words_get(sql, arena);
    row->is_public = sql_bool(sql);
    row->status = (enum template_status)sql_int(sql);
    row->reason = sql_string(sql, arena);
    row->reviewer = sql_string(sql, arena);
    row->use_count = sql_int(sql);
    row->used_ms = sql_int(sql);
    row->created_ms = sql_int(sql);
    row->updated_ms = sql_int(sql);
    row->is_official = sql_bool(sql);
    row->description = sql_string(sql, arena);
    row->protocol = sql_string(sql, arena);
    row->star_count = sql_int(sql);
    row->is_starred = sql_bool(sql);
}

static int row_read(struct sql *sql, struct arena *arena, struct store_template *row,
                    struct err *err)
{
    int code = sql_next(sql, err);
    if (code <= 0)
        return code;
    row_get(sql, row, arena);
    sql_done(sql);
    return 1;
}

int template_read(struct session *session, const char *id, struct arena *arena,
                  struct store_template *row, struct err *err)
{
    assert(id);
    struct sql sql = sql_of(session, select_id);
    sql_put_string(&sql, "");
    sql_put_string(&sql, id);
    return row_read(&sql, arena, row, err);
}

/* ---- changes ---- */

static int words_check(struct store_change *change, const char *what,
                       const struct store_names *names)
{
    if (names->count > STORE_TEMPLATE_WORDS_MAX)
        return REFUSE(change, ERR_TOO_BIG, "a template has at most %d %s", STORE_TEMPLATE_WORDS_MAX,
                      what);
    for (size_t i = 0; i < names->count; i++)
        if (!names->items[i][0] || strlen(names->items[i]) > STORE_TEMPLATE_WORD_MAX ||
            strchr(names->items[i], '\n'))
            return REFUSE(change, ERR_INVALID, "each of the %s has 1 to %d bytes in one line", what,
                          STORE_TEMPLATE_WORD_MAX);
    return 0;
}

static int text_check(struct store_change *change, const char *what, const char *text, size_t most)
{
    return strlen(text) > most
               ? REFUSE(change, ERR_TOO_BIG, "a template's %s has at most %zu bytes", what, most)
               : 0;
}

/* What no row takes: change->code says whether. */
static int row_check(struct store_change *change)
{
    const struct store_template *row = &change->template.row;
    assert(row->id && row->id[0] && row->protocol);
    const size_t length = strlen(row->name);
    if (length == 0 || length > STORE_TEMPLATE_NAME_MAX)
        return REFUSE(change, ERR_INVALID, "a template's name has 1 to %d bytes",
                      STORE_TEMPLATE_NAME_MAX);
    text_check(change, "summary", row->summary, STORE_TEMPLATE_SUMMARY_MAX);
    if (change->code == 0)
        text_check(change, "description", row->description, STORE_TEMPLATE_DESCRIPTION_MAX);
    if (change->code == 0)
        text_check(change, "job file", row->protocol, STORE_TEMPLATE_PROTOCOL_MAX);
    if (change->code == 0)
        words_check(change, "categories", &row->categories);
    if (change->code == 0)
        words_check(change, "tags", &row->tags);
    return change->code == 0 ? words_check(change, "groups", &row->groups) : 0;
}

static int name_check(struct store *store, struct store_change *change, struct err *err)
{
    const struct store_template *row = &change->template.row;
    struct sql sql = sql_of(&store->session, count_name);
    int64_t count;
    sql_put_string(&sql, row->author);
    sql_put_string(&sql, row->name);
    sql_put_string(&sql, row->id);
    int code = sql_number(&sql, &count, err);
    if (code == 0 && count > 0)
        return REFUSE(change, ERR_CONFLICT, "%.100s has a template %.100s already", row->author,
                      row->name);
    return code;
}

static int number_of(struct store *store, const char *text, const char *parameter, int64_t *count,
                     struct err *err)
{
    struct sql sql = sql_of(&store->session, text);
    if (parameter)
        sql_put_string(&sql, parameter);
    return sql_number(&sql, count, err);
}

/* Is there room for one more, of this id, of an author who is there? */
static int room_check(struct store *store, struct store_change *change, struct err *err)
{
    const struct store_template *row = &change->template.row;
    int64_t all = 0, own = 0, same = 0;
    bool exists = false;
    int code = user_exists(store, row->author, &exists, err);
    if (code == 0)
        code = number_of(store, count_all, NULL, &all, err);
    if (code == 0)
        code = number_of(store, count_author, row->author, &own, err);
    if (code == 0)
        code = number_of(store, count_id, row->id, &same, err);
    if (code < 0)
        return code;
    if (!exists)
        return REFUSE(change, ERR_NOT_FOUND, "no user %.100s", row->author);
    if (same)
        return REFUSE(change, ERR_CONFLICT, "there is a template of this id already");
    if (all >= STORE_TEMPLATES_MAX)
        return REFUSE(change, ERR_TOO_BIG, "there are %d templates already: remove some first",
                      STORE_TEMPLATES_MAX);
    if (own >= STORE_USER_TEMPLATES_MAX)
        return REFUSE(change, ERR_TOO_BIG, "%.100s has %d templates already: remove one first",
                      row->author, STORE_USER_TEMPLATES_MAX);
    return 0;
}

/* Of a template that was made or changed: an administrator's own needs nobody else. */
static enum template_status status_of(const struct store_change *change)
{
    if (!change->template.row.is_public)
        return TEMPLATE_PRIVATE;
    return change->template.by_admin ? TEMPLATE_APPROVED : TEMPLATE_PENDING;
}

static const char *reviewer_of(const struct store_change *change)
{
    const struct store_template *row = &change->template.row;
    return status_of(change) == TEMPLATE_APPROVED && row->reviewer ? row->reviewer : "";
}

static const char *editor_of(const struct store_change *change)
{
    return change->template.user ? change->template.user : change->template.row.author;
}

static int row_insert(struct store *store, const struct store_change *change, struct err *err)
{
    const struct store_template *row = &change->template.row;
    cleanup_buf struct buf categories = BUF_INIT, tags = BUF_INIT, groups = BUF_INIT;
    struct sql sql = sql_of(&store->session, insert);
    sql_put_string(&sql, row->id);
    sql_put_string(&sql, row->author);
    sql_put_string(&sql, row->name);
    sql_put_string(&sql, row->summary);
    template_words_put(&sql, &row->categories, &categories);
    template_words_put(&sql, &row->tags, &tags);
    template_words_put(&sql, &row->groups, &groups);
    sql_put_int(&sql, row->is_public);
    sql_put_int(&sql, status_of(change));
    sql_put_string(&sql, "");
    sql_put_string(&sql, reviewer_of(change));
    sql_put_int(&sql, 0);
    sql_put_int(&sql, 0);
    sql_put_int(&sql, row->created_ms);
    sql_put_int(&sql, row->updated_ms);
    sql_put_int(&sql, false); /* official */
    sql_put_string(&sql, row->description);
    sql_put_string(&sql, row->protocol);
    return sql_run(&sql, NULL, err);
}

int template_add(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_TEMPLATE_ADD);
    int code = row_check(change);
    if (code == 0 && change->code == 0)
        code = room_check(store, change, err);
    if (code == 0 && change->code == 0)
        code = name_check(store, change, err);
    if (code == 0 && change->code == 0)
        code = row_insert(store, change, err);
    return code == 0 && change->code == 0
               ? template_version_add(store, &change->template.row, editor_of(change), err)
               : code;
}

static int row_update(struct store *store, const struct store_change *change, struct err *err)
{
    const struct store_template *row = &change->template.row;
    cleanup_buf struct buf categories = BUF_INIT, tags = BUF_INIT, groups = BUF_INIT;
    struct sql sql = sql_of(&store->session, update);
    sql_put_string(&sql, row->id);
    sql_put_string(&sql, row->name);
    sql_put_string(&sql, row->summary);
    sql_put_string(&sql, row->description);
    sql_put_string(&sql, row->protocol);
    template_words_put(&sql, &row->categories, &categories);
    template_words_put(&sql, &row->tags, &tags);
    template_words_put(&sql, &row->groups, &groups);
    sql_put_int(&sql, row->is_public);
    sql_put_int(&sql, status_of(change));
    sql_put_string(&sql, reviewer_of(change));
    sql_put_int(&sql, row->updated_ms);
    sql_put_int(&sql, status_of(change) == TEMPLATE_APPROVED);
    return sql_run_one(&sql, err);
}

static bool is_same(const struct store_names *a, const struct store_names *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return true;
}

/* Does it say the same, whatever its name is and whoever sees it? */
static bool says_the_same(const struct store_template *a, const struct store_template *b)
{
    assert(a->summary && a->description && a->protocol);
    return strcmp(a->summary, b->summary) == 0 && strcmp(a->description, b->description) == 0 &&
           strcmp(a->protocol, b->protocol) == 0 && is_same(&a->categories, &b->categories) &&
           is_same(&a->tags, &b->tags);
}

/* The row as it is; change->code says when there is none. */
static int row_find(struct store *store, struct store_change *change, struct arena *arena,
                    struct store_template *row, struct err *err)
{
    int code = template_read(&store->session, change->template.row.id, arena, row, err);
    if (code == 0)
        return REFUSE(change, ERR_NOT_FOUND, "there is no such template");
    return code < 0 ? code : 0;
}

int template_set(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_TEMPLATE_SET);
    struct store_template now = {0};
    cleanup_arena struct arena arena;
    arena_init(&arena);
    int code = row_find(store, change, &arena, &now, err);
    const int64_t seen_ms = change->template.seen_ms;
    if (code == 0 && change->code == 0 && seen_ms && seen_ms != now.updated_ms)
        return REFUSE(change, ERR_CONFLICT, "it was changed meanwhile: look at it again");
    if (code == 0 && change->code == 0) {
        change->template.row.author = now.author;
        code = row_check(change);
    }
    if (code == 0 && change->code == 0)
        code = name_check(store, change, err);
    if (code == 0 && change->code == 0)
        code = row_update(store, change, err);
    if (code == 0 && change->code == 0 && !says_the_same(&now, &change->template.row))
        code = template_version_add(store, &change->template.row, editor_of(change), err);
    change->template.row.author = NULL; /* it was the arena's */
    return code;
}

int template_remove(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_TEMPLATE_REMOVE);
    int changed = 0;
    struct sql sql = sql_of(&store->session, delete);
    sql_put_string(&sql, change->template.row.id);
    int code = sql_run(&sql, &changed, err);
    if (code == 0 && !changed)
        return REFUSE(change, ERR_NOT_FOUND, "there is no such template");
    if (code < 0)
        return code;
    sql = sql_of(&store->session, delete_stars);
    sql_put_string(&sql, change->template.row.id);
    code = sql_run(&sql, NULL, err);
    return code ? code : template_versions_remove(store, change->template.row.id, err);
}

int templates_remove(struct store *store, const char *user, struct err *err)
{
    assert(user && *user);
    struct sql sql = sql_of(&store->session, delete_author_stars);
    sql_put_string(&sql, user);
    int code = sql_run(&sql, NULL, err);
    if (code == 0)
        code = template_versions_remove_author(store, user, err);
    if (code < 0)
        return code;
    sql = sql_of(&store->session, delete_author);
    sql_put_string(&sql, user);
    return sql_run(&sql, NULL, err);
}

int templates_unshare(struct store *store, const char *group, struct err *err)
{
    assert(group && *group);
    cleanup_buf struct buf line = BUF_INIT;
    buf_format(&line, "\n%s\n", group);
    struct sql sql = sql_of(&store->session, delete_group);
    sql_put_string(&sql, "\n");
    sql_put_string(&sql, buf_cstr(&line));
    return sql_run(&sql, NULL, err);
}

int template_review(struct store *store, struct store_change *change, struct err *err)
{
    const struct store_template *asked = &change->template.row;
    assert(asked->status == TEMPLATE_APPROVED || asked->status == TEMPLATE_REJECTED);
    struct store_template now = {0};
    cleanup_arena struct arena arena;
    arena_init(&arena);
    text_check(change, "reason", asked->reason, STORE_TEMPLATE_SUMMARY_MAX);
    int code = change->code == 0 ? row_find(store, change, &arena, &now, err) : 0;
    if (code < 0 || change->code < 0)
        return code;
    if (!now.is_public)
        return REFUSE(change, ERR_CONFLICT, "its author does not share it with everyone");
    if (asked->updated_ms && asked->updated_ms != now.updated_ms)
        return REFUSE(change, ERR_CONFLICT, "it was changed meanwhile: look at it again");
    struct sql sql = sql_of(&store->session, review);
    sql_put_string(&sql, asked->id);
    sql_put_int(&sql, asked->status);
    sql_put_string(&sql, asked->reason);
    sql_put_string(&sql, asked->reviewer);
    sql_put_int(&sql, asked->status == TEMPLATE_APPROVED);
    return sql_run_one(&sql, err);
}

int template_official(struct store *store, struct store_change *change, struct err *err)
{
    const struct store_template *asked = &change->template.row;
    assert(change->kind == CHANGE_TEMPLATE_OFFICIAL);
    struct store_template now = {0};
    cleanup_arena struct arena arena;
    arena_init(&arena);
    int code = row_find(store, change, &arena, &now, err);
    if (code < 0 || change->code < 0)
        return code;
    if (asked->is_official && now.status != TEMPLATE_APPROVED)
        return REFUSE(change, ERR_CONFLICT, "only what everyone sees can be official");
    if (asked->updated_ms && asked->updated_ms != now.updated_ms)
        return REFUSE(change, ERR_CONFLICT, "it was changed meanwhile: look at it again");
    struct sql sql = sql_of(&store->session, set_official);
    sql_put_string(&sql, asked->id);
    sql_put_int(&sql, asked->is_official);
    return sql_run_one(&sql, err);
}

int template_use(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_TEMPLATE_USE);
    int changed = 0;
    struct sql sql = sql_of(&store->session, use);
    sql_put_string(&sql, change->template.row.id);
    sql_put_int(&sql, change->template.now_ms);
    int code = sql_run(&sql, &changed, err);
    if (code == 0 && !changed)
        return REFUSE(change, ERR_NOT_FOUND, "there is no such template");
    return code;
}

int template_star(struct store *store, struct store_change *change, struct err *err)
{
    assert(change->kind == CHANGE_TEMPLATE_STAR && change->template.user);
    int64_t count = 0;
    int code = number_of(store, count_id, change->template.row.id, &count, err);
    if (code == 0 && !count)
        return REFUSE(change, ERR_NOT_FOUND, "there is no such template");
    if (code < 0)
        return code;
    struct sql sql = sql_of(&store->session, change->template.is_starred ? put_star : delete_star);
    sql_put_string(&sql, change->template.row.id);
    sql_put_string(&sql, change->template.user);
    return sql_run(&sql, NULL, err);
}

/* ---- reads ---- */

int store_template(struct store_reader *reader, struct text name, const char *user,
                   struct arena *arena, struct store_template *row, struct err *err)
{
    struct text rest = name, author = text_cut(&rest, '~');
    const bool is_name = author.length < name.length;
    struct sql sql = sql_of(&reader->session, is_name ? select_name : select_id);
    sql_put_string(&sql, user);
    sql_put_text(&sql, author);
    if (is_name)
        sql_put_text(&sql, rest);
    int code = row_read(&sql, arena, row, err);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "there is no template %.*s",
                        (int)(name.length > 140 ? 140 : name.length), name.at);
    return code < 0 ? code : 0;
}

int store_templates(struct store_reader *reader, const char *user, struct arena *arena,
                    struct store_templates *templates, struct err *err)
{
    struct {
        struct store_template *items;
        size_t count, room;
    } list = {0};
    struct sql sql = sql_of(&reader->session, select_all);
    int code;
    sql_put_string(&sql, user);
    while ((code = sql_next(&sql, err)) > 0)
        row_get(&sql, ARRAY_ADD(&list), arena);
    LIST_HAND_OVER(&list, arena, templates);
    return code;
}
