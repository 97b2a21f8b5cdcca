/* config_signon.h — the configuration's `api.oidc` and `api.ldap`: who vouches for users.
 *
 * Private to server; config_shape.c has the keys.
 */
#ifndef SERVER_CONFIG_SIGNON_H
#define SERVER_CONFIG_SIGNON_H

struct doc;
struct problems;
struct server_config;

/* The section, which fits its shape; NULL: there is none, and the defaults stand. */
void config_oidc_read(struct server_config *config, const struct doc *doc);
void config_ldap_read(struct server_config *config, const struct doc *doc);

/* What is wrong beyond the shape, of a section that is there. */
void config_oidc_check(const struct server_config *config, const struct doc *doc,
                       struct problems *problems);
void config_ldap_check(const struct server_config *config, const struct doc *doc,
                       struct problems *problems);

#endif
