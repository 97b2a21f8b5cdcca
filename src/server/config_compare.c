/* config_compare.c — server_config_compare of config.h: what a reload cannot change. */
#include "base/buf.h"
#include "base/text.h"
#include "doc/doc.h"
#include "server/config.h"
#include "server/config_plugins.h"
#include <stdio.h>
#include <string.h>

static void note_if(bool is_different, const char *key, struct buf *keys)
{
    if (is_different)
        buf_format(keys, "%s%s", keys->length ? ", " : "", key);
}

/* Either may be NULL. */
static bool texts_differ(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) != 0 : a != b;
}

static bool lists_differ(const char *const *old, size_t old_count, const char *const *now,
                         size_t now_count)
{
    bool is_different = old_count != now_count;
    for (size_t i = 0; !is_different && i < now_count; i++)
        is_different = strcmp(old[i], now[i]) != 0;
    return is_different;
}

static bool oidc_differs(const struct server_config *old_config, const struct server_config *config)
{
    const struct api_oidc *old = &old_config->oidc, *now = &config->oidc;
    return old_config->has_oidc != config->has_oidc ||
           strcmp(old->public_url, now->public_url) != 0 ||
           strcmp(old->provider.issuer, now->provider.issuer) != 0 ||
           strcmp(old->provider.client_id, now->provider.client_id) != 0 ||
           texts_differ(old->provider.secret_file, now->provider.secret_file) ||
           texts_differ(old->provider.ca_file, now->provider.ca_file) ||
           strcmp(old->provider.user_claim, now->provider.user_claim) != 0 ||
           strcmp(old->provider.groups_claim, now->provider.groups_claim) != 0 ||
           old->policy.creates_users != now->policy.creates_users ||
           old->policy.adopts_users != now->policy.adopts_users ||
           lists_differ(old->portals, old->portal_count, now->portals, now->portal_count) ||
           lists_differ(old->provider.scopes, old->provider.scope_count, now->provider.scopes,
                        now->provider.scope_count) ||
           lists_differ(old->policy.allowed, old->policy.allowed_count, now->policy.allowed,
                        now->policy.allowed_count);
}

static bool ldap_differs(const struct server_config *old_config, const struct server_config *config)
{
    const struct directory_config *old = &old_config->ldap.directory;
    const struct directory_config *now = &config->ldap.directory;
    const struct signon_policy *rules = &old_config->ldap.policy, *now_rules = &config->ldap.policy;
    return old_config->has_ldap != config->has_ldap || strcmp(old->url, now->url) != 0 ||
           old->is_plain != now->is_plain || texts_differ(old->ca_file, now->ca_file) ||
           strcmp(old->base, now->base) != 0 || strcmp(old->user_filter, now->user_filter) != 0 ||
           texts_differ(old->bind_as, now->bind_as) || texts_differ(old->bind_dn, now->bind_dn) ||
           texts_differ(old->bind_password_file, now->bind_password_file) ||
           strcmp(old->id_attribute, now->id_attribute) != 0 ||
           strcmp(old->name_attribute, now->name_attribute) != 0 ||
           strcmp(old->mail_attribute, now->mail_attribute) != 0 ||
           texts_differ(old->group_base, now->group_base) ||
           strcmp(old->group_filter, now->group_filter) != 0 ||
           strcmp(old->group_attribute, now->group_attribute) != 0 ||
           old->timeout_s != now->timeout_s || rules->creates_users != now_rules->creates_users ||
           lists_differ(rules->allowed, rules->allowed_count, now_rules->allowed,
                        now_rules->allowed_count);
}

static bool docs_equal(const struct doc *a, const struct doc *b)
{
    if (!a || !b || a->kind != b->kind)
        return a == b;
    bool is_equal = true;
    switch (a->kind) {
    case DOC_LIST:
        is_equal = a->as.list.count == b->as.list.count;
        for (size_t i = 0; is_equal && i < a->as.list.count; i++)
            is_equal = docs_equal(a->as.list.items[i], b->as.list.items[i]);
        return is_equal;
    case DOC_MAP:
        is_equal = a->as.map.count == b->as.map.count;
        for (size_t i = 0; is_equal && i < a->as.map.count; i++)
            is_equal =
                docs_equal(a->as.map.entries[i].value, doc_find(b, a->as.map.entries[i].key));
        return is_equal;
    case DOC_STRING:
        return text_equal(a->as.string, b->as.string);
    case DOC_NULL:
    case DOC_BOOL:
    case DOC_INT:
    case DOC_REAL:
        break;
    }
    return text_equal(a->source, b->source);
}

/* Where an engine stands in its file; NULL: nowhere. */
static const struct doc *engine_doc(const struct server_config *config, size_t number)
{
    const struct doc *list = doc_get(config->doc, "engines");
    return list ? list->as.list.items[number] : doc_get(config->doc, "engine");
}

/* The keys of `to` whose values are others in `from`, or (`is_gone`) are not there; `name` and
 * `kind`, which have defaults, are compared as they are in force. */
static void section_note(const struct doc *from, const struct doc *to, const char *path,
                         bool is_gone, struct buf *keys)
{
    char key[400];
    for (size_t i = 0; i < doc_count(to); i++) {
        const struct doc_entry *entry = &to->as.map.entries[i];
        const struct doc *other = doc_find(from, entry->key);
        const bool is_told = text_is(entry->key, "name") || text_is(entry->key, "kind");
        snprintf(key, sizeof key, "%s.%.*s", path, TEXT_ARG(entry->key));
        if (entry->value->kind == DOC_MAP)
            section_note(other, entry->value, key, is_gone, keys);
        else
            note_if(!is_told && (is_gone ? !other : !docs_equal(other, entry->value)), key, keys);
    }
}

static size_t engine_find(const struct server_config *config, const char *name)
{
    size_t i = 0;
    while (i < config->engine_count && strcmp(config->engines[i].name, name) != 0)
        i++;
    return i;
}

/* By their names: each setting of an engine takes effect when it is opened. */
static void engines_note(const struct server_config *old, const struct server_config *now,
                         struct buf *keys)
{
    const bool is_list = doc_get(now->doc, "engines") != NULL;
    for (size_t i = 0; i < now->engine_count; i++) {
        const struct engine_config *engine = &now->engines[i];
        const size_t before = engine_find(old, engine->name);
        char path[300];
        snprintf(path, sizeof path, "engine%s%s", is_list ? "s." : "", is_list ? engine->name : "");
        if (before == old->engine_count) {
            note_if(true, path, keys);
            buf_format(keys, " (%s is new)", engine->name);
            continue;
        }
        if (engine->kind != old->engines[before].kind) {
            note_if(true, path, keys);
            buf_string(keys, ".kind");
            continue;
        }
        section_note(engine_doc(old, before), engine_doc(now, i), path, false, keys);
        section_note(engine_doc(now, i), engine_doc(old, before), path, true, keys);
    }
    for (size_t i = 0; i < old->engine_count; i++)
        if (engine_find(now, old->engines[i].name) == now->engine_count) {
            note_if(true, "engines.", keys);
            buf_format(keys, "%s (removed)", old->engines[i].name);
        }
}

static bool images_differ(const struct offered_images *old, const struct offered_images *now)
{
    bool is_different = old->count != now->count;
    for (size_t i = 0; !is_different && i < now->count; i++) {
        const struct offered_image *a = &old->items[i], *b = &now->items[i];
        is_different = strcmp(a->name, b->name) != 0 || strcmp(a->uri, b->uri) != 0 ||
                       strcmp(a->about, b->about) != 0;
    }
    return is_different;
}

void server_config_compare(const struct server_config *old, const struct server_config *now,
                           struct buf *keys)
{
    note_if(strcmp(old->database, now->database) != 0, "database", keys);
    note_if(strcmp(old->data_directory, now->data_directory) != 0, "dataDirectory", keys);
    note_if(strcmp(old->files_directory, now->files_directory) != 0, "filesDirectory", keys);
    note_if(strcmp(old->admin_name, now->admin_name) != 0, "adminName", keys);
    note_if(strcmp(old->listen, now->listen) != 0, "api.listen", keys);
    note_if(strcmp(old->socket, now->socket) != 0, "api.socket", keys);
    note_if(old->tls != now->tls || texts_differ(old->certificate_path, now->certificate_path) ||
                texts_differ(old->key_path, now->key_path) || old->hsts_s != now->hsts_s,
            "api.tls", keys);
    note_if(old->tls_clients.mode != now->tls_clients.mode ||
                texts_differ(old->tls_clients.authorities, now->tls_clients.authorities) ||
                texts_differ(old->tls_clients.revoked, now->tls_clients.revoked) ||
                texts_differ(old->tls_clients.pattern, now->tls_clients.pattern),
            "api.tls.clientCertificates", keys);
    note_if(lists_differ(old->origins, old->origin_count, now->origins, now->origin_count),
            "api.origins", keys);
    note_if(lists_differ(old->proxies, old->proxy_count, now->proxies, now->proxy_count),
            "api.proxies", keys);
    note_if(texts_differ(old->web_listen, now->web_listen) ||
                texts_differ(old->web_origin, now->web_origin),
            "api.webPorts", keys);
    note_if(old->has_files != now->has_files, "api.files", keys);
    note_if(old->upload_max_mib != now->upload_max_mib, "api.uploadMaxMB", keys);
    note_if(oidc_differs(old, now), "api.oidc", keys);
    note_if(ldap_differs(old, now), "api.ldap", keys);
    note_if(old->threads != now->threads, "api.threads", keys);
    note_if(old->requests_max != now->requests_max, "api.requestsMax", keys);
    note_if(old->is_config_shared != now->is_config_shared, "api.shareConfigurations", keys);
    note_if(old->is_log_shared != now->is_log_shared, "api.shareLogs", keys);
    note_if(old->is_v1_read_open != now->is_v1_read_open, "api.openReads", keys);
    note_if(old->has_sign_up != now->has_sign_up, "auth.signUp", keys);
    note_if(images_differ(&old->images, &now->images), "portal.images", keys);
    note_if(texts_differ(old->manual_url, now->manual_url), "portal.manualUrl", keys);
    note_if(texts_differ(old->feedback_url, now->feedback_url), "portal.feedbackUrl", keys);
    note_if(config_plugins_differ(&old->plugins, &now->plugins), "portal.plugins", keys);
    engines_note(old, now, keys);
}
