#include "server/config_signon.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "doc/problem.h"
#include "server/config.h"
#include "server/config_values.h"
#include "signon/fetch.h"
#include <string.h>

static const char *const oidc_scopes[] = {"profile", "email"};

void config_oidc_read(struct server_config *config, const struct doc *doc)
{
    struct api_oidc *oidc = &config->oidc;
    config->has_oidc = doc != NULL;
    *oidc = (struct api_oidc){.public_url = "",
                              .provider = {.issuer = "",
                                           .client_id = "",
                                           .scopes = oidc_scopes,
                                           .scope_count = COUNT_OF(oidc_scopes),
                                           .user_claim = "preferred_username",
                                           .groups_claim = "groups"}};
    config_string(config, doc, "issuer", &oidc->provider.issuer);
    config_string(config, doc, "clientId", &oidc->provider.client_id);
    config_string(config, doc, "clientSecretFile", &oidc->provider.secret_file);
    config_string(config, doc, "caFile", &oidc->provider.ca_file);
    config_string(config, doc, "publicUrl", &oidc->public_url);
    config_strings(config, doc, "portals", &oidc->portals, &oidc->portal_count);
    config_strings(config, doc, "scopes", &oidc->provider.scopes, &oidc->provider.scope_count);
    config_string(config, doc, "userClaim", &oidc->provider.user_claim);
    config_string(config, doc, "groupsClaim", &oidc->provider.groups_claim);
    config_strings(config, doc, "allowedGroups", &oidc->policy.allowed,
                   &oidc->policy.allowed_count);
    config_bool(doc, "createUsers", &oidc->policy.creates_users);
    config_bool(doc, "adoptUsers", &oidc->policy.adopts_users);
}

void config_ldap_read(struct server_config *config, const struct doc *doc)
{
    struct directory_config *directory = &config->ldap.directory;
    bool starts_tls = true;
    config->has_ldap = doc != NULL;
    config->ldap = (struct api_ldap){0};
    *directory = (struct directory_config){
        .url = "",
        .base = "",
        .user_filter = "(uid={user})",
        .id_attribute = "entryUUID",
        .name_attribute = "uid",
        .mail_attribute = "mail",
        .group_filter = "(member={dn})",
        .group_attribute = "cn",
        .timeout_s = 5,
    };
    config_string(config, doc, "url", &directory->url);
    config_bool(doc, "startTls", &starts_tls);
    directory->is_plain = !starts_tls;
    config_string(config, doc, "caFile", &directory->ca_file);
    config_string(config, doc, "base", &directory->base);
    config_string(config, doc, "userFilter", &directory->user_filter);
    config_string(config, doc, "bindAs", &directory->bind_as);
    config_string(config, doc, "bindDn", &directory->bind_dn);
    config_string(config, doc, "bindPasswordFile", &directory->bind_password_file);
    config_string(config, doc, "idAttribute", &directory->id_attribute);
    config_string(config, doc, "nameAttribute", &directory->name_attribute);
    config_string(config, doc, "mailAttribute", &directory->mail_attribute);
    config_string(config, doc, "groupBase", &directory->group_base);
    config_string(config, doc, "groupFilter", &directory->group_filter);
    config_string(config, doc, "groupAttribute", &directory->group_attribute);
    config_u32(doc, "timeoutSeconds", &directory->timeout_s);
    config_strings(config, doc, "allowedGroups", &config->ldap.policy.allowed,
                   &config->ldap.policy.allowed_count);
    config_bool(doc, "createUsers", &config->ldap.policy.creates_users);
}

void config_oidc_check(const struct server_config *config, const struct doc *doc,
                       struct problems *problems)
{
    const struct api_oidc *oidc = &config->oidc;
    const struct {
        const char *key, *value;
        bool is_url;
    } needed[] = {{"api.oidc.issuer", oidc->provider.issuer, true},
                  {"api.oidc.publicUrl", oidc->public_url, true},
                  {"api.oidc.clientId", oidc->provider.client_id, false}};

    for (size_t i = 0; i < COUNT_OF(needed); i++) {
        if (!needed[i].value[0])
            problem_add(problems, doc->place, needed[i].key, "must be given");
        else if (needed[i].is_url && !fetch_url_is_good(needed[i].value))
            problem_add(problems, doc->place, needed[i].key,
                        "must be an https URL; http: only of a loopback address");
    }
    if (oidc->policy.adopts_users && config->has_sign_up)
        problem_warn(problems, doc->place, "api.oidc.adoptUsers",
                     "with auth.signUp: request a visitor may ask for the name of somebody whom "
                     "the provider knows, and has the account until that one logs in");
}

void config_ldap_check(const struct server_config *config, const struct doc *doc,
                       struct problems *problems)
{
    enum { BASE_MAX = 512 };
    const struct directory_config *ldap = &config->ldap.directory;
    const struct {
        bool is_wrong;
        const char *key, *text;
    } rules[] = {
        {!directory_url_is_good(ldap->url, ldap->is_plain), "api.ldap.url",
         "must be ldaps://HOST[:PORT] or ldap://HOST[:PORT]; without startTls only ldaps, or "
         "ldap of a loopback address"},
        {!ldap->base[0] || strlen(ldap->base) > BASE_MAX, "api.ldap.base",
         "must be given, of at most 512 bytes"},
        {!strstr(ldap->user_filter, "{user}"), "api.ldap.userFilter", "must contain {user}"},
        {ldap->bind_as && !strstr(ldap->bind_as, "{user}"), "api.ldap.bindAs",
         "must contain {user}"},
        {!!ldap->bind_dn != !!ldap->bind_password_file, "api.ldap.bindDn",
         "bindDn and bindPasswordFile go together"},
        {ldap->group_base && !strstr(ldap->group_filter, "{dn}") &&
             !strstr(ldap->group_filter, "{user}"),
         "api.ldap.groupFilter", "must contain {dn} or {user}"},
        {config->ldap.policy.allowed_count && !ldap->group_base, "api.ldap.allowedGroups",
         "needs groupBase"},
    };

    for (size_t i = 0; i < COUNT_OF(rules); i++)
        if (rules[i].is_wrong)
            problem_add(problems, doc->place, rules[i].key, "%s", rules[i].text);
}
