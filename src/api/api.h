/* api.h — the REST API: OpenPAI's paths under /api/v2, early PAI's under /api/v1, all of them also
 * under /rest-server, and the health and metrics paths.
 *
 * Edge. Talks to the server through service.h and reads the store. docs/openapi.yaml describes
 * every path; docs/user/api.md explains. Every error is {"code": NAME, "message": TEXT} with an
 * OpenPAI code name where there is one, and "path" where a place in the user's document is known.
 *
 * Who may see what: every user that has logged in sees lists, details and events of all jobs (as in
 * OpenPAI); configurations and logs only those of their own jobs, unless `is_config_shared` or
 * `is_log_shared`; admins see all.
 */
#ifndef API_API_H
#define API_API_H
#include "api/tls_client.h"
#include "model/image.h"
#include "model/portal_plugin.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct api;
struct api_ldap;
struct api_oidc;
struct err;
struct service;

enum {
    API_TOKEN_S_MIN = 60,
    API_TOKEN_S_MAX = 604800,
    API_APPLICATION_S_MAX = 10 * 365 * 86400, /* of one that is given to a program */
    API_TOKEN_S = 604800,    /* life of a token that login gives unless told otherwise */
    API_FOLLOWERS_MAX = 768, /* of logs; */
    API_CHANGES_MAX = 2048,
    API_STORIES_MAX = 192,      /* that are followed; and the others of HTTP_STREAMS_MAX, … */
    API_DOWNLOADS_RESERVE = 64, /* … for downloads */
    API_CHANGES_ALIVE_MS = 15000,
    API_UPLOAD_IDLE_MS = 600000,
};

enum api_tls {
    API_TLS_AUTO, /* unless `listen` is a loopback address */
    API_TLS_ON,
    API_TLS_OFF,
};

/* Files of storages, for browsers and the command line. */
struct api_files {
    bool is_on;
    uint64_t upload_max; /* bytes of one file */
    uint64_t reserve;    /* bytes of a disk that uploads leave free */
    uint32_t nobody;     /* the id of root in a storage with rootSquash whose folder is root's */
    uint32_t idle_ms;    /* without a part an upload is given up; 0: API_UPLOAD_IDLE_MS */
};

struct api_config {
    const char *listen; /* NULL: "127.0.0.1:9186" */
    enum api_tls tls;
    const char *certificate, *key; /* PEM files; both NULL: made at the first start … */
    const char *tls_folder;        /* … in this folder */
    struct tls_clients_config clients;
    /* The path of a socket for the users of this machine. Who comes by it as root, or as the user
     * of this process, is `socket_user`, who must be an admin, without a token. NULL: none. */
    const char *socket, *socket_user;
    const char *const *origins, *const *proxies; /* as of http_server_config, and hsts_s */
    size_t origin_count, proxy_count;
    uint32_t hsts_s;
    const struct api_oidc *oidc; /* oidc.h; NULL: no OpenID Connect */
    const struct api_ldap *ldap; /* directory_login.h; NULL: no directory */
    unsigned threads;            /* 0: one for each processor */
    const char *door;            /* a folder for a socket that tasks ask; NULL: none */
    struct service *service;     /* must outlive the API */
    /* Where the relay listens, and where browsers find it (origin_pattern_parse). TLS is spoken
     * there when the API speaks it and the second is https. NULL: no web ports. */
    const char *web_listen, *web_origin;
    bool is_config_shared, is_log_shared;
    bool has_sign_up;             /* visitors may ask for accounts */
    bool is_v1_read_open;         /* lists and details of API v1 need no token, as in early PAI */
    struct offered_images images; /* prepared ones, which the portal offers */
    const char *manual_url, *feedback_url; /* for the portal's help; NULL: none */
    struct api_files files;
    struct portal_plugins plugins;
    const char *portal_folder; /* the portal's files, for development; NULL: the built-in ones */
    uint32_t followers_max;    /* of logs, at one time; 0: API_FOLLOWERS_MAX */
    uint32_t changes_max;      /* streams of them, at one time; 0: API_CHANGES_MAX */
    uint32_t stories_max;      /* that are followed at one time; 0: API_STORIES_MAX */
    uint32_t changes_alive_ms; /* of a silent stream; 0: API_CHANGES_ALIVE_MS */
    uint32_t log_search_ms;    /* of one search; 0: LOG_SEARCH_MS */
};

/* Listen and answer; `config` is copied, its strings are borrowed. Errors of http_server_start,
 * relay_start, http_tls_open, oidc_new and directory_new. */
int api_start(const struct api_config *config, struct api **api, struct err *err);
uint16_t api_port(const struct api *api); /* that is listened on */
/* "http" or "https": what is spoken there. */
const char *api_scheme(const struct api *api);
/* Read the certificate again, if there is one; errors of http_tls_reload. */
int api_reload(struct api *api, struct err *err);
/* No new connections, streams end; answers under way still go out. */
void api_drain(struct api *api);
/* After the server has answered everything that it took. */
void api_stop(struct api *api);

#endif
