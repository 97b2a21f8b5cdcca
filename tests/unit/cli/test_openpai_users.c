/* Users and groups of an OpenPAI cluster, out of its secrets: who comes over, and who is told of.
 */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "cli/openpai_users.h"

#define HASH                                                                                       \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"                             \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
/* the same in base64 */
#define HASH_ENCODED                                                                               \
    "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjAxMjM0" \
    "NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
#define ALICE   "YWxpY2U="                     /* alice */
#define BOB     "Ym9i"                         /* bob */
#define MAIL    "YUBiLmM="                     /* an address */
#define GROUPS  "WyJkZWZhdWx0IiwibGFiIiwieCJd" /* ["default","lab","x"] */
#define TRUE    "dHJ1ZQ=="                     /* true */
#define CLUSTER "dmlzaW9uLHNwZWVjaA=="         /* vision,speech */
/* {"sshKeys":[{"title":"t","value":"ssh-rsa A"}],"jobSSH":{},"githubPAT":"s"} */
#define EXTENSION                                                                                  \
    "eyJzc2hLZXlzIjpbeyJ0aXRsZSI6InQiLCJ2YWx1ZSI6InNzaC1yc2EgQSJ9XSwiam9iU1NIIjp7fSwiZ2l0aHViUEFU" \
    "IjoicyJ9"

static const char LIST[] =
    "{\"kind\":\"List\",\"items\":["
    "{\"metadata\":{\"name\":\"616c696365\"},\"data\":{\"username\":\"" ALICE
    "\",\"password\":\"" HASH_ENCODED "\",\"email\":\"" MAIL "\",\"grouplist\":\"" GROUPS
    "\",\"admin\":\"" TRUE "\",\"virtualCluster\":\"" CLUSTER "\",\"extension\":\"" EXTENSION
    "\"}},"
    "{\"metadata\":{\"name\":\"626f62\"},\"data\":{\"username\":\"" BOB "\",\"password\":\"\"}},"
    "{\"metadata\":{\"name\":\"torn\"},\"data\":{\"username\":\"" BOB "\",\"email\":\"%%%\"}},"
    "{\"metadata\":{\"name\":\"default-token\"},\"data\":{\"ca.crt\":\"" BOB "\"}}]}";

struct world {
    struct arena arena;
    struct openpai_output output;
};

static int world_make(void **state)
{
    static struct world world;
    world = (struct world){0};
    arena_init(&world.arena);
    *state = &world;
    return 0;
}

static int world_free(void **state)
{
    struct world *world = *state;
    openpai_output_release(&world->output);
    arena_release(&world->arena);
    return 0;
}

static void noted(const struct world *world, enum openpai_note_kind kind, const char *path,
                  const char *part)
{
    for (size_t i = 0; i < world->output.note_count; i++) {
        const struct openpai_note *note = &world->output.notes[i];
        if (note->kind == kind && strcmp(note->path, path) == 0 && strstr(note->text, part))
            return;
    }
    fail_msg("no note of %s: %s", path, part);
}

static void users_come_over(void **state)
{
    struct world *world = *state;
    struct err err = {0};
    json_t *secrets;
    static const char *known[] = {"lab"};
    assert_int_equal(openpai_secrets_read(text_of(LIST), &secrets, &err), 0);
    world->output.group_names = mem_copy_array(known, 1, sizeof *known);
    world->output.group_count = 1;
    openpai_users_take(secrets, &world->arena, &world->output);
    json_decref(secrets);
    assert_string_equal(
        buf_cstr(&world->output.users),
        "username,passwordHash,email,admin,virtualCluster,groups,extension\n"
        "\"alice\",\"" HASH "\",\"a@b.c\",\"true\",\"vision,speech\",\"default,lab\","
        "\"{\"\"sshKeys\"\":[{\"\"title\"\":\"\"t\"\",\"\"value\"\":\"\"ssh-rsa A\"\"}]}\"\n");
    noted(world, NOTE_TAKEN, "", "1 users are in users.csv");
    noted(world, NOTE_TO_DO, "alice", "the group x is in no file");
    noted(world, NOTE_TO_DO, "bob", "no hash of a password");
    noted(world, NOTE_TO_DO, "bob", "data.email cannot be read");
    noted(world, NOTE_TO_DO, "default-token", "it has no username");
    noted(world, NOTE_GONE, "extension.jobSSH", "keys of its own");
    noted(world, NOTE_GONE, "extension", "1 users have more");
}

/* OpenPAI hashes their object ids, which are no secrets. */
static void users_of_a_provider_bring_no_passwords(void **state)
{
    struct world *world = *state;
    struct err err = {0};
    json_t *secrets;
    assert_int_equal(openpai_secrets_read(text_of(LIST), &secrets, &err), 0);
    world->output.has_signon = true;
    openpai_users_take(secrets, &world->arena, &world->output);
    json_decref(secrets);
    assert_int_equal(world->output.users.length, 0);
    assert_int_equal(world->output.note_count, 1);
    noted(world, NOTE_TO_DO, "", "4 secrets are of users who logged in by OpenID Connect");
}

static void what_is_no_list(void **state)
{
    static const char *const TEXTS[][2] = {{"{", "line 1, column 1: "},
                                           {"[]", "no list with items"},
                                           {"{\"items\":{}}", "no list with items"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(TEXTS); i++) {
        struct err err = {0};
        json_t *secrets;
        assert_int_equal(openpai_secrets_read(text_of(TEXTS[i][0]), &secrets, &err), ERR_INVALID);
        if (!strstr(err.text, TEXTS[i][1]))
            fail_msg("'%s' is not in: %s", TEXTS[i][1], err.text);
    }
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_make, world_free)
static const struct CMUnitTest tests[] = {
    WORLD(users_come_over),
    WORLD(users_of_a_provider_bring_no_passwords),
    cmocka_unit_test(what_is_no_list),
};
UNIT_FILE(tests, NULL, NULL);
