/* The portal over HTTP: which paths are pages, what may be kept, which copy is sent. */
#include "folder.h"
#include "unit.h"
#include "world.h"

#include "base/memory.h"
#include "portal/files.h"
#include <stdio.h>

/* One GET; the caller ends it with exchange_release. */
static int ask(struct world *world, struct exchange *exchange, const char *target,
               const char *accept_encoding, const char *if_none_match)
{
    struct http_app app = api_app(&world->api);
    exchange_init(exchange);
    exchange->method = HTTP_GET;
    exchange->target = text_of(target);
    exchange->accept_encoding = text_of(accept_encoding);
    exchange->if_none_match = text_of(if_none_match);
    if (app.begin(app.context, exchange))
        app.handle(app.context, exchange);
    app.end(app.context, exchange);
    return exchange->reply.status;
}

static const char *header(const struct exchange *exchange, const char *name)
{
    for (size_t i = 0; i < exchange->reply.header_count; i++)
        if (strcmp(exchange->reply.headers[i].name, name) == 0)
            return exchange->reply.headers[i].value;
    return "";
}

static void pages_are_served_from_a_folder(void **state)
{
    struct world *world = *state;
    struct exchange exchange;
    folder_put("index.html", "<!doctype html>");
    folder_put("assets/main-1.js", "start()");
    world->api.config.portal_folder = in_folder("");
    static const char *const pages[] = {"/",
                                        "/jobs?state=FAILED",
                                        "/jobs/alice~train",
                                        "/admin",
                                        "/cluster-view/services.html",
                                        "/transfer",
                                        "/storages/home"};
    for (size_t i = 0; i < COUNT_OF(pages); i++) {
        assert_int_equal(ask(world, &exchange, pages[i], NULL, NULL), 200);
        assert_string_equal(buf_cstr(&exchange.reply.body), "<!doctype html>");
        assert_string_equal(header(&exchange, "Cache-Control"), "no-cache");
        assert_non_null(strstr(header(&exchange, "Content-Security-Policy"), "script-src 'self'"));
        exchange_release(&exchange);
    }
    assert_int_equal(ask(world, &exchange, "/assets/main-1.js", NULL, NULL), 200);
    assert_string_equal(exchange.reply.content_type, "text/javascript; charset=utf-8");
    exchange_release(&exchange);
    assert_int_equal(ask(world, &exchange, "/assets/main-0.js", NULL, NULL), 404);
    exchange_release(&exchange);
}

static int open_in_browser(struct world *world, struct exchange *exchange, const char *target)
{
    struct http_app app = api_app(&world->api);
    exchange_init(exchange);
    exchange->method = HTTP_GET;
    exchange->target = text_of(target);
    exchange->accept = TEXT("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
    if (app.begin(app.context, exchange))
        app.handle(app.context, exchange);
    app.end(app.context, exchange);
    return exchange->reply.status;
}

/* A person reads a page that says so; a program, and who looks at the API, reads JSON. */
static void a_path_that_is_none_is_told_in_a_page(void **state)
{
    struct world *world = *state;
    struct exchange exchange;
    folder_put("index.html", "<!doctype html>");
    world->api.config.portal_folder = in_folder("");
    static const char *const none[] = {"/nothing", "/help", "/cluster/map", "/admin/users?tab=x"};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        assert_int_equal(open_in_browser(world, &exchange, none[i]), 404);
        assert_string_equal(buf_cstr(&exchange.reply.body), "<!doctype html>");
        assert_non_null(strstr(header(&exchange, "Content-Security-Policy"), "script-src 'self'"));
        exchange_release(&exchange);
        assert_int_equal(ask(world, &exchange, none[i], NULL, NULL), 404);
        assert_non_null(strstr(buf_cstr(&exchange.reply.body), "NoApiError"));
        exchange_release(&exchange);
    }
    static const char *const apis[] = {"/api/v2/nothing", "/v1/inspect/nothing", "/v2/nothing"};
    for (size_t i = 0; i < COUNT_OF(apis); i++) {
        assert_int_equal(open_in_browser(world, &exchange, apis[i]), 404);
        assert_null(strstr(buf_cstr(&exchange.reply.body), "<!doctype html>"));
        exchange_release(&exchange);
    }
    assert_int_equal(open_in_browser(world, &exchange, "/jobs"), 200);
    exchange_release(&exchange);
}

static void other_paths_stay_the_api(void **state)
{
    struct world *world = *state;
    assert_int_equal(world_get(world, "/nothing", NULL), 404);
    assert_body(world, "NoApiError");
    assert_int_equal(world_get(world, "/api/v2/nothing", NULL), 404);
    assert_body(world, "NoApiError");
    assert_int_equal(world_send(world, HTTP_POST, "/jobs", NULL, "{}"), 404);
    assert_int_equal(world_get(world, "/assets/none.js", NULL), 404);
}

static void the_best_copy_is_sent(void **state)
{
    struct world *world = *state;
    struct exchange exchange;
    const struct portal_file *page = portal_find(TEXT("/"));
    if (!page) { /* built without the portal */
        assert_int_equal(ask(world, &exchange, "/", "br", NULL), 404);
        exchange_release(&exchange);
        return;
    }
    static const struct {
        const char *accepted, *coding;
    } cases[] = {
        {"gzip, deflate, br", "br"}, {"gzip", "gzip"},        {"br;q=0, gzip;q=0.5", "gzip"},
        {"br;q=0,gzip;q=0", ""},     {"brotli, gzipped", ""}, {NULL, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(ask(world, &exchange, "/", cases[i].accepted, NULL), 200);
        assert_string_equal(header(&exchange, "Content-Encoding"), cases[i].coding);
        exchange_release(&exchange);
    }
}

static void what_the_browser_has_is_not_sent_again(void **state)
{
    struct world *world = *state;
    struct exchange exchange;
    const struct portal_file *page = portal_find(TEXT("/"));
    if (!page)
        return; /* built without the portal */
    char tags[128];
    snprintf(tags, sizeof tags, "\"other\", %s", page->etag);
    assert_int_equal(ask(world, &exchange, "/jobs", NULL, tags), 304);
    assert_string_equal(header(&exchange, "ETag"), page->etag);
    assert_null(exchange.reply.fixed.at);
    exchange_release(&exchange);
    assert_int_equal(ask(world, &exchange, "/jobs", NULL, "\"other\""), 200);
    exchange_release(&exchange);
    const struct portal_file *asset = &PORTAL_FILES[0];
    assert_true(text_starts(text_of(asset->path), TEXT("assets/")));
    snprintf(tags, sizeof tags, "/%s", asset->path);
    assert_int_equal(ask(world, &exchange, tags, NULL, NULL), 200);
    assert_non_null(strstr(header(&exchange, "Cache-Control"), "immutable"));
    exchange_release(&exchange);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(pages_are_served_from_a_folder, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(a_path_that_is_none_is_told_in_a_page, world_setup,
                                    world_teardown),
    cmocka_unit_test_setup_teardown(other_paths_stay_the_api, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(the_best_copy_is_sent, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(what_the_browser_has_is_not_sent_again, world_setup,
                                    world_teardown),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
