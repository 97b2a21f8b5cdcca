/* Plugins of the portal: who sees the list, and what their frames may do. */
#include "folder.h"
#include "unit.h"
#include "world.h"

#include "base/memory.h"
#include <stdio.h>

static const char *const origins[] = {"http://api.lab"};
static const struct portal_plugin plugins[] = {
    {.id = "market",
     .title = "Marketplace",
     .uri = "https://plugins.lab/market.js",
     .origin = "https://plugins.lab",
     .origins = origins,
     .origin_count = 1,
     .scope = "submit",
     .config_json = "{\"repo\":\"a/b\"}"},
    {.id = "",
     .title = "Plain",
     .uri = "http://h/p.js",
     .origin = "http://h",
     .scope = "read",
     .config_json = "{}"},
};

static void the_list_is_for_who_has_signed_in(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    assert_int_equal(world_get(world, "/api/v2/plugins", NULL), 401);
    assert_int_equal(world_get(world, "/api/v2/plugins", alice), 200);
    assert_string_equal(buf_cstr(&world->body), "[]");
    world->api.config.plugins = (struct portal_plugins){plugins, COUNT_OF(plugins)};
    assert_int_equal(world_get(world, "/api/v2/plugins", alice), 200);
    assert_string_equal(
        buf_cstr(&world->body),
        "[{\"id\":\"market\",\"title\":\"Marketplace\",\"uri\":\"https://plugins.lab/market.js\","
        "\"scope\":\"submit\",\"config\":{\"repo\":\"a/b\"}},"
        "{\"id\":null,\"title\":\"Plain\",\"uri\":\"http://h/p.js\",\"scope\":\"read\","
        "\"config\":{}}]");
}

/* The policy of the page of a target; "" when it is not 200. */
static void policy_get(struct world *world, const char *target, char policy[1000])
{
    struct http_app app = api_app(&world->api);
    struct exchange exchange;
    exchange_init(&exchange);
    exchange.method = HTTP_GET;
    exchange.target = text_of(target);
    if (app.begin(app.context, &exchange))
        app.handle(app.context, &exchange);
    app.end(app.context, &exchange);
    policy[0] = '\0';
    for (size_t i = 0; exchange.reply.status == 200 && i < exchange.reply.header_count; i++)
        if (strcmp(exchange.reply.headers[i].name, "Content-Security-Policy") == 0)
            snprintf(policy, 1000, "%s", exchange.reply.headers[i].value);
    exchange_release(&exchange);
}

static void a_frame_has_no_origin_and_loads_from_its_own(void **state)
{
    struct world *world = *state;
    char policy[1000];
    folder_put("index.html", "the portal");
    folder_put("plugin-frame.html", "the frame");
    world->api.config.portal_folder = in_folder("");
    policy_get(world, "/plugins/0", policy);
    assert_null(strstr(policy, "frame-src")); /* there are none */
    policy_get(world, "/plugin-frame.html?index=0", policy);
    assert_string_equal(policy, "");
    world->api.config.plugins = (struct portal_plugins){plugins, COUNT_OF(plugins)};
    policy_get(world, "/plugins/0?op=resubmit", policy);
    assert_non_null(strstr(policy, "; frame-src 'self'"));
    assert_non_null(strstr(policy, "frame-ancestors 'none'"));
    policy_get(world, "/plugin-frame.html?op=resubmit&index=0", policy);
    assert_int_equal(strncmp(policy, "sandbox allow-scripts ", 22), 0);
    assert_null(strstr(policy, "allow-same-origin"));
    assert_null(strstr(policy, "allow-top-navigation"));
    assert_non_null(strstr(policy, "script-src 'self' https://plugins.lab http://api.lab;"));
    assert_non_null(strstr(policy, "connect-src 'self' https://plugins.lab http://api.lab;"));
    assert_non_null(strstr(policy, "frame-ancestors 'self'"));
    policy_get(world, "/plugin-frame.html?index=1", policy);
    assert_non_null(strstr(policy, "script-src 'self' http://h;"));
    policy_get(world, "/plugin-frame.html?index=2", policy);
    assert_string_equal(policy, "");
    policy_get(world, "/plugin-frame.html?index=x", policy);
    assert_string_equal(policy, "");
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
static const struct CMUnitTest tests[] = {
    WORLD(the_list_is_for_who_has_signed_in),
    WORLD(a_frame_has_no_origin_and_loads_from_its_own),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
