/* Where a browser may be sent with a token or a code: to pages that the operator named, or to a
 * program of the user's own machine. Logins themselves need a provider:
 * tests/system/signon/test_oidc.py. */
#include "unit.h"
#include "world.h"

#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "api/oidc.h"
#include "api/oidc_thread.h"
#include "base/err.h"
#include "base/memory.h"

static const char *const portals[] = {"https://portal.test", "https://other.test:8443/skep/"};
/* nobody is asked: what is not allowed is refused before, and so is all that is asked here */
static const struct api_oidc config = {
    .public_url = "https://skep.test/api",
    .portals = portals,
    .portal_count = COUNT_OF(portals),
    .provider = {.issuer = "https://provider.test",
                 .client_id = "skep",
                 .return_url = "https://skep.test/return",
                 .user_claim = "name"},
};

static void only_known_origins_get_a_token(void **state)
{
    (void)state;
    static const struct {
        const char *uri;
        bool is_allowed, is_program;
    } cases[] = {
        {"https://skep.test", true, false},
        {"https://skep.test/anywhere?x=1", true, false},
        {"https://portal.test/home.html", true, false},
        {"https://other.test:8443/", true, false},
        {"http://127.0.0.1:1/", true, true},
        {"http://127.0.0.1:65535/done?x", true, true},
        {"http://[::1]:8080/", true, true},
        {"", false, false},
        {"https://portal.test/#token", false, false},
        {"http://skep.test/", false, false},
        {"https://skep.test:443/", false, false},
        {"https://skep.test.evil.test/", false, false},
        {"https://skep.test@evil.test/", false, false},
        {"https://evil.test/https://skep.test/", false, false},
        {"https://other.test/", false, false},
        {"http://127.0.0.1/", false, false},
        {"http://127.0.0.1:0/", false, false},
        {"http://127.0.0.1:65536/", false, false},
        {"http://127.0.0.1:80@evil.test/", false, false},
        {"http://127.0.0.11:80/", false, false},
        {"http://[::1]/", false, false},
        {"http://localhost:80/", false, false},
        {"javascript:alert(1)", false, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool is_program = !cases[i].is_program;
        if (oidc_redirect_is_allowed(&config, text_of(cases[i].uri), &is_program) !=
            cases[i].is_allowed)
            fail_msg("%s is %sallowed", cases[i].uri, cases[i].is_allowed ? "not " : "");
        assert_int_equal(is_program, cases[i].is_program);
    }
    bool is_program;
    assert_false(oidc_redirect_is_allowed(&config, TEXT("https://skep.test/\0x"), &is_program));
}

static sem_t go, done;

static void task_wait(struct worker_task *task, void *oidc)
{
    (void)task, (void)oidc;
    assert_int_equal(sem_wait(&go), 0);
}

static void task_done(struct worker_task *task, bool is_run)
{
    (void)task, (void)is_run;
    assert_int_equal(sem_post(&done), 0);
}

/* Who begins logins without end keeps none of another network out. */
static void a_network_keeps_no_other_out(void **state)
{
    (void)state;
    struct err err = {0};
    struct oidc_thread *thread;
    struct worker_task tasks[OIDC_WAITING_MAX + 3];
    int taken = 0, refused = 0;
    assert_int_equal(sem_init(&go, 0, 0), 0);
    assert_int_equal(sem_init(&done, 0, 0), 0);
    assert_int_equal(oidc_thread_start(&config.provider, &thread, &err), 0);
    /* one is under way, sooner or later */
    for (size_t i = 0; i < COUNT_OF(tasks); i++) {
        const bool is_last = i + 1 == COUNT_OF(tasks);
        tasks[i] = (struct worker_task){.run = task_wait,
                                        .done = task_done,
                                        .owner = is_last ? "10.0.0.2" : "10.0.0.1",
                                        .is_stranger = true};
        const int code = oidc_thread_give(thread, &tasks[i], &err);
        assert_true(code == 0 || (code == ERR_BUSY && !is_last));
        taken += code == 0;
        refused += code != 0;
    }
    assert_true(refused > 0);
    for (int i = 0; i < taken; i++)
        assert_int_equal(sem_post(&go), 0);
    for (int i = 0; i < taken; i++)
        assert_int_equal(sem_wait(&done), 0);
    oidc_thread_free(thread);
    sem_destroy(&go);
    sem_destroy(&done);
}

static int setup(void **state)
{
    struct err err = {0};
    if (world_setup(state))
        return -1;
    struct world *world = *state;
    world->api.config.oidc = &config;
    return oidc_thread_start(&config.provider, &world->api.oidc, &err);
}

static int teardown(void **state)
{
    struct world *world = *state;
    oidc_thread_free(world->api.oidc);
    world->api.oidc = NULL;
    return world_teardown(state);
}

/* The address of a login with a redirect that is allowed is asked for the rest of the request. */
static void expect_refusal(struct world *world, const char *redirect, const char *rest,
                           const char *problem)
{
    cleanup_buf struct buf target = BUF_INIT;
    buf_format(&target, "/api/v2/authn/oidc/login?redirect_uri=%s%s", redirect, rest);
    assert_int_equal(world_get(world, buf_cstr(&target), NULL), 400);
    if (!world_body_has(world, problem))
        fail_msg("%s: '%s' is not in: %s", redirect, problem, buf_cstr(&world->body));
}

/* It becomes the header Location: nothing that ends a line or is no letter of a URL gets there. */
static void a_redirect_is_printable(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *letter;
        bool is_allowed;
    } cases[] = {{"%0d%0aSet-Cookie:x", false},
                 {"%1f", false},
                 {"%20", false},
                 {"%21", true},
                 {"%7e", true},
                 {"%7f", false},
                 {"%c3%a9", false},
                 {"%ff", false}};
    char from[2300] = "&from=";
    memset(from + 6, 'x', sizeof from - 7);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char redirect[80];
        snprintf(redirect, sizeof redirect, "https://portal.test/a%sb", cases[i].letter);
        expect_refusal(world, redirect, from,
                       cases[i].is_allowed ? "from has at most" : "redirect_uri must be");
    }
    expect_refusal(world, "https://evil.test/", from, "redirect_uri must be");
    expect_refusal(world, "", from, "redirect_uri must be");
}

/* Whoever catches a program's code on its way must not be able to use it (PKCE). */
static void a_program_gives_its_challenge(void **state)
{
    struct world *world = *state;
    enum { RIGHT_LENGTH = 43 };
    static const size_t lengths[] = {0, 1, RIGHT_LENGTH - 1, RIGHT_LENGTH + 1};
    const char *problem = "a program must give its code_challenge";
    expect_refusal(world, "http://127.0.0.1:8080/", "", problem);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        char rest[80];
        snprintf(rest, sizeof rest, "&code_challenge=%.*s", (int)lengths[i],
                 "01234567890123456789012345678901234567890123456789");
        expect_refusal(world, "http://127.0.0.1:8080/", rest, problem);
    }
}

/* A form of the provider's: the browser comes again by GET, and brings its cookie. */
static void a_form_leads_to_the_path(void **state)
{
    struct world *world = *state;
    static const char type[] = "application/x-www-form-urlencoded";
    static const char path[] = "/rest-server/api/v2/authn/oidc/return";
    assert_int_equal(
        world_ask(world, HTTP_POST, path, NULL, type, TEXT("code=a%26b&state=s%0d%0a&other=x")),
        303);
    assert_string_equal(world->location,
                        "/rest-server/api/v2/authn/oidc/return?state=s%0D%0A&code=a%26b");
    assert_int_equal(world_ask(world, HTTP_POST, path, NULL, type, TEXT("code=%zz")), 400);
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v1/authn/oidc/return", NULL, type, TEXT("")),
                     303);
    assert_string_equal(world->location, "/api/v1/authn/oidc/return");
}

/* Nobody listens there: who logs out comes back all the same, and is told. */
static void a_logout_without_the_provider_leads_back(void **state)
{
    struct world *world = *state;
    assert_int_equal(world_get(world,
                               "/api/v2/authn/oidc/logout?redirect_uri=https://portal.test/sign-in",
                               NULL),
                     302);
    static const char wanted[] = "https://portal.test/sign-in?errorMessage=";
    assert_memory_equal(world->location, wanted, sizeof wanted - 1);
    assert_null(strstr(world->location, "from="));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_logout_without_the_provider_leads_back, setup, teardown),
    cmocka_unit_test_setup_teardown(a_form_leads_to_the_path, setup, teardown),
    cmocka_unit_test(only_known_origins_get_a_token),
    cmocka_unit_test(a_network_keeps_no_other_out),
    cmocka_unit_test_setup_teardown(a_redirect_is_printable, setup, teardown),
    cmocka_unit_test_setup_teardown(a_program_gives_its_challenge, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
