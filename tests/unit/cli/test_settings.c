/* Settings are kept for their owner alone. */
#include "line.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/settings.h"
#include "sys/file.h"

static char folder[sizeof "/tmp/skep-cli-test-XXXXXX"];

static int folder_make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/skep-cli-test-XXXXXX");
    return mkdtemp(folder) && setenv("XDG_CONFIG_HOME", folder, 1) == 0 ? 0 : -1;
}

static const char *file_path(const char *name)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/skep%s", folder, name);
    return path;
}

static int folder_remove(void **state)
{
    (void)state;
    unlink(file_path("/settings"));
    rmdir(file_path(""));
    return rmdir(folder);
}

static struct context *context_put(struct settings *settings, const char *name, const char *server)
{
    struct context *context;
    assert_int_equal(settings_add(settings, name, &context, NULL), 0);
    context_set(&context->server, server);
    context_set(&context->token, name);
    context_set(&context->certificate, "/c.pem");
    return context;
}

static void write_file(const char *content)
{
    mkdir(file_path(""), 0700);
    assert_int_equal(file_write(file_path("/settings"), text_of(content), 0600, NULL), 0);
}

static void what_is_kept_is_read_again(void **state)
{
    (void)state;
    cleanup_settings struct settings read, settings = {0};
    assert_int_equal(settings_load(&read, NULL), 0);
    assert_int_equal(read.count, 0);
    context_put(&settings, "home", "http://h:1");
    struct context *lab = context_put(&settings, "lab", "https://lab:2");
    context_set(&lab->user, "alice");
    context_set(&lab->fingerprint, "sha256//x");
    settings_choose(&settings, lab);
    assert_int_equal(settings_save(&settings, NULL), 0);
    assert_int_equal(settings_load(&read, NULL), 0);
    assert_int_equal(read.count, 2);
    lab = settings_current(&read);
    assert_string_equal(lab->name, "lab");
    assert_string_equal(lab->server, "https://lab:2");
    assert_string_equal(lab->token, "lab");
    assert_string_equal(lab->user, "alice");
    assert_string_equal(lab->fingerprint, "sha256//x");
    assert_null(settings_find(&read, "home")->user);
}

static void they_are_for_their_owner_alone(void **state)
{
    (void)state;
    cleanup_settings struct settings read, settings = {0};
    assert_int_equal(settings_save(&settings, NULL), 0);
    struct stat status;
    assert_int_equal(stat(file_path("/settings"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    chmod(file_path("/settings"), 0644);
    assert_int_equal(settings_load(&read, NULL), ERR_FORBIDDEN);
}

/* The file that versions without contexts wrote. */
static void a_file_without_names_is_one_context(void **state)
{
    (void)state;
    write_file("# written by skep login\nserver: http://h:1\nuser: alice\ntoken: a.b.c\n");
    cleanup_settings struct settings read;
    assert_int_equal(settings_load(&read, NULL), 0);
    assert_int_equal(read.count, 1);
    struct context *only = settings_current(&read);
    assert_string_equal(only->name, "default");
    assert_string_equal(only->server, "http://h:1");
    assert_string_equal(only->token, "a.b.c");
}

static void wrong_files(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"context: a b\n", "context: \x1b[2J\n", "context: a/b\n"};
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        cleanup_settings struct settings read;
        write_file(NAMES[i]);
        assert_int_equal(settings_load(&read, NULL), ERR_INVALID);
    }
    cleanup_settings struct settings read;
    write_file("current: gone\ncolour: red\ncontext: a\ncontext: a\nserver: http://h\n");
    assert_int_equal(settings_load(&read, NULL), 0);
    assert_int_equal(read.count, 1);
    assert_null(settings_current(&read));
    assert_string_equal(read.contexts[0].server, "http://h");
}

static void a_server_may_have_several_users(void **state)
{
    (void)state;
    cleanup_settings struct settings settings = {0};
    struct context *other = context_put(&settings, "other", "http://b");
    struct context *first = context_put(&settings, "first", "http://a");
    struct context *second = context_put(&settings, "second", "http://a");
    assert_ptr_equal(settings_of_server(&settings, "http://a"), first);
    settings_choose(&settings, second);
    assert_ptr_equal(settings_of_server(&settings, "http://a"), second);
    assert_ptr_equal(settings_of_server(&settings, "http://b"), other);
    assert_null(settings_of_server(&settings, "http://a/"));
    settings_remove(&settings, second);
    assert_null(settings_current(&settings));
    settings_remove(&settings, other);
    assert_int_equal(settings.count, 1);
    assert_string_equal(settings.contexts[0].name, "first");
}

static void so_many_are_kept(void **state)
{
    (void)state;
    cleanup_settings struct settings settings = {0};
    struct context *context;
    char name[8];
    for (int i = 0; i < CONTEXTS_MAX; i++) {
        snprintf(name, sizeof name, "c%d", i);
        context_put(&settings, name, "http://a");
    }
    assert_int_equal(settings_add(&settings, "more", &context, NULL), ERR_TOO_BIG);
    assert_int_equal(settings_save(&settings, NULL), 0);
    settings_release(&settings);
    assert_int_equal(settings_load(&settings, NULL), 0);
    assert_int_equal(settings.count, CONTEXTS_MAX);
}

/* What a server says of its user and token changes no other context, and can be read again. */
static void a_server_gives_no_lines(void **state)
{
    (void)state;
    cleanup_settings struct settings read, settings = {0};
    context_put(&settings, "lab", "https://lab");
    struct context *other = context_put(&settings, "other", "https://other");
    assert_int_equal(settings_save(&settings, NULL), 0);
    char **const fields[] = {&other->token, &other->user, &other->server, &other->fingerprint};
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        context_set(fields[i], "x\ncontext: lab\nserver: https://other");
        assert_int_equal(settings_save(&settings, NULL), ERR_INVALID);
        context_set(fields[i], "x\r");
        assert_int_equal(settings_save(&settings, NULL), ERR_INVALID);
        context_set(fields[i], "x\x7f");
        assert_int_equal(settings_save(&settings, NULL), ERR_INVALID);
        context_set(fields[i], "z\xc3\xbc rich");
        assert_int_equal(settings_save(&settings, NULL), 0);
    }
    char *long_token = mem_zero(1, 65 << 10);
    memset(long_token, 'x', (65 << 10) - 1);
    context_set(&other->token, long_token);
    mem_free(long_token);
    assert_int_equal(settings_save(&settings, NULL), ERR_TOO_BIG);
    assert_int_equal(settings_load(&read, NULL), 0);
    assert_int_equal(read.count, 2);
    assert_string_equal(settings_find(&read, "lab")->server, "https://lab");
    assert_string_equal(settings_find(&read, "other")->token, "z\xc3\xbc rich");
}

/* A server that is given by the variable, where nobody is logged in, costs no other its login. */
static void only_the_login_that_is_meant_is_given_up(void **state)
{
    (void)state;
    cleanup_settings struct settings read, settings = {0};
    settings_choose(&settings, context_put(&settings, "lab", "http://127.0.0.1:1"));
    assert_int_equal(settings_save(&settings, NULL), 0);
    setenv("SKEP_SERVER", "http://127.0.0.1:2", 1);
    struct cli cli;
    assert_int_equal(parse(&cli, "logout"), 0);
    assert_int_equal(run_logout(&cli), EXIT_REFUSED);
    mem_free(cli.arguments);
    unsetenv("SKEP_SERVER");
    assert_int_equal(settings_load(&read, NULL), 0);
    assert_string_equal(settings_current(&read)->token, "lab");
}

static void names(void **state)
{
    (void)state;
    static const char *const HOSTS[][2] = {{"https://lab.example.org", "lab.example.org"},
                                           {"http://127.0.0.1:9186", "127.0.0.1-9186"},
                                           {"https://[::1]:1/x", "--1-1"},
                                           {"unix:/run/skepd/api", "local"},
                                           {"http://", "default"}};
    char name[CONTEXT_NAME_MAX + 1], longest[CONTEXT_NAME_MAX + 20] = "http://";
    for (size_t i = 0; i < COUNT_OF(HOSTS); i++) {
        context_name_of(HOSTS[i][0], name);
        assert_string_equal(name, HOSTS[i][1]);
        assert_true(context_is_name(name));
    }
    memset(longest + 7, 'a', CONTEXT_NAME_MAX + 1);
    context_name_of(longest, name);
    assert_true(context_is_name(name));
    assert_false(context_is_name(longest + 7));
    assert_false(context_is_name(""));
}

/* A token of the environment is shown to the server that it is for. */
static void the_token_of_the_environment(void **state)
{
    (void)state;
    const char *const a = "https://a.example:9186", *const b = "https://b.example:9186";
    cleanup_settings struct settings settings = {0};
    assert_null(settings_token_server(&settings, NULL));
    assert_true(settings_token_fits(NULL, a, NULL)); /* --server, and nothing else */
    const struct context *of_a = context_put(&settings, "a", a);
    assert_null(settings_token_server(&settings, NULL));
    assert_false(settings_token_fits(NULL, a, of_a)); /* a context has a token of its own */
    settings_choose(&settings, of_a);
    assert_string_equal(settings_token_server(&settings, NULL), a);
    assert_string_equal(settings_token_server(&settings, b), b); /* SKEP_SERVER comes first */
    assert_true(settings_token_fits(a, a, of_a));
    assert_true(settings_token_fits(a, "https://a.example:9186/", NULL));
    assert_false(settings_token_fits(a, b, NULL));
    assert_false(settings_token_fits(b, a, of_a));
    assert_false(settings_token_fits(a, "https://a.example:91867", NULL));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
static const struct CMUnitTest tests[] = {
    TEST(what_is_kept_is_read_again),
    TEST(they_are_for_their_owner_alone),
    TEST(a_file_without_names_is_one_context),
    TEST(wrong_files),
    TEST(a_server_may_have_several_users),
    TEST(so_many_are_kept),
    TEST(a_server_gives_no_lines),
    TEST(only_the_login_that_is_meant_is_given_up),
    TEST(names),
    TEST(the_token_of_the_environment),
};
UNIT_FILE(tests, NULL, NULL);
