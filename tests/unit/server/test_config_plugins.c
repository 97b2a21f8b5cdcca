/* The configuration's portal.plugins: what is read, what is refused, what wants a restart. */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/config.h"
#include "sys/file.h"

static int read_config(const char *text, struct server_config **config, struct buf *report)
{
    char path[100];
    struct err err;
    snprintf(path, sizeof path, "%s/c.yaml", in_folder(""));
    buf_clear(report);
    assert_int_equal(file_write(path, text_of(text), 0600, &err), 0);
    return server_config_read(path, config, report, &err);
}

static const char MARKET[] =
    "portal: {plugins: [{id: market, title: Marketplace, "
    "uri: 'https://plugins.lab:8443/market.js?nfs=a', scope: usual, "
    "origins: ['http://api.lab'], config: {repo: Microsoft/pai, pages: [1, 2]}}, "
    "{title: Plain, uri: 'http://h/p.js'}]}\n";

static void plugins_are_read(void **state)
{
    (void)state;
    struct server_config *config;
    cleanup_buf struct buf report = BUF_INIT;
    assert_int_equal(read_config(MARKET, &config, &report), 0);
    assert_int_equal(config->plugins.count, 2);
    const struct portal_plugin *market = &config->plugins.items[0], *plain = market + 1;
    assert_string_equal(market->id, "market");
    assert_string_equal(market->title, "Marketplace");
    assert_string_equal(market->uri, "https://plugins.lab:8443/market.js?nfs=a");
    assert_string_equal(market->origin, "https://plugins.lab:8443");
    assert_int_equal(market->origin_count, 1);
    assert_string_equal(market->origins[0], "http://api.lab");
    assert_string_equal(market->scope, "usual");
    assert_string_equal(market->config_json, "{\"repo\":\"Microsoft/pai\",\"pages\":[1,2]}");
    assert_string_equal(plain->id, "");
    assert_string_equal(plain->scope, "submit");
    assert_string_equal(plain->config_json, "{}");
    assert_int_equal(plain->origin_count, 0);
    server_config_free(config);
}

static void what_is_wrong_is_refused(void **state)
{
    static const struct {
        const char *plugins, *wanted;
    } WRONG[] = {
        {"{title: a, uri: /scripts/plugins/market.js}", "/scripts/plugins/market.js is no address"},
        {"{title: a, uri: \"http://h/p.js; script-src *\"}", "is no address"},
        {"{title: a}", "uri"},
        {"{uri: 'http://h/p.js'}", "title"},
        {"{title: a, uri: 'http://h/p.js', origins: ['http://h/path']}", "is more than SCHEME"},
        {"{title: a, uri: 'http://h/p.js', origins: ['*']}", "is no address"},
        {"{title: a, uri: 'http://h/p.js', scope: admin}", "scope"},
        {"{title: a, uri: 'http://h/p.js', config: 7}", "config"},
        {"{title: a, uri: 'http://h/p.js', token: x}", "token"},
        {"{id: a, title: a, uri: 'http://h/p.js'}, {id: a, title: b, uri: 'http://h/p.js'}",
         "plugin 1 is called a as well"},
    };
    (void)state;
    struct server_config *config;
    cleanup_buf struct buf report = BUF_INIT;
    for (size_t i = 0; i < COUNT_OF(WRONG); i++) {
        char text[300];
        snprintf(text, sizeof text, "portal: {plugins: [%s]}\n", WRONG[i].plugins);
        assert_int_equal(read_config(text, &config, &report), ERR_INVALID);
        if (!strstr(buf_cstr(&report), WRONG[i].wanted))
            fail_msg("'%s' is not in: %s", WRONG[i].wanted, buf_cstr(&report));
    }
    cleanup_buf struct buf large = BUF_INIT;
    buf_string(&large, "portal: {plugins: [{title: a, uri: 'http://h/p.js', config: {a: '");
    for (size_t i = 0; i < PORTAL_PLUGIN_CONFIG_MAX; i++)
        buf_char(&large, 'x');
    buf_string(&large, "'}}]}\n");
    assert_int_equal(read_config(buf_cstr(&large), &config, &report), ERR_INVALID);
    assert_non_null(strstr(buf_cstr(&report), "has more than 65536 bytes"));
}

static void a_change_wants_a_restart(void **state)
{
#define ONE(rest) "portal: {plugins: [{title: a, uri: 'http://h/p.js'" rest "}]}\n"
    static const char *const OTHERS[] = {"# none\n",
                                         ONE(", id: b"),
                                         ONE(", scope: read"),
                                         ONE(", origins: ['http://b']"),
                                         ONE(", config: {a: 1}"),
                                         "portal: {plugins: [{title: b, uri: 'http://h/p.js'}]}\n",
                                         "portal: {plugins: [{title: a, uri: 'http://h/q.js'}]}\n"};
    (void)state;
    struct server_config *config, *other;
    cleanup_buf struct buf report = BUF_INIT, keys = BUF_INIT;
    assert_int_equal(read_config(ONE(""), &config, &report), 0);
    server_config_compare(config, config, &keys);
    assert_string_equal(buf_cstr(&keys), "");
    for (size_t i = 0; i < COUNT_OF(OTHERS); i++) {
        buf_clear(&keys);
        assert_int_equal(read_config(OTHERS[i], &other, &report), 0);
        server_config_compare(config, other, &keys);
        assert_string_equal(buf_cstr(&keys), "portal.plugins");
        server_config_free(other);
    }
    server_config_free(config);
    assert_int_equal(read_config(ONE(", origins: ['http://b']"), &config, &report), 0);
    assert_int_equal(read_config(ONE(", origins: ['http://c']"), &other, &report), 0);
    buf_clear(&keys);
    server_config_compare(config, other, &keys);
    assert_string_equal(buf_cstr(&keys), "portal.plugins");
    server_config_free(config);
    server_config_free(other);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(plugins_are_read),
    cmocka_unit_test(what_is_wrong_is_refused),
    cmocka_unit_test(a_change_wants_a_restart),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
