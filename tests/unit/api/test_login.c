/* Logging in through the API: who is refused and how; guessing passwords is slow, and makes nobody
 * else wait. */
#include "hash_watch.h"
#include "unit.h"
#include "world.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#include "api/login.h"
#include "api/passwords.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/clock.h"

#define PATH_V2 "/api/v2/authn/basic/login"
static const char *const PATH = PATH_V2;

static int login_as(struct world *world, const char *user, const char *password, const char *token)
{
    char body[200];
    snprintf(body, sizeof body, "{\"username\":\"%s\",\"password\":\"%s\"}", user, password);
    return world_send(world, HTTP_POST, PATH, token, body);
}

/* Strangers guess until they have to wait, and at times to come, so that they have to for longer
 * than a test takes. */
static void guesses(struct world *world, const char *address)
{
    const struct login_who who = {.user = TEXT("alice"), .address = text_of(address)};
    const char *was = world->address;
    int status = 400;
    world->address = address;
    for (int k = 0; k < 4 * LOGIN_FREE && status == 400; k++)
        status = login_as(world, "alice", "wrong", NULL);
    assert_int_equal(status, 429);
    world->address = was;
    int64_t wait_s = 0;
    for (int64_t at_ms = clock_monotonic_ms(); wait_s * 1000 < LOGIN_DELAY_MAX_MS;) {
        struct login_try attempt;
        struct err err;
        if (login_begin(world->api.logins, &who, at_ms, &attempt, &wait_s, &err))
            at_ms += wait_s * 1000;
        else
            login_end(world->api.logins, &attempt, at_ms, true, false);
    }
}

/* Who does not exist is answered like a wrong password, also by the brake. */
static void test_users_are_not_told(void **state)
{
    struct world *world = *state;
    static const char *const USERS[] = {"alice", "nobody"};
    struct buf answers[COUNT_OF(USERS)] = {BUF_INIT, BUF_INIT};
    for (size_t i = 0; i < COUNT_OF(USERS); i++) {
        world->address = i ? "10.0.0.2" : "10.0.0.1";
        assert_int_equal(login_as(world, USERS[i], "wrong", NULL), 400);
        buf_text(&answers[i], buf_as_text(&world->body));
        int status = 400;
        for (int k = 0; k < 4 * LOGIN_FREE && status == 400; k++)
            status = login_as(world, USERS[i], "wrong", NULL);
        assert_int_equal(status, 429);
        assert_true(strtol(world->retry_after, NULL, 10) >= 1);
    }
    assert_string_equal(buf_cstr(&answers[0]), buf_cstr(&answers[1]));
    for (size_t i = 0; i < COUNT_OF(USERS); i++)
        buf_release(&answers[i]);
}

static void test_guessed_user_logs_in(void **state)
{
    struct world *world = *state;
    const char *token = world_login(world, "alice");
    guesses(world, "10.0.0.2");
    world->address = "10.0.0.2";
    assert_int_equal(login_as(world, "alice", "alice-password", token), 200); /* also revoked: */
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/authn/basic/logout", token, ""), 200);
    assert_int_equal(login_as(world, "alice", "alice-password", token), 200);
    world->address = "127.0.0.1";
    assert_int_equal(login_as(world, "alice", "alice-password", NULL), 200);
    /* another's token proves nothing */
    const char *bob = world_login(world, "bob");
    guesses(world, "10.0.0.2");
    world->address = "10.0.0.2";
    assert_int_equal(login_as(world, "alice", "alice-password", bob), 429);
}

static struct hash_counts login_cost(struct world *world, const char *user, int status)
{
    hash_watch_begin(NULL, NULL);
    const int found = login_as(world, user, status == 200 ? "test_password" : "wrong", NULL);
    const struct hash_counts counts = hash_watch_end();
    assert_int_equal(found, status);
    return counts;
}

/* By time one could tell who is not known from who came from OpenPAI. The user who is not known
 * costs what the others do, also the one who may not log in. */
static void test_logins_cost_the_same(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    static const char EVE[] =
        "{\"username\":\"eve\",\"passwordHash\":" /* of "test_password", as in test_account.c */
        "\"84470075e7f713d4362abae58924c0b2fb306be701dcbf8211492792741f4685"
        "903259f53b9615c19b372a4208bcc662339baff9a6e2e4da9863e58c416a3041\"}";
    static const char BOB[] = "{\"patch\":true,\"data\":{\"username\":\"bob\",\"active\":false}}";
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/users", admin, EVE), 201);
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/users", admin, BOB), 201);
    const struct {
        const char *user;
        int status;
    } TRIES[] = {{"nobody", 400}, {"alice", 400}, {"bob", 400}, {"eve", 400}, {"eve", 200}};
    for (size_t i = 0; i < COUNT_OF(TRIES); i++) {
        const struct hash_counts counts = login_cost(world, TRIES[i].user, TRIES[i].status);
        assert_int_equal(counts.argon2, 1);
        assert_int_equal(counts.pbkdf2, 1);
    }
}

/* ---- who hashes ---- */

struct hashing {
    struct world *world;
    const char *token;
    pthread_t api; /* which serves requests */
    unsigned elsewhere, on_api;
};

/* The thread that hashes is held here, while another request is served to its end. */
static void on_hash(void *context)
{
    struct hashing *hashing = context;
    if (pthread_equal(pthread_self(), hashing->api)) {
        hashing->on_api++;
        return;
    }
    hashing->elsewhere++;
    if (world_get(hashing->world, "/api/v2/jobs", hashing->token) != 200)
        fail_msg("no answer while a password is hashed");
}

/* A hash takes some 50 ms: whoever needs one must not keep others from the threads that serve. */
static void test_others_are_served_while_a_password_is_hashed(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *alice = world_login(world, "alice");
    struct hashing hashing = {.world = world, .token = admin, .api = pthread_self()};
    world->api.config.has_sign_up = true;
    const struct {
        enum http_method method;
        const char *target, *token, *body;
        unsigned hashes;
        int status;
    } ASKED[] = {
        {HTTP_POST, PATH, NULL, "{\"username\":\"alice\",\"password\":\"alice-password\"}", 1, 200},
        {HTTP_POST, PATH, NULL, "{\"username\":\"alice\",\"password\":\"wrong\"}", 1, 400},
        {HTTP_POST, PATH, NULL, "{\"username\":\"nobody\",\"password\":\"wrong\"}", 1, 400},
        {HTTP_POST, "/api/v1/token", NULL,
         "{\"username\":\"alice\",\"password\":\"alice-password\"}", 1, 200},
        {HTTP_POST, "/api/v2/users", admin,
         "{\"username\":\"carol\",\"password\":\"carol-password\"}", 1, 201},
        {HTTP_PUT, "/api/v2/users", admin,
         "{\"patch\":true,\"data\":{\"username\":\"carol\",\"password\":\"carol-another\"}}", 1,
         201},
        {HTTP_PUT, "/api/v2/users/alice/password", alice,
         "{\"oldPassword\":\"alice-password\",\"newPassword\":\"alice-another\"}", 2, 201},
        {HTTP_PUT, "/api/v1/user", admin,
         "{\"username\":\"dave\",\"password\":\"dave-password\",\"modify\":false}", 1, 201},
        {HTTP_POST, "/api/v2/requests/account", NULL,
         "{\"username\":\"erin\",\"password\":\"erin-password\",\"email\":\"e@example.org\"}", 1,
         202},
    };
    for (size_t i = 0; i < COUNT_OF(ASKED); i++) {
        hashing.elsewhere = hashing.on_api = 0;
        hash_watch_begin(on_hash, &hashing);
        const int status =
            world_send(world, ASKED[i].method, ASKED[i].target, ASKED[i].token, ASKED[i].body);
        const struct hash_counts counts = hash_watch_end();
        assert_int_equal(status, ASKED[i].status);
        assert_int_equal(counts.argon2, ASKED[i].hashes);
        assert_int_equal(hashing.elsewhere, ASKED[i].hashes);
        assert_int_equal(hashing.on_api, 0);
    }
}

/* ---- tokens of applications ---- */

/* A token of an application, for the user of `token`. */
static void mint(struct world *world, const char *token, const char *body, char minted[2048])
{
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/tokens/application", token, body), 200);
    sscanf(strstr(buf_cstr(&world->body), "\"token\":\"") + 9, "%2047[^\"]", minted);
}

/* Whoever has one token can make others: to show one of those is to show none, at a login and where
 * the old password is asked for. */
static void test_minted_tokens_guess_no_faster(void **state)
{
    struct world *world = *state;
    enum { MINTED = 3 };
    static const char BODY[] =
        "{\"oldPassword\":\"alice-password\",\"newPassword\":\"alice-another\"}";
    static const char PASSWORD[] = "/api/v2/users/alice/password";
    static char minted[MINTED][2048];
    const char *token = world_login(world, "alice");
    for (size_t i = 0; i < MINTED; i++)
        mint(world, token, "{\"scope\":\"admin\"}", minted[i]);
    guesses(world, "10.0.0.2");
    world->address = "10.0.0.2";
    for (size_t i = 0; i < MINTED; i++) {
        assert_int_equal(login_as(world, "alice", "alice-password", minted[i]), 429);
        assert_int_equal(world_send(world, HTTP_PUT, PASSWORD, minted[i], BODY), 429);
    }
    /* nor is the owner held up */
    assert_int_equal(world_send(world, HTTP_PUT, PASSWORD, token, BODY), 201);
    assert_int_equal(login_as(world, "alice", "alice-another", token), 200);
}

/* ---- how many may wait ---- */

/* Passwords of strangers that wait to be checked; the first one is under way, and stays so. */
static struct {
    struct password_check checks[PASSWORDS_STRANGERS_MAX + 1];
    char owners[PASSWORDS_STRANGERS_MAX + 1][24];
    size_t count;
    sem_t begun, go, ended;
} crowd;

static void crowd_checked(struct password_check *check, bool is_tried, bool is_right)
{
    (void)is_tried;
    (void)is_right;
    if (check == &crowd.checks[0]) {
        sem_post(&crowd.begun);
        sem_wait(&crowd.go);
    }
    sem_post(&crowd.ended);
}

/* `count` wait: of this network, or each of another one. */
static void crowd_come(struct world *world, size_t count, const char *network)
{
    struct err err;
    crowd.count = count + 1;
    for (size_t i = 0; i < count + 1; i++) {
        snprintf(crowd.owners[i], sizeof crowd.owners[i], "10.9.%zu.1", i);
        crowd.checks[i] = (struct password_check){
            .task = {.owner = network ? network : crowd.owners[i], .is_stranger = true},
            .password = TEXT("a guess"),
            .done = crowd_checked};
        assert_int_equal(passwords_check(world->api.passwords, &crowd.checks[i], &err), 0);
        if (i == 0)
            assert_int_equal(sem_wait(&crowd.begun), 0);
    }
}

static int crowd_setup(void **state)
{
    assert_int_equal(sem_init(&crowd.begun, 0, 0), 0);
    assert_int_equal(sem_init(&crowd.go, 0, 0), 0);
    assert_int_equal(sem_init(&crowd.ended, 0, 0), 0);
    return world_setup(state);
}

static int crowd_teardown(void **state)
{
    sem_post(&crowd.go); /* where a test has failed */
    return world_teardown(state);
}

static void crowd_await(void)
{
    for (size_t i = 0; i < crowd.count; i++)
        assert_int_equal(sem_wait(&crowd.ended), 0);
}

/* One request, while as many strangers wait as it takes to refuse another one of theirs. */
static int ask_in_crowd(struct world *world, enum http_method method, const char *target,
                        const char *token, const char *body)
{
    crowd_come(world, PASSWORDS_WAITING_MAX, NULL);
    /* their hashes take longer than it does to get into the queue */
    assert_int_equal(sem_post(&crowd.go), 0);
    const int status = world_send(world, method, target, token, body);
    crowd_await();
    return status;
}

/* Nine of them, with names and addresses that change, were enough. */
static void test_strangers_keep_no_user_out(void **state)
{
    struct world *world = *state;
    static const char LOGIN[] = "{\"username\":\"alice\",\"password\":\"alice-password\"}";
    static const char CHANGED[] =
        "{\"oldPassword\":\"alice-password\",\"newPassword\":\"alice-another\"}";
    const char *token = world_login(world, "alice");
    assert_int_equal(ask_in_crowd(world, HTTP_POST, PATH, NULL, LOGIN), 200);
    world->address = "10.0.0.2";
    assert_int_equal(ask_in_crowd(world, HTTP_POST, PATH, token, LOGIN), 200);
    assert_int_equal(ask_in_crowd(world, HTTP_PUT, "/api/v2/users/alice/password", token, CHANGED),
                     201);
}

/* A network of strangers whose own tasks wait has to, and no other. */
static void test_strangers_share_a_network(void **state)
{
    struct world *world = *state;
    static const char ASKED[] = "{\"username\":\"erin\",\"password\":\"erin-password\","
                                "\"email\":\"e@example.org\"}";
    world->api.config.has_sign_up = true;
    crowd_come(world, PASSWORDS_WAITING_MAX, "127.0.0.1");
    world->address = "127.7.7.7";
    assert_int_equal(login_as(world, "alice", "wrong", NULL), 429);
    assert_body(world, "too many logins at this moment");
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/requests/account", NULL, ASKED), 429);
    assert_body(world, "too many logins at this moment");
    assert_int_equal(sem_post(&crowd.go), 0);
    world->address = "10.0.0.2";
    assert_int_equal(login_as(world, "alice", "wrong", NULL), 400);
    crowd_await();
}

static void test_so_many_strangers_wait(void **state)
{
    struct world *world = *state;
    crowd_come(world, PASSWORDS_STRANGERS_MAX, NULL);
    world->address = "10.0.0.2";
    assert_int_equal(login_as(world, "alice", "wrong", NULL), 429);
    assert_body(world, "too many logins at this moment");
    assert_int_equal(sem_post(&crowd.go), 0);
    passwords_stop(world->api.passwords); /* without looking at them */
    crowd_await();
}

/* ---- a restart ---- */

static void restart(struct world *world)
{
    login_table_free(world->api.logins);
    world->api.logins = login_table_new();
}

/* One login, then a restart, and strangers who guess: is its address still known? */
static bool is_recalled(struct world *world, const char *way)
{
    static const char BODY[] = "{\"username\":\"alice\",\"password\":\"alice-password\"}";
    struct err err;
    assert_int_equal(world_send(world, HTTP_POST, way, NULL, BODY), 200);
    restart(world);
    guesses(world, "10.0.0.2");
    assert_int_equal(login_as(world, "alice", "alice-password", NULL), 429);
    assert_int_equal(login_recall(&world->api, &err), 0);
    const int status = login_as(world, "alice", "alice-password", NULL);
    world->address = "10.0.0.2"; /* their wrong tries are records, too */
    assert_int_equal(login_as(world, "alice", "alice-password", NULL), 429);
    restart(world);
    return status == 200;
}

/* Addresses are known by the audit records; those of guesses are not. */
static void test_addresses_are_known_after_a_restart(void **state)
{
    static const char *const WAYS[] = {PATH_V2, "/api/v2/tokens", "/api/v1/authn/basic/login",
                                       "/api/v1/token"};
    struct world *world = *state;
    world->now_ms = clock_unix_ms() - (LOGIN_RECALL_DAYS * 86400LL + 60) * 1000; /* too long ago */
    world->address = "10.1.1.1";
    assert_false(is_recalled(world, PATH_V2));
    world->now_ms = clock_unix_ms();
    for (size_t i = 0; i < COUNT_OF(WAYS); i++) {
        char address[24];
        snprintf(address, sizeof address, "10.1.0.%zu", i);
        world->address = address;
        assert_true(is_recalled(world, WAYS[i]));
    }
}

/* As many records as one guesser leaves in nine days, at one try in 32 s. */
static void guesses_store(struct world *world)
{
    enum { COMMITS = 50, TOGETHER = 500 };
    static struct store_change changes[TOGETHER];
    const struct store_audit audit = {.at_ms = clock_unix_ms(),
                                      .user = "alice",
                                      .token = "",
                                      .address = "10.0.0.2",
                                      .right = "",
                                      .route = "POST " PATH_V2,
                                      .code = ERR_UNAUTHORIZED};
    struct err err;
    for (size_t i = 0; i < TOGETHER; i++)
        changes[i] = (struct store_change){.kind = CHANGE_AUDIT, .audit = &audit};
    for (size_t i = 0; i < COMMITS; i++) {
        const struct store_batch batch = {.changes = changes, .change_count = TOGETHER};
        assert_int_equal(store_commit(world->store, &batch, &err), 0);
    }
}

/* Whoever guesses cannot make it forgotten who has logged in before. */
static void test_guesses_before_a_restart_hide_no_login(void **state)
{
    struct world *world = *state;
    struct err err;
    world->now_ms = clock_unix_ms();
    world->address = "10.1.0.1";
    assert_int_equal(login_as(world, "alice", "alice-password", NULL), 200);
    guesses_store(world);
    restart(world);
    assert_int_equal(login_recall(&world->api, &err), 0);
    guesses(world, "10.0.0.2");
    assert_int_equal(login_as(world, "alice", "alice-password", NULL), 200);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
static void test_login(void **state)
{
    struct world *world = *state;
    const char *path = "/api/v2/authn/basic/login";
    static const struct {
        const char *body, *code;
    } BAD[] = {
        {"", "InvalidParametersError"},
        {"{", "InvalidParametersError"},
        {"[]", "InvalidParametersError"},
        {"{\"username\":1,\"password\":\"x\"}", "InvalidParametersError"},
        {"{\"username\":\"alice\"}", "InvalidParametersError"},
        {"{\"username\":\"alice\",\"password\":\"alice-password\",\"expiration\":59}",
         "InvalidParametersError"},
        {"{\"username\":\"alice\",\"password\":\"alice-password\",\"wrong\":1}",
         "there is no 'wrong' here: the body has username, password and expiration"},
        {"{\"username\":\"nobody\",\"password\":\"secret\"}", "IncorrectPasswordError"},
        {"{\"username\":\"alice\",\"password\":\"wrong\"}", "IncorrectPasswordError"},
    };
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        assert_int_equal(world_send(world, HTTP_POST, path, NULL, BAD[i].body), 400);
        assert_body(world, BAD[i].code);
    }
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v1/token", NULL,
                               "application/x-www-form-urlencoded",
                               TEXT("username=alice&password=alice%2Dpassword&expiration=60")),
                     200);
    assert_body(world, "\"user\":\"alice\"");
    assert_int_equal(world_ask(world, HTTP_POST, path, NULL, "application/x-www-form-urlencoded",
                               TEXT("username=alice&password=alice%2Dpassword&wrong=1")),
                     400);
    assert_body(world, "there is no 'wrong' here");
    /* clients of the older API say what they like */
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/v1/token", NULL,
                   "{\"username\":\"alice\",\"password\":\"alice-password\",\"wrong\":1}"),
        200);
    assert_int_equal(world_send(world, HTTP_POST, "/api/v1/token", NULL,
                                "{\"username\":\"alice\",\"password\":\"wrong\"}"),
                     400);
    assert_body(world, "\"error\":\"AuthenticationFailed\"");
}

#define CROWD(test) cmocka_unit_test_setup_teardown(test, crowd_setup, crowd_teardown)
static const struct CMUnitTest tests[] = {
    WORLD(test_users_are_not_told),
    WORLD(test_guessed_user_logs_in),
    WORLD(test_minted_tokens_guess_no_faster),
    CROWD(test_strangers_keep_no_user_out),
    CROWD(test_strangers_share_a_network),
    CROWD(test_so_many_strangers_wait),
    WORLD(test_logins_cost_the_same),
    WORLD(test_addresses_are_known_after_a_restart),
    WORLD(test_guesses_before_a_restart_hide_no_login),
    WORLD(test_others_are_served_while_a_password_is_hashed),
    cmocka_unit_test_setup_teardown(test_login, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
