#include "signon/oidc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "signon/fetch.h"
#include "signon/id_token.h"
#include "signon/jwks.h"
#include "signon/secret_file.h"
#include "sys/secret.h"
#include <assert.h>
#include <sodium.h>

/* What the provider says of itself. */
struct provider {
    const char *authorization_url, *token_url, *keys_url;
    const char *user_url, *logout_url, *device_url; /* "": none */
    bool is_secret_in_form;                         /* it does not know Basic */
};

struct oidc {
    struct arena arena; /* of `config` */
    struct oidc_config config;
    char *secret; /* NULL: none */
    struct arena provider_arena;
    struct provider provider;
    bool has_provider;
    int64_t provider_s, keys_s; /* when they were read */
    int64_t keys_again_s;       /* when they were read for a key that was not known */
    struct jwks *keys;
    int64_t failed_s; /* 0: the last discovery did not fail */
    struct err failure;
};

/* ---- life ---- */

static int secret_read(struct oidc *oidc, struct err *err)
{
    return oidc->config.secret_file
               ? secret_file_read(oidc->config.secret_file, "api.oidc.clientSecretFile",
                                  OIDC_SECRET_MAX, &oidc->secret, err)
               : 0;
}

static const char *kept(struct oidc *oidc, const char *string)
{
    return string ? arena_copy(&oidc->arena, text_of(string)) : NULL;
}

int oidc_new(const struct oidc_config *config, struct oidc **out, struct err *err)
{
    if (strlen(config->issuer) > OIDC_ISSUER_MAX)
        return err_fail(err, ERR_TOO_BIG, "api.oidc.issuer", "it has more than %d bytes",
                        OIDC_ISSUER_MAX);
    if (!fetch_url_is_good(config->issuer))
        return err_fail(err, ERR_INVALID, "api.oidc.issuer",
                        "%.150s is not an https URL (http: only of a loopback address)",
                        config->issuer);
    if (!fetch_url_is_good(config->return_url))
        return err_fail(err, ERR_INVALID, "api.oidc.publicUrl",
                        "%.150s is not an https URL (http: only of a loopback address)",
                        config->return_url);
    struct oidc *oidc = mem_zero(1, sizeof *oidc);
    arena_init(&oidc->arena);
    arena_init(&oidc->provider_arena);
    oidc->config = *config;
    oidc->config.issuer = kept(oidc, config->issuer);
    oidc->config.client_id = kept(oidc, config->client_id);
    oidc->config.secret_file = kept(oidc, config->secret_file);
    oidc->config.ca_file = kept(oidc, config->ca_file);
    oidc->config.return_url = kept(oidc, config->return_url);
    oidc->config.user_claim = kept(oidc, config->user_claim);
    oidc->config.groups_claim = kept(oidc, config->groups_claim);
    const char **scopes = ARENA_ARRAY(&oidc->arena, const char *, config->scope_count + 1);
    for (size_t i = 0; i < config->scope_count; i++)
        scopes[i] = kept(oidc, config->scopes[i]);
    oidc->config.scopes = scopes;
    int code = secret_read(oidc, err);
    if (code) {
        oidc_free(oidc);
        return code;
    }
    *out = oidc;
    return 0;
}

void oidc_free(struct oidc *oidc)
{
    if (!oidc)
        return;
    if (oidc->secret)
        secret_wipe(oidc->secret, strlen(oidc->secret));
    mem_free(oidc->secret);
    jwks_free(oidc->keys);
    arena_release(&oidc->provider_arena);
    arena_wipe(&oidc->arena);
    arena_release(&oidc->arena);
    mem_free(oidc);
}

/* ---- words ---- */

static void word_make(char word[OIDC_WORD_SIZE])
{
    uint8_t bytes[32];
    secret_random(bytes, sizeof bytes);
    sodium_bin2base64(word, OIDC_WORD_SIZE, bytes, sizeof bytes,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    secret_wipe(bytes, sizeof bytes);
}

void oidc_try_make(struct oidc_try *attempt)
{
    word_make(attempt->state);
    word_make(attempt->nonce);
    word_make(attempt->verifier);
}

void oidc_challenge(struct text verifier, char challenge[OIDC_WORD_SIZE])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, (const unsigned char *)verifier.at, verifier.length);
    sodium_bin2base64(challenge, OIDC_WORD_SIZE, hash, sizeof hash,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* ---- what the provider says of itself ---- */

static int away(struct err *err, const char *what, const struct err *why)
{
    return err_fail(err, ERR_UNAVAILABLE, "", "%s: %.150s", what, why->text);
}

/* A reply's body as a map; `fetch` says the rest. */
static int json_fetch(const struct oidc *oidc, struct fetch fetch, struct arena *arena,
                      long *status, const struct doc **out, struct err *err)
{
    cleanup_buf struct buf body = BUF_INIT;
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    fetch.ca_file = oidc->config.ca_file;
    fetch.is_ending = oidc->config.is_ending;
    int code = fetch_run(&fetch, &body, status, err);
    if (code)
        return ERR_UNAVAILABLE;
    struct text json = text_of(arena_copy(arena, buf_as_text(&body)));
    *out = doc_parse(json, DOC_JSON, arena, &problems);
    secret_wipe(body.at, body.length);
    if (!*out || problems.error_count || (*out)->kind != DOC_MAP)
        return err_fail(err, ERR_UNAVAILABLE, "", "%.100s answers %ld, and no JSON object",
                        fetch.url, *status);
    return 0;
}

static int url_get(struct oidc *oidc, const struct doc *doc, const char *name, bool is_required,
                   const char **url, struct err *err)
{
    const struct doc *found = doc_get(doc, name);
    const bool is_text = !found || found->kind == DOC_NULL || found->kind == DOC_STRING;
    *url = arena_copy(&oidc->provider_arena, doc_get_text(doc, name, ""));
    if (is_text && (**url ? fetch_url_is_good(*url) : !is_required))
        return 0;
    return err_fail(err, ERR_UNAVAILABLE, "", "the provider's %s is no URL that may be asked",
                    name);
}

static bool list_has(const struct doc *list, const char *name)
{
    for (size_t i = 0; i < list->as.list.count; i++)
        if (list->as.list.items[i]->kind == DOC_STRING &&
            text_is(list->as.list.items[i]->as.string, name))
            return true;
    return false;
}

static int provider_read(struct oidc *oidc, const struct doc *doc, struct err *err)
{
    struct provider *provider = &oidc->provider;
    const struct doc *methods = doc_get_list(doc, "token_endpoint_auth_methods_supported");
    struct text issuer = doc_get_text(doc, "issuer", "");
    arena_clear(&oidc->provider_arena);
    *provider = (struct provider){
        .is_secret_in_form =
            list_has(methods, "client_secret_post") && !list_has(methods, "client_secret_basic"),
    };
    if (!text_is(issuer, oidc->config.issuer))
        return err_fail(err, ERR_UNAVAILABLE, "", "the provider calls itself %.*s, not %.100s",
                        (int)(issuer.length > 80 ? 80 : issuer.length), issuer.at,
                        oidc->config.issuer);
    int code =
        url_get(oidc, doc, "authorization_endpoint", true, &provider->authorization_url, err);
    if (!code)
        code = url_get(oidc, doc, "token_endpoint", true, &provider->token_url, err);
    if (!code)
        code = url_get(oidc, doc, "jwks_uri", true, &provider->keys_url, err);
    if (!code)
        code = url_get(oidc, doc, "userinfo_endpoint", false, &provider->user_url, err);
    if (!code)
        code = url_get(oidc, doc, "end_session_endpoint", false, &provider->logout_url, err);
    if (!code)
        code =
            url_get(oidc, doc, "device_authorization_endpoint", false, &provider->device_url, err);
    return code;
}

static int provider_ask(struct oidc *oidc, struct err *err)
{
    cleanup_arena struct arena arena;
    const struct doc *doc;
    struct text issuer = text_of(oidc->config.issuer);
    long status = 0;
    arena_init(&arena);
    while (issuer.length && issuer.at[issuer.length - 1] == '/')
        issuer.length--;
    struct fetch fetch = {
        .url = arena_format(&arena, "%.*s/.well-known/openid-configuration", TEXT_ARG(issuer))};
    int code = json_fetch(oidc, fetch, &arena, &status, &doc, err);
    if (!code && status != 200)
        code = err_fail(err, ERR_UNAVAILABLE, "", "%.150s answers %ld", fetch.url, status);
    return code ? code : provider_read(oidc, doc, err);
}

/* A provider that is away costs each login no more than the first of them. */
static int provider_need(struct oidc *oidc, int64_t now_s, struct err *err)
{
    struct err why;
    if (oidc->has_provider && now_s - oidc->provider_s < OIDC_KEEP_S)
        return 0;
    if (oidc->failed_s && now_s - oidc->failed_s < OIDC_PAUSE_S) {
        *err = oidc->failure;
        return err->code;
    }
    oidc->has_provider = provider_ask(oidc, &why) == 0;
    oidc->provider_s = now_s;
    oidc->failed_s = oidc->has_provider ? 0 : now_s;
    if (oidc->has_provider)
        return 0;
    away(&oidc->failure, "the provider of the sign-on is away", &why);
    *err = oidc->failure;
    return err->code;
}

static int keys_ask(struct oidc *oidc, int64_t now_s, struct err *err)
{
    cleanup_buf struct buf body = BUF_INIT;
    struct fetch fetch = {.url = oidc->provider.keys_url,
                          .ca_file = oidc->config.ca_file,
                          .is_ending = oidc->config.is_ending};
    struct jwks *keys = NULL;
    struct err why = {0};
    long status = 0;
    int code = fetch_run(&fetch, &body, &status, &why);
    if (!code && status != 200)
        code = err_fail(&why, ERR_UNAVAILABLE, "", "%.100s answers %ld", fetch.url, status);
    if (!code)
        code = jwks_read(buf_as_text(&body), &keys, &why);
    if (code)
        return away(err, "the provider's keys cannot be had", &why);
    jwks_free(oidc->keys);
    oidc->keys = keys;
    oidc->keys_s = now_s;
    return 0;
}

/* ---- the login ---- */

static void scopes_put(const struct oidc *oidc, struct buf *scopes)
{
    buf_string(scopes, "openid");
    for (size_t i = 0; i < oidc->config.scope_count; i++)
        if (strcmp(oidc->config.scopes[i], "openid") != 0)
            buf_format(scopes, " %s", oidc->config.scopes[i]);
}

int oidc_login_url(struct oidc *oidc, const struct oidc_try *attempt, int64_t now_s,
                   struct buf *url, struct err *err)
{
    cleanup_buf struct buf scopes = BUF_INIT;
    char challenge[OIDC_WORD_SIZE];
    int code = provider_need(oidc, now_s, err);
    if (code)
        return code;
    scopes_put(oidc, &scopes);
    oidc_challenge(text_of(attempt->verifier), challenge);
    buf_string(url, oidc->provider.authorization_url);
    fetch_parameter(url, "response_type", TEXT("code"));
    fetch_parameter(url, "client_id", text_of(oidc->config.client_id));
    fetch_parameter(url, "redirect_uri", text_of(oidc->config.return_url));
    fetch_parameter(url, "scope", buf_as_text(&scopes));
    fetch_parameter(url, "state", text_of(attempt->state));
    fetch_parameter(url, "nonce", text_of(attempt->nonce));
    fetch_parameter(url, "code_challenge", text_of(challenge));
    fetch_parameter(url, "code_challenge_method", TEXT("S256"));
    return 0;
}

/* Ask a place of the provider's at which we must say who we are, with a form that holds the rest;
 * the form is wiped. */
static int form_send(struct oidc *oidc, const char *url, struct buf *form, struct arena *arena,
                     long *status, const struct doc **reply, struct err *err)
{
    cleanup_buf struct buf id = BUF_INIT, secret = BUF_INIT;
    struct fetch fetch = {.url = url};
    bool is_basic = oidc->secret && !oidc->provider.is_secret_in_form;
    fetch_encode(&id, text_of(oidc->config.client_id));
    fetch_encode(&secret, text_of(oidc->secret ? oidc->secret : ""));
    if (!is_basic)
        buf_format(form, "&client_id=%s", buf_cstr(&id));
    if (oidc->secret && !is_basic)
        buf_format(form, "&client_secret=%s", buf_cstr(&secret));
    if (is_basic) {
        fetch.user = buf_cstr(&id);
        fetch.password = buf_cstr(&secret);
    }
    fetch.form = buf_cstr(form);
    int code = json_fetch(oidc, fetch, arena, status, reply, err);
    secret_wipe(form->at, form->length);
    if (secret.at)
        secret_wipe(secret.at, secret.length);
    return code;
}

static int refused(long status, struct text error, struct err *err)
{
    return err_fail(err, status < 500 ? ERR_UNAUTHORIZED : ERR_UNAVAILABLE, "",
                    "the provider refuses the login: %.*s",
                    (int)(error.length > 60 ? 60 : error.length), error.at);
}

/* The code for tokens: RFC 6749, 4.1.3. */
static int tokens_ask(struct oidc *oidc, const struct oidc_try *attempt, struct text code,
                      struct arena *arena, const struct doc **tokens, struct err *err)
{
    cleanup_buf struct buf form = BUF_INIT;
    struct err why = {0};
    long status = 0;
    buf_string(&form, "grant_type=authorization_code&code=");
    fetch_encode(&form, code);
    buf_string(&form, "&redirect_uri=");
    fetch_encode(&form, text_of(oidc->config.return_url));
    buf_format(&form, "&code_verifier=%s", attempt->verifier);
    if (form_send(oidc, oidc->provider.token_url, &form, arena, &status, tokens, &why))
        return away(err, "the provider gives no tokens", &why);
    return status == 200 ? 0 : refused(status, doc_get_text(*tokens, "error", "no reason"), err);
}

static int claims_get(struct oidc *oidc, const char *nonce, struct text token, int64_t now_s,
                      struct arena *arena, const struct doc **claims, struct err *err)
{
    const struct id_token_rules rules = {.issuer = oidc->config.issuer,
                                         .client_id = oidc->config.client_id,
                                         .nonce = nonce,
                                         .now_s = now_s};
    int code = 0;
    if (!oidc->keys || now_s - oidc->keys_s >= OIDC_KEEP_S)
        code = keys_ask(oidc, now_s, err);
    if (!code)
        code = id_token_check(token, oidc->keys, &rules, arena, claims, err);
    if (code == ERR_NOT_FOUND && now_s - oidc->keys_again_s >= OIDC_KEYS_AGAIN_S) {
        oidc->keys_again_s = now_s;
        code = keys_ask(oidc, now_s, err);
        if (!code)
            code = id_token_check(token, oidc->keys, &rules, arena, claims, err);
    }
    if (code == ERR_NOT_FOUND)
        return err_fail(err, ERR_UNAUTHORIZED, "",
                        "the provider's ID token is refused: it names a key that the provider "
                        "does not publish");
    return code;
}

/* ---- who it is ---- */

/* Claims that the ID token does not carry stand at another place of the provider's. */
static int user_ask(struct oidc *oidc, const struct doc *tokens, const struct doc *claims,
                    struct arena *arena, const struct doc **more, struct err *err)
{
    struct text access = doc_get_text(tokens, "access_token", "");
    struct fetch fetch = {.url = oidc->provider.user_url, .bearer = arena_copy(arena, access)};
    struct err why = {0};
    long status = 0;
    *more = NULL;
    if (!oidc->provider.user_url[0] || !access.length)
        return 0;
    int code = json_fetch(oidc, fetch, arena, &status, more, &why);
    if (!code && status != 200)
        code = err_fail(&why, ERR_UNAVAILABLE, "", "%.100s answers %ld", fetch.url, status);
    if (code)
        return away(err, "the provider does not say who it is", &why);
    if (!text_equal(doc_get_text(*more, "sub", ""), doc_get_text(claims, "sub", "")))
        return err_fail(err, ERR_UNAUTHORIZED, "", "the provider speaks of another user");
    return 0;
}

static void groups_get(const struct doc *list, struct arena *arena, struct identity *identity)
{
    const char **names = ARENA_ARRAY(arena, const char *, IDENTITY_GROUPS_MAX);
    size_t count = 0;
    if (list && list->kind == DOC_STRING)
        names[count++] = arena_copy(arena, list->as.string);
    for (size_t i = 0; list && list->kind == DOC_LIST && i < list->as.list.count; i++)
        if (list->as.list.items[i]->kind == DOC_STRING && count < IDENTITY_GROUPS_MAX)
            names[count++] = arena_copy(arena, list->as.list.items[i]->as.string);
    identity->groups = names;
    identity->group_count = count;
}

static int groups_check(const struct doc *list, struct err *err)
{
    if (list && list->kind == DOC_LIST && list->as.list.count > IDENTITY_GROUPS_MAX)
        return err_fail(err, ERR_FORBIDDEN, "", "the provider names more than %d groups of yours",
                        IDENTITY_GROUPS_MAX);
    return 0;
}

static const struct doc *claim_get(const struct doc *claims, const struct doc *more,
                                   const char *name)
{
    const struct doc *found = name ? doc_get(claims, name) : NULL;
    return found || !name ? found : doc_get(more, name);
}

static int identity_get(const struct oidc *oidc, const struct doc *claims, const struct doc *more,
                        struct arena *arena, struct identity *identity, struct err *err)
{
    const struct doc *name = claim_get(claims, more, oidc->config.user_claim);
    const struct doc *email = claim_get(claims, more, "email");
    const struct doc *groups = claim_get(claims, more, oidc->config.groups_claim);
    char *given = arena_alloc(arena, IDENTITY_NAME_MAX + 1);
    if (!name || name->kind != DOC_STRING)
        return err_fail(err, ERR_FORBIDDEN, "",
                        "the provider does not say the name of the user: it gives no claim %s",
                        oidc->config.user_claim);
    if (!identity_name(name->as.string, given))
        return err_fail(err, ERR_FORBIDDEN, "", "the claim %s is no name of 1..%d characters",
                        oidc->config.user_claim, IDENTITY_NAME_MAX);
    int code = groups_check(groups, err);
    if (code)
        return code;
    *identity = (struct identity){
        .id = arena_format(arena, "oidc %s %.*s", oidc->config.issuer,
                           TEXT_ARG(doc_get_text(claims, "sub", ""))),
        .name = given,
        .email = email && email->kind == DOC_STRING ? arena_copy(arena, email->as.string) : "",
    };
    groups_get(groups, arena, identity);
    return 0;
}

/* `nonce` as of struct id_token_rules. */
static int identity_ask(struct oidc *oidc, const char *nonce, const struct doc *tokens,
                        int64_t now_s, struct arena *arena, struct identity *identity,
                        struct err *err)
{
    const struct doc *claims = NULL, *more = NULL;
    struct text token = doc_get_text(tokens, "id_token", "");
    int code = claims_get(oidc, nonce, token, now_s, arena, &claims, err);
    if (code)
        return code;
    bool is_whole = doc_get(claims, oidc->config.user_claim) &&
                    (!oidc->config.groups_claim || doc_get(claims, oidc->config.groups_claim));
    if (!is_whole)
        code = user_ask(oidc, tokens, claims, arena, &more, err);
    return code ? code : identity_get(oidc, claims, more, arena, identity, err);
}

int oidc_finish(struct oidc *oidc, const struct oidc_try *attempt, struct text login_code,
                int64_t now_s, struct arena *arena, struct identity *identity, struct err *err)
{
    const struct doc *tokens = NULL;
    assert(attempt->nonce[0] && attempt->verifier[0]);
    int code = provider_need(oidc, now_s, err);
    if (!code)
        code = tokens_ask(oidc, attempt, login_code, arena, &tokens, err);
    return code ? code : identity_ask(oidc, attempt->nonce, tokens, now_s, arena, identity, err);
}

/* ---- device codes: RFC 8628 ---- */

/* Programs put it on the user's screen. */
static const char *shown_get(const struct doc *reply, const char *name, struct arena *arena)
{
    struct text text = doc_get_text(reply, name, "");
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.at[i] <= ' ' || (unsigned char)text.at[i] >= 0x7f)
            return "";
    return arena_copy(arena, text);
}

static int64_t number_get(const struct doc *reply, const char *name, int64_t max, int64_t fallback)
{
    int64_t value;
    const struct doc *found = doc_get(reply, name);
    if (!found || !doc_to_int(found, &value) || value < 1)
        return fallback;
    return value > max ? max : value;
}

static int device_read(const struct doc *reply, struct arena *arena, struct oidc_device *device,
                       struct err *err)
{
    struct text code = doc_get_text(reply, "device_code", "");
    *device = (struct oidc_device){
        .code = arena_copy(arena, code),
        .user_code = shown_get(reply, "user_code", arena),
        .url = shown_get(reply, "verification_uri", arena),
        .url_whole = shown_get(reply, "verification_uri_complete", arena),
        .life_s = number_get(reply, "expires_in", OIDC_DEVICE_S_MAX, OIDC_DEVICE_S_MAX),
        .interval_s = number_get(reply, "interval", OIDC_INTERVAL_S_MAX, OIDC_INTERVAL_S),
    };
    if (!code.length || code.length > OIDC_CODE_MAX || !device->user_code[0] ||
        !fetch_url_is_good(device->url))
        return err_fail(err, ERR_UNAVAILABLE, "", "the provider's device code makes no sense");
    if (!fetch_url_is_good(device->url_whole))
        device->url_whole = "";
    return 0;
}

int oidc_device_begin(struct oidc *oidc, int64_t now_s, struct arena *arena,
                      struct oidc_device *device, struct err *err)
{
    cleanup_buf struct buf form = BUF_INIT, scopes = BUF_INIT;
    const struct doc *reply = NULL;
    struct err why = {0};
    long status = 0;
    int code = provider_need(oidc, now_s, err);
    if (code)
        return code;
    if (!oidc->provider.device_url[0])
        return err_fail(err, ERR_UNSUPPORTED, "", "the provider has no device codes");
    scopes_put(oidc, &scopes);
    buf_string(&form, "scope=");
    fetch_encode(&form, buf_as_text(&scopes));
    if (form_send(oidc, oidc->provider.device_url, &form, arena, &status, &reply, &why))
        return away(err, "the provider gives no device code", &why);
    if (status == 200)
        return device_read(reply, arena, device, err);
    struct text error = doc_get_text(reply, "error", "no reason");
    return err_fail(err, status < 500 ? ERR_UNSUPPORTED : ERR_UNAVAILABLE, "",
                    "the provider gives no device code: %.*s",
                    (int)(error.length > 60 ? 60 : error.length), error.at);
}

int oidc_device_finish(struct oidc *oidc, struct text device_code, int64_t now_s,
                       struct arena *arena, struct identity *identity, bool *is_too_fast,
                       struct err *err)
{
    cleanup_buf struct buf form = BUF_INIT;
    const struct doc *reply = NULL;
    struct err why = {0};
    long status = 0;
    *is_too_fast = false;
    int code = provider_need(oidc, now_s, err);
    if (code)
        return code;
    buf_string(&form, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code"
                      "&device_code=");
    fetch_encode(&form, device_code);
    if (form_send(oidc, oidc->provider.token_url, &form, arena, &status, &reply, &why))
        return away(err, "the provider gives no tokens", &why);
    if (status == 200)
        return identity_ask(oidc, NULL, reply, now_s, arena, identity, err);
    struct text error = doc_get_text(reply, "error", "no reason");
    *is_too_fast = text_is(error, "slow_down");
    if (*is_too_fast || text_is(error, "authorization_pending"))
        return err_fail(err, ERR_BUSY, "", "the login is not finished yet");
    return refused(status, error, err);
}

int oidc_logout_url(struct oidc *oidc, const char *return_url, int64_t now_s, struct buf *url,
                    struct err *err)
{
    int code = provider_need(oidc, now_s, err);
    assert(code || oidc->provider.logout_url);
    if (code || !oidc->provider.logout_url[0])
        return code;
    buf_string(url, oidc->provider.logout_url);
    fetch_parameter(url, "client_id", text_of(oidc->config.client_id));
    if (return_url[0])
        fetch_parameter(url, "post_logout_redirect_uri", text_of(return_url));
    return 0;
}
