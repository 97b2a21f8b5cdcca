/* The portal: one page for every path that people see, and the files that it loads. It is a client
 * of this API like any other: nothing here knows the caller. */
#include "portal/portal.h"
#include "api/handlers.h"
#include "api/portal.h"
#include "base/memory.h"

static int handle_portal(struct call *call);
static int handle_missing_page(struct call *call);

/* Paths of pages, and those of OpenPAI's portal, which the page knows: links to them stand in mails
 * and notes. */
const struct route PORTAL_ROUTES[] = {
    {HTTP_GET, "/", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/assets/*file", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/home", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/sign-in", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/jobs", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/jobs/*job", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/submit", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/cluster", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/admin", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/storages", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/storages/*storage", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/templates", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/transfer", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/profile", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/design", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/index.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/home.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/job-list.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/job-detail.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/submit.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/plugin.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/plugins/*index", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/plugin-frame.html", ACCESS_ANYONE, handle_plugin_frame, false},
    {HTTP_GET, "/submit_demo.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/submit_v1.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/job-event.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/job-transfer.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/task-attempt.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/virtual-clusters.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/dashboard.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/cluster-view/*view", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/user-view.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/view.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/login.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/batch-register.html", ACCESS_ANYONE, handle_portal, false},
    {HTTP_GET, "/user-profile.html", ACCESS_ANYONE, handle_portal, false},
};
const size_t PORTAL_ROUTE_COUNT = COUNT_OF(PORTAL_ROUTES);

static const struct route missing_page = {HTTP_GET, "/*page", ACCESS_ANYONE, handle_missing_page,
                                          false};

/* No script or style but our files, nobody's frame, no text that becomes code; frames only where
 * there are plugins. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "              \
    "font-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "               \
    "form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'"

/* Does a comma list of a header name this item, and not with q=0? A weak tag counts as a strong
 * one (RFC 9110, 13.1.2). */
static bool list_has(struct text list, const char *wanted)
{
    while (list.at && list.length) {
        struct text item = text_cut(&list, ',');
        struct text name = text_trim(text_cut(&item, ';'));
        struct text weight = text_trim(item);
        if (text_starts(name, TEXT("W/")))
            name = (struct text){name.at + 2, name.length - 2};
        bool is_refused = text_is(weight, "q=0") || text_is(weight, "q=0.0") ||
                          text_is(weight, "q=0.00") || text_is(weight, "q=0.000");
        if (text_is(name, wanted))
            return !is_refused;
    }
    return false;
}

static struct text copy_choose(struct exchange *exchange, const struct portal_file *file)
{
    if (file->brotli.at && list_has(exchange->accept_encoding, "br")) {
        exchange_header(exchange, "Content-Encoding", "br");
        return file->brotli;
    }
    if (file->gzip.at && list_has(exchange->accept_encoding, "gzip")) {
        exchange_header(exchange, "Content-Encoding", "gzip");
        return file->gzip;
    }
    return file->plain;
}

static void file_reply(struct exchange *exchange, const struct portal_file *file,
                       const char *policy)
{
    bool is_asset = text_starts(text_of(file->path), TEXT("assets/"));
    exchange_header(exchange, "Cache-Control",
                    is_asset && file->etag ? "public, max-age=31536000, immutable" : "no-cache");
    exchange_header(exchange, "Vary", "Accept-Encoding");
    if (!is_asset) {
        exchange_header(exchange, "Content-Security-Policy", policy);
        exchange_header(exchange, "Referrer-Policy", "no-referrer");
        exchange_header(exchange, "Cross-Origin-Opener-Policy", "same-origin");
    }
    if (file->etag) {
        exchange_header(exchange, "ETag", file->etag);
        if (list_has(exchange->if_none_match, file->etag + 2)) {
            exchange->reply.status = 304;
            return;
        }
    }
    exchange->reply.status = 200;
    exchange->reply.content_type = file->type;
    exchange->reply.fixed = copy_choose(exchange, file);
}

static struct text path_of(struct text target)
{
    return text_cut(&target, '?');
}

int portal_reply(struct call *call, const char *policy)
{
    struct text path = path_of(call->exchange->target);
    if (call->api->config.portal_folder) {
        struct http_reply *reply = &call->exchange->reply;
        struct portal_file file;
        int code =
            portal_read(call->api->config.portal_folder, path, call->arena, &file, &call->err);
        if (code)
            return code;
        file_reply(call->exchange, &file, policy);
        buf_text(&reply->body, reply->fixed); /* which is none: it lies in the arena */
        reply->fixed = (struct text){NULL, 0};
        return 0;
    }
    const struct portal_file *file = portal_find(path);
    if (!file && !portal_is_built_in())
        return call_fail(call, ERR_NOT_FOUND, "NoApiError", "",
                         "this server was built without the portal");
    if (!file)
        return call_fail(call, ERR_NOT_FOUND, "NoApiError", "", "the portal has no such file");
    file_reply(call->exchange, file, policy);
    return 0;
}

static int handle_portal(struct call *call)
{
    return portal_reply(call,
                        call->api->config.plugins.count ? POLICY "; frame-src 'self'" : POLICY);
}

/* The page says by itself that there is none of this path. */
static int handle_missing_page(struct call *call)
{
    const int code = handle_portal(call);
    if (!code && call->exchange->reply.status == 200)
        call->exchange->reply.status = 404;
    return code;
}

const struct route *portal_missing_page(const struct api *api, const struct exchange *exchange)
{
    const struct text first =
        exchange->segment_count > 0 ? exchange->segments[0] : (struct text){0};
    const bool is_api = text_is(first, "api") || text_is(first, "v1") || text_is(first, "v2");
    if (exchange->method != HTTP_GET || is_api || !list_has(exchange->accept, "text/html"))
        return NULL;
    return api->config.portal_folder || portal_is_built_in() ? &missing_page : NULL;
}
