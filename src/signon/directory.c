#include "signon/directory.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "signon/secret_file.h"
#include "sys/secret.h"
#include <assert.h>
#include <lber.h>
#include <ldap.h>
#include <sodium.h>
#include <stdlib.h>

struct directory {
    struct arena arena; /* of `config` */
    struct directory_config config;
    char *password;   /* of bind_dn; NULL: none */
    int64_t failed_s; /* 0: it was there the last time */
    struct err failure;
};

/* One question. */
struct search {
    const struct directory *directory;
    LDAP *ldap;
    struct arena *arena;
    struct text user;
    const char *dn; /* of the user's entry */
    struct err *err;
};

/* ---- life ---- */

bool directory_url_is_good(const char *url, bool is_plain)
{
    struct text rest = text_of(url);
    bool is_tls = text_starts(rest, TEXT("ldaps://"));
    bool is_open = text_starts(rest, TEXT("ldap://"));
    if (!is_tls && !is_open)
        return false;
    rest = (struct text){rest.at + (is_tls ? 8 : 7), rest.length - (is_tls ? 8 : 7)};
    for (size_t i = 0; i < rest.length; i++)
        if ((unsigned char)rest.at[i] <= ' ' || strchr("/?#@,%", rest.at[i]))
            return false;
    if (!rest.length)
        return false;
    return !is_plain || is_tls || text_starts(rest, TEXT("127.")) ||
           text_starts(rest, TEXT("[::1]")) || text_is(rest, "localhost") ||
           text_starts(rest, TEXT("localhost:"));
}

static const char *kept(struct directory *directory, const char *string)
{
    return string ? arena_copy(&directory->arena, text_of(string)) : NULL;
}

int directory_new(const struct directory_config *config, struct directory **out, struct err *err)
{
    int code = 0;
    if (!directory_url_is_good(config->url, config->is_plain))
        return err_fail(err, ERR_INVALID, "api.ldap.url", "%.150s is not an address of LDAP",
                        config->url);
    struct directory *directory = mem_zero(1, sizeof *directory);
    struct directory_config *own = &directory->config;
    arena_init(&directory->arena);
    *own = *config;
    own->url = kept(directory, config->url);
    own->ca_file = kept(directory, config->ca_file);
    own->base = kept(directory, config->base);
    own->user_filter = kept(directory, config->user_filter);
    own->bind_as = kept(directory, config->bind_as);
    own->bind_dn = kept(directory, config->bind_dn);
    own->bind_password_file = kept(directory, config->bind_password_file);
    own->id_attribute = kept(directory, config->id_attribute);
    own->name_attribute = kept(directory, config->name_attribute);
    own->mail_attribute = kept(directory, config->mail_attribute);
    own->group_base = kept(directory, config->group_base);
    own->group_filter = kept(directory, config->group_filter);
    own->group_attribute = kept(directory, config->group_attribute);
    if (own->bind_dn)
        code = secret_file_read(own->bind_password_file, "api.ldap.bindPasswordFile",
                                DIRECTORY_SECRET_MAX, &directory->password, err);
    if (code) {
        directory_free(directory);
        return code;
    }
    *out = directory;
    return 0;
}

void directory_free(struct directory *directory)
{
    if (!directory)
        return;
    if (directory->password)
        secret_wipe(directory->password, strlen(directory->password));
    mem_free(directory->password);
    arena_release(&directory->arena);
    mem_free(directory);
}

/* ---- names and filters ---- */

bool directory_name_is_good(struct text name)
{
    for (size_t i = 0; i < name.length; i++)
        if ((unsigned char)name.at[i] <= ' ' || (unsigned char)name.at[i] >= 0x7f)
            return false;
    return name.length > 0 && name.length <= DIRECTORY_NAME_MAX;
}

void directory_escape(struct buf *out, struct text text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.at[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '@';
        if (is_plain)
            buf_char(out, c);
        else
            buf_format(out, "\\%02X", (unsigned)(unsigned char)c);
    }
}

void directory_fill(struct buf *out, const char *pattern, struct text user, struct text dn)
{
    struct text rest = text_of(pattern);
    while (rest.length) {
        bool is_user = text_starts(rest, TEXT("{user}")), is_dn = text_starts(rest, TEXT("{dn}"));
        size_t length = is_user ? 6 : is_dn ? 4 : 1;
        if (is_user || is_dn)
            directory_escape(out, is_user ? user : dn);
        else
            buf_char(out, rest.at[0]);
        rest = (struct text){rest.at + length, rest.length - length};
    }
}

static const char *filled(const struct search *search, const char *pattern)
{
    cleanup_buf struct buf text = BUF_INIT;
    directory_fill(&text, pattern, search->user, text_of(search->dn ? search->dn : ""));
    return arena_copy(search->arena, buf_as_text(&text));
}

/* ---- the connection ---- */

/* ERR_UNAVAILABLE, with what libldap and the directory say. */
static int away(const struct search *search, const char *what, int answer)
{
    char *more = NULL;
    if (search->ldap)
        ldap_get_option(search->ldap, LDAP_OPT_DIAGNOSTIC_MESSAGE, &more);
    if (answer < 0) /* libldap's own: there was no answer */
        what = "the directory is away";
    err_fail(search->err, ERR_UNAVAILABLE, "", "%s: %.60s%s%.100s", what, ldap_err2string(answer),
             more && more[0] ? ": " : "", more ? more : "");
    ldap_memfree(more);
    return ERR_UNAVAILABLE;
}

static int option_set(LDAP *ldap, int option, const void *value)
{
    return ldap_set_option(ldap, option, value) == LDAP_OPT_SUCCESS ? LDAP_SUCCESS
                                                                    : LDAP_PARAM_ERROR;
}

/* All that the files and the environment of libldap could say otherwise. */
static int options_set(LDAP *ldap, const struct directory_config *config)
{
    const struct timeval timeout = {.tv_sec = config->timeout_s};
    const int version = LDAP_VERSION3, deref = LDAP_DEREF_NEVER, own_context = 0;
    const int demand = LDAP_OPT_X_TLS_DEMAND, tls_min = LDAP_OPT_X_TLS_PROTOCOL_TLS1_2;
    int answer = option_set(ldap, LDAP_OPT_PROTOCOL_VERSION, &version);
    if (!answer)
        answer = option_set(ldap, LDAP_OPT_REFERRALS, LDAP_OPT_OFF);
    if (!answer)
        answer = option_set(ldap, LDAP_OPT_RESTART, LDAP_OPT_ON);
    if (!answer)
        answer = option_set(ldap, LDAP_OPT_DEREF, &deref);
    if (!answer)
        answer = option_set(ldap, LDAP_OPT_NETWORK_TIMEOUT, &timeout);
    if (!answer)
        answer = option_set(ldap, LDAP_OPT_TIMEOUT, &timeout);
    if (!answer)
        answer = option_set(ldap, LDAP_OPT_X_TLS_REQUIRE_CERT, &demand);
    if (!answer)
        answer = option_set(ldap, LDAP_OPT_X_TLS_PROTOCOL_MIN, &tls_min);
    if (!answer && config->ca_file)
        answer = option_set(ldap, LDAP_OPT_X_TLS_CACERTFILE, config->ca_file);
    return answer ? answer : option_set(ldap, LDAP_OPT_X_TLS_NEWCTX, &own_context);
}

static int connect_to(struct search *search)
{
    const struct directory_config *config = &search->directory->config;
    int answer = ldap_initialize(&search->ldap, config->url);
    if (!answer)
        answer = options_set(search->ldap, config);
    if (!answer && !config->is_plain && strncmp(config->url, "ldap://", 7) == 0)
        answer = ldap_start_tls_s(search->ldap, NULL, NULL);
    return answer ? away(search, "the directory is away", answer) : 0;
}

static int bind_with(const struct search *search, const char *dn, struct text password)
{
    struct berval secret = {.bv_len = password.length, .bv_val = (char *)(uintptr_t)password.at};
    assert(password.length); /* without one a directory says yes to everybody */
    return ldap_sasl_bind_s(search->ldap, dn, LDAP_SASL_SIMPLE, &secret, NULL, NULL, NULL);
}

/* Who searches: the operator's account, if there is one. */
static int bind_searcher(const struct search *search)
{
    const struct directory *directory = search->directory;
    if (!directory->config.bind_dn)
        return 0;
    int answer = bind_with(search, directory->config.bind_dn, text_of(directory->password));
    return answer ? away(search, "the directory refuses bindDn", answer) : 0;
}

static int wrong(struct err *err)
{
    return err_fail(err, ERR_UNAUTHORIZED, "", "there is no such user, or not of this password");
}

/* The directory speaks of the user, not of itself. */
static bool is_refusal(int answer)
{
    return answer == LDAP_INVALID_CREDENTIALS || answer == LDAP_INAPPROPRIATE_AUTH ||
           answer == LDAP_NO_SUCH_OBJECT || answer == LDAP_INVALID_DN_SYNTAX ||
           answer == LDAP_INSUFFICIENT_ACCESS || answer == LDAP_CONSTRAINT_VIOLATION;
}

static int bind_user(const struct search *search, struct text password)
{
    int answer = bind_with(search, search->dn, password);
    if (is_refusal(answer))
        return wrong(search->err);
    return answer ? away(search, "the directory does not check the password", answer) : 0;
}

/* ---- entries ---- */

/* At most `limit` entries; *found is to be freed by ldap_msgfree. */
static int find(const struct search *search, const char *base, int scope, const char *filter,
                const char *const *attributes, int limit, LDAPMessage **found)
{
    char **wanted = (char **)(uintptr_t)attributes; /* libldap does not change them */
    *found = NULL;
    return ldap_search_ext_s(search->ldap, base, scope, filter, wanted, 0, NULL, NULL, NULL, limit,
                             found);
}

static int dn_find(struct search *search)
{
    static const char *const nothing[] = {LDAP_NO_ATTRS, NULL};
    const struct directory_config *config = &search->directory->config;
    LDAPMessage *found = NULL;
    int answer = find(search, config->base, LDAP_SCOPE_SUBTREE, filled(search, config->user_filter),
                      nothing, 2, &found);
    int count = found ? ldap_count_entries(search->ldap, found) : 0;
    int code = 0;
    if (answer && answer != LDAP_SIZELIMIT_EXCEEDED)
        code = away(search, "the directory cannot be searched for users", answer);
    else if (count != 1) /* two: nobody knows who is meant */
        code = wrong(search->err);
    if (!code) {
        struct berval dn = {0}; /* in `found` */
        ldap_get_dn_ber(search->ldap, ldap_first_entry(search->ldap, found), NULL, &dn);
        search->dn = arena_copy(search->arena, (struct text){dn.bv_val, dn.bv_len});
        if (!dn.bv_len)
            code = wrong(search->err);
    }
    ldap_msgfree(found);
    return code;
}

/* The first value of an attribute, in the arena; at == NULL: none. */
static struct text value_of(const struct search *search, LDAPMessage *entry, const char *attribute)
{
    struct berval **values = ldap_get_values_len(search->ldap, entry, attribute);
    struct text value = {NULL, 0};
    if (values && values[0])
        value = (struct text){
            arena_copy(search->arena, (struct text){values[0]->bv_val, values[0]->bv_len}),
            values[0]->bv_len};
    ldap_value_free_len(values);
    return value;
}

/* As it is when it can be read, else in hexadecimal: Active Directory's are 16 bytes. */
static const char *id_of(const struct search *search, struct text value)
{
    bool is_readable = true;
    for (size_t i = 0; i < value.length; i++)
        is_readable = is_readable && value.at[i] > ' ' && value.at[i] < 0x7f;
    if (is_readable)
        return value.at;
    char *hex = arena_alloc(search->arena, 2 * value.length + 1);
    return sodium_bin2hex(hex, 2 * value.length + 1, (const unsigned char *)value.at, value.length);
}

static int entry_read(const struct search *search, LDAPMessage *entry, struct identity *identity)
{
    const struct directory_config *config = &search->directory->config;
    struct text id = value_of(search, entry, config->id_attribute);
    struct text name = value_of(search, entry, config->name_attribute);
    struct text mail = value_of(search, entry, config->mail_attribute);
    char *given = arena_alloc(search->arena, IDENTITY_NAME_MAX + 1);
    if (!id.length || id.length > DIRECTORY_ID_MAX)
        return err_fail(search->err, ERR_FORBIDDEN, "",
                        "your entry in the directory has no %.60s of 1..%d bytes: an "
                        "administrator must set api.ldap.idAttribute",
                        config->id_attribute, DIRECTORY_ID_MAX);
    if (!name.length || !identity_name(name, given))
        return err_fail(search->err, ERR_FORBIDDEN, "",
                        "your entry in the directory has no %.60s of 1..%d characters",
                        config->name_attribute, IDENTITY_NAME_MAX);
    identity->id = arena_format(search->arena, "ldap %s %s", config->base, id_of(search, id));
    identity->name = given;
    identity->email = mail.at && !memchr(mail.at, '\0', mail.length) ? mail.at : "";
    return 0;
}

static int user_read(const struct search *search, struct identity *identity)
{
    const struct directory_config *config = &search->directory->config;
    const char *const attributes[] = {config->id_attribute, config->name_attribute,
                                      config->mail_attribute, NULL};
    LDAPMessage *found = NULL;
    int answer =
        find(search, search->dn, LDAP_SCOPE_BASE, "(objectClass=*)", attributes, 1, &found);
    LDAPMessage *entry = found ? ldap_first_entry(search->ldap, found) : NULL;
    int code;
    if (answer && !is_refusal(answer))
        code = away(search, "the directory does not show the user", answer);
    else if (!entry)
        code = err_fail(search->err, ERR_FORBIDDEN, "",
                        "the directory does not show your entry to skepd");
    else
        code = entry_read(search, entry, identity);
    ldap_msgfree(found);
    return code;
}

static int groups_read(const struct search *search, struct identity *identity)
{
    const struct directory_config *config = &search->directory->config;
    const char *const attributes[] = {config->group_attribute, NULL};
    LDAPMessage *found = NULL;
    if (!config->group_base)
        return 0;
    int answer =
        find(search, config->group_base, LDAP_SCOPE_SUBTREE, filled(search, config->group_filter),
             attributes, IDENTITY_GROUPS_MAX, &found);
    if (answer) { /* some of them would take the user out of the others */
        ldap_msgfree(found);
        return answer == LDAP_SIZELIMIT_EXCEEDED
                   ? err_fail(search->err, ERR_FORBIDDEN, "",
                              "the directory names more than %d groups of yours, or does not "
                              "show all",
                              IDENTITY_GROUPS_MAX)
                   : away(search, "the directory cannot be searched for groups", answer);
    }
    const char **names = ARENA_ARRAY(search->arena, const char *, IDENTITY_GROUPS_MAX);
    for (LDAPMessage *entry = ldap_first_entry(search->ldap, found);
         entry && identity->group_count < IDENTITY_GROUPS_MAX;
         entry = ldap_next_entry(search->ldap, entry)) {
        struct text name = value_of(search, entry, config->group_attribute);
        if (name.length && !memchr(name.at, '\0', name.length))
            names[identity->group_count++] = name.at;
    }
    identity->groups = names;
    ldap_msgfree(found);
    return 0;
}

/* ---- a login ---- */

static int check_connected(struct search *search, struct text password, struct identity *identity)
{
    const struct directory_config *config = &search->directory->config;
    int code = 0;
    if (config->bind_as) {
        search->dn = filled(search, config->bind_as);
    } else {
        code = bind_searcher(search);
        if (!code)
            code = dn_find(search);
    }
    if (!code)
        code = bind_user(search, password);
    if (!code) /* users may not see what groups they are in */
        code = bind_searcher(search);
    if (!code)
        code = user_read(search, identity);
    return code ? code : groups_read(search, identity);
}

int directory_check(struct directory *directory, struct text name, struct text password,
                    int64_t now_s, struct arena *arena, struct identity *identity, struct err *err)
{
    struct search search = {.directory = directory, .arena = arena, .user = name, .err = err};
    *identity = (struct identity){.id = "", .name = "", .email = ""};
    if (!password.length || !directory_name_is_good(name))
        return wrong(err);
    if (directory->failed_s && now_s - directory->failed_s < DIRECTORY_PAUSE_S) {
        *err = directory->failure;
        return err->code;
    }
    int code = connect_to(&search);
    if (!code)
        code = check_connected(&search, password, identity);
    if (search.ldap)
        ldap_unbind_ext_s(search.ldap, NULL, NULL);
    directory->failed_s = code == ERR_UNAVAILABLE ? now_s : 0;
    if (code == ERR_UNAVAILABLE)
        directory->failure = *err;
    return code;
}
