/* The configuration in force: every key once, where each value comes from, and no password.
 *
 * Covers: src/server/config_settings.c */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "doc/shape.h"
#include "server/config.h"
#include "server/config_shape.h"
#include "sys/file.h"

struct told {
    struct arena arena;
    struct buf text;
    const struct doc *settings; /* by key, in the order of the reply */
};

static struct server_config *config_of(const char *text)
{
    struct server_config *config;
    struct buf report = BUF_INIT;
    struct err err;
    char path[100];
    snprintf(path, sizeof path, "%s/c.yaml", in_folder(""));
    assert_int_equal(file_write(path, text_of(text), 0600, &err), 0);
    if (server_config_read(path, &config, &report, &err) < 0)
        fail_msg("%s", buf_cstr(&report));
    buf_release(&report);
    return config;
}

static void told_read(struct told *told, const struct server_config *first,
                      const struct server_config *now)
{
    struct problems problems;
    *told = (struct told){.text = BUF_INIT};
    arena_init(&told->arena);
    problems_init(&problems, &told->arena);
    server_config_settings(first, now, &told->text);
    const struct doc *reply =
        doc_parse(buf_as_text(&told->text), DOC_JSON, &told->arena, &problems);
    assert_int_equal(problems.error_count, 0);
    told->settings = doc_get_list(reply, "settings");
    problems_release(&problems);
}

static void told_release(struct told *told)
{
    buf_release(&told->text);
    arena_release(&told->arena);
}

static const struct doc *row_find(const struct told *told, const char *key)
{
    const struct doc *found = NULL;
    for (size_t i = 0; i < doc_count(told->settings); i++) {
        const struct doc *row = told->settings->as.list.items[i];
        if (!text_is(doc_get_text(row, "key", ""), key))
            continue;
        if (found)
            fail_msg("%s is told twice", key);
        found = row;
    }
    return found;
}

static void assert_row(const struct told *told, const char *key, const char *source, int line)
{
    const struct doc *row = row_find(told, key);
    if (!row)
        fail_msg("%s is not told", key);
    if (!text_is(doc_get_text(row, "source", ""), source) || doc_get_int(row, "line", 0) != line)
        fail_msg("%s: is said to be by %.*s, line %d", key,
                 TEXT_ARG(doc_get_text(row, "source", "")), (int)doc_get_int(row, "line", 0));
}

static void assert_shape(const struct told *told, const struct shape *shape, const char *path)
{
    char key[200];
    for (size_t i = 0; i < shape->count; i++) {
        const struct field *field = &shape->fields[i];
        snprintf(key, sizeof key, "%s%s", path, field->name);
        if (strcmp(key, "engines") == 0)
            continue;
        if (field->kind == FIELD_MAP || field->kind == FIELD_MAP_LIST) {
            strcat(key, field->kind == FIELD_MAP ? "." : "[0].");
            assert_shape(told, field->shape, key);
        } else if (!row_find(told, key)) {
            fail_msg("%s is not told", key);
        }
    }
}

/* Of sections that say nothing unless they are used, and of all kinds of engines. */
static const char everything[] =
    "api: {oidc: {issuer: 'https://i', clientId: c, publicUrl: 'https://p'},\n"
    "  ldap: {url: 'ldaps://h', base: b}}\n"
    "storages: [{name: s, directory: /s}]\n"
    "notifications: {smtp: {url: 'smtps://h', from: a@b}, webhooks: [{name: n, url: "
    "'https://h'}]}\n"
    "portal: {images: [{name: i, uri: u}], plugins: [{title: t, uri: 'http://h/p.js'}]}\n"
    "engines: [{kind: local}, {kind: kubernetes, kubernetes: {initImage: i}}, {kind: fake}]\n";

static void every_key_is_told(void **state)
{
    (void)state;
    struct server_config *config = config_of(everything);
    struct told told;
    told_read(&told, config, config);
    const struct field *engine = NULL;
    for (size_t i = 0; i < config_shape.count; i++) {
        const struct field *field = &config_shape.fields[i];
        if (strcmp(field->name, "engine") == 0)
            engine = field;
    }
    assert_non_null(engine);
    /* an engine says what its kind uses: each key is one of some kind's */
    for (size_t i = 0; i < engine->shape->count; i++) {
        const struct field *field = &engine->shape->fields[i];
        bool is_told = false;
        for (size_t n = 0; n < 3; n++) {
            char path[100];
            snprintf(path, sizeof path, "engines[%zu].%s%s", n, field->name,
                     field->kind == FIELD_MAP ? "." : "");
            if (field->kind != FIELD_MAP) {
                is_told |= row_find(&told, path) != NULL;
                continue;
            }
            char first[200];
            snprintf(first, sizeof first, "%s%s", path, field->shape->fields[0].name);
            if (!row_find(&told, first))
                continue;
            assert_shape(&told, field->shape, path);
            is_told = true;
        }
        if (!is_told)
            fail_msg("engine.%s is not told", field->name);
    }
    struct field others[40];
    size_t count = 0;
    for (size_t i = 0; i < config_shape.count; i++)
        if (&config_shape.fields[i] != engine)
            others[count++] = config_shape.fields[i];
    assert_shape(&told, &(struct shape){.fields = others, .count = count}, "");
    assert_row(&told, "engines[1].kubernetes.initImage", "file", 6);
    told_release(&told);
    server_config_free(config);
}

static void each_value_says_where_it_comes_from(void **state)
{
    (void)state;
    struct server_config *config = config_of("adminName: root\n"
                                             "api:\n"
                                             "  requestsMax: 50\n"
                                             "  origins: [a, b]\n"
                                             "engine: {kind: fake}\n");
    struct told told;
    config->is_listen_given = config->is_data_given = true;
    config->listen = "127.0.0.1:1";
    config->data_directory = "/d";
    told_read(&told, config, config);
    assert_row(&told, "adminName", "file", 1);
    assert_row(&told, "api.requestsMax", "file", 3);
    assert_row(&told, "engine.kind", "file", 5);
    assert_row(&told, "retention.jobDays", "default", 0);
    assert_row(&told, "api.listen", "command line", 0);
    assert_row(&told, "dataDirectory", "command line", 0);
    const char *said[] = {
        "{\"key\":\"api.requestsMax\",\"source\":\"file\",\"line\":3,\"help\":\"Requests that may "
        "wait "
        "for the core; more get 429.\",\"value\":50}",
        "\"value\":[\"a\",\"b\"]",
        "\"key\":\"retention.jobDays\",\"source\":\"default\",\"help\":\"Jobs that ended before "
        "are "
        "removed; 0: never.\",\"value\":365",
        "\"needRestart\":[]",
        "\"value\":\"/d/socket/api\"",
    };
    for (size_t i = 0; i < COUNT_OF(said); i++)
        if (!strstr(buf_cstr(&told.text), said[i]))
            fail_msg("%s is not in %s", said[i], buf_cstr(&told.text));
    told_release(&told);
    server_config_free(config);
}

static void what_needs_a_restart_is_told(void **state)
{
    (void)state;
    struct server_config *first = config_of("engine: {kind: fake}\n");
    struct server_config *now = config_of(
        "api: {socket: none, threads: 3}\nscheduling: {portFirst: 12345}\nengine: {kind: fake}\n");
    struct told told;
    told_read(&told, first, now);
    assert_non_null(
        strstr(buf_cstr(&told.text), "\"needRestart\":[\"api.socket\",\"api.threads\"]"));
    told_release(&told);
    server_config_free(first);
    server_config_free(now);
}

static void no_password_is_told(void **state)
{
    static const struct {
        const char *address, *shown;
    } CASES[] = {
        {"postgres://u:secret@h:5432/d", "\"postgres://u:******@h:5432/d\""},
        {"postgres://u:se@cret@h/d", "\"postgres://u:******@h/d\""},
        {"postgres://u@h/d?password=secret", "\"postgres://u@h/d?******\""},
        {"postgres://u:se?cret@h/d?x=1", "\"postgres://u:******@h/d?******\""},
        {"postgres://h?password=secret@d", "\"postgres://h:******@d\""},
        {"postgres://h/d", "\"postgres://h/d\""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        char text[200];
        snprintf(text, sizeof text, "database: '%s'\n", CASES[i].address);
        struct server_config *config = config_of(text);
        struct told told;
        told_read(&told, config, config);
        assert_null(strstr(buf_cstr(&told.text), "cret"));
        if (!strstr(buf_cstr(&told.text), CASES[i].shown))
            fail_msg("%s is not in %s", CASES[i].shown, buf_cstr(&told.text));
        told_release(&told);
        server_config_free(config);
    }
}

static void without_a_file_all_is_default(void **state)
{
    (void)state;
    struct server_config *config;
    struct buf report = BUF_INIT;
    struct err err;
    struct told told;
    assert_int_equal(server_config_read(NULL, &config, &report, &err), 0);
    told_read(&told, config, config);
    assert_null(strstr(buf_cstr(&told.text), "\"source\":\"file\""));
    assert_non_null(strstr(buf_cstr(&told.text), "{\"file\":null,"));
    assert_row(&told, "engine.kind", "default", 0);
    told_release(&told);
    server_config_free(config);
    buf_release(&report);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_key_is_told),
    cmocka_unit_test(each_value_says_where_it_comes_from),
    cmocka_unit_test(what_needs_a_restart_is_told),
    cmocka_unit_test(no_password_is_told),
    cmocka_unit_test(without_a_file_all_is_default),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
