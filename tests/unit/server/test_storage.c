/* The storages of a job: whose they are, and what is mounted. */
#include "space.h"
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "doc/problem.h"
#include "server/storage.h"
#include "spec/spec.h"
#include "store/store.h"

static const char FILE_HEAD[] = "protocolVersion: 2\nname: j\ntype: job\nprerequisites:\n"
                                "- {name: i, type: dockerimage, uri: d}\ntaskRoles:\n  w:\n"
                                "    dockerImage: i\n    resourcePerInstance: {cpu: 1, memoryMB: "
                                "1, gpu: 0}\n    commands: [x]\nextras:\n  storages: ";

static struct spec *spec_of(const char *storages)
{
    struct spec_parsed parsed = {0};
    struct problems problems;
    const char *text = arena_format(&arena, "%s%s\n", FILE_HEAD, storages);
    problems_init(&problems, &arena);
    assert_int_equal(spec_parse(text_of(text), &arena, &parsed, &problems), 0);
    problems_release(&problems);
    return parsed.spec;
}

static int make_for(bool has_claims, struct storage_list list, const char *user,
                    const char *storages, struct engine_mount *mounts, struct err *err)
{
    struct spec *spec = spec_of(storages);
    int code = storage_mounts_make(list, user, has_claims, spec, &arena, mounts, err);
    for (size_t i = 0; code == 0 && i < spec->storage_count; i++)
        mounts[i].target = arena_copy(&arena, text_of(mounts[i].target));
    spec_free(spec);
    return code;
}

static int make(struct storage_list list, const char *user, const char *storages,
                struct engine_mount *mounts, struct err *err)
{
    return make_for(false, list, user, storages, mounts, err);
}

static void mounts_of_a_job(void **state)
{
    const char *corpus = arena_copy(&arena, text_of(in_work("outside")));
    const char *homes = arena_copy(&arena, text_of(in_work("homes")));
    const struct storage items[] = {
        {.name = "corpus",
         .directory = corpus,
         .claim = "",
         .is_shared = true,
         .is_read_only = true},
        {.name = "home", .directory = homes, .claim = ""},
    };
    const struct storage_list list = {items, 2};
    struct engine_mount mounts[2];
    struct stat status;
    struct err err;
    (void)state;

    assert_int_equal(
        make(list, "ann", "[{name: home}, {name: corpus, mountPath: /c}]", mounts, &err), ERR_IO);
    assert_int_equal(mkdir(homes, 0755), 0);
    assert_int_equal(
        make(list, "ann", "[{name: home}, {name: corpus, mountPath: /c}]", mounts, &err), 0);
    /* outer folders first */
    assert_string_equal(mounts[0].source, corpus);
    assert_string_equal(mounts[0].target, "/c");
    assert_true(mounts[0].is_read_only);
    assert_string_equal(mounts[1].source, arena_format(&arena, "%s/ann", homes));
    assert_string_equal(mounts[1].target, "/mnt/home");
    assert_false(mounts[1].is_read_only);
    assert_int_equal(stat(mounts[1].source, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0777);
    /* a folder is not what somebody put in its place, nor another's */
    assert_int_equal(symlink("/", arena_format(&arena, "%s/eve", homes)), 0);
    assert_int_equal(make(list, "eve", "[{name: home}]", mounts, &err), ERR_IO);
    assert_int_equal(make(list, "..", "[{name: home}]", mounts, &err), ERR_INVALID);
    assert_int_equal(make(list, "ann", "[{name: gone}]", mounts, &err), ERR_INVALID);
    assert_string_equal(err.text, "storage gone is not configured any more");
}

static void claims_are_for_engines_that_mount_them(void **state)
{
    const char *corpus = arena_copy(&arena, text_of(in_work("claimed")));
    const struct storage items[] = {
        {.name = "corpus",
         .directory = corpus,
         .claim = "speech",
         .is_shared = true,
         .is_read_only = true},
        {.name = "home", .directory = "", .claim = "homes"},
        {.name = "disk", .directory = corpus, .claim = "", .is_shared = true},
    };
    const struct storage_list list = {items, COUNT_OF(items)};
    struct engine_mount mounts[3];
    struct err err;
    (void)state;

    assert_int_equal(mkdir(corpus, 0755), 0);
    assert_int_equal(make_for(true, list, "ann", "[{name: corpus}]", mounts, &err), 0);
    assert_string_equal(mounts[0].claim, "speech");
    assert_string_equal(mounts[0].claim_folder, "");
    assert_true(mounts[0].is_read_only);
    assert_int_equal(make_for(true, list, "ann", "[{name: home}]", mounts, &err), 0);
    assert_string_equal(mounts[0].claim, "homes");
    assert_string_equal(mounts[0].claim_folder, "ann");
    assert_int_equal(make_for(true, list, "..", "[{name: home}]", mounts, &err), ERR_INVALID);
    /* one that has no claim is the folder of the machine, for any engine */
    assert_int_equal(make_for(true, list, "ann", "[{name: disk}]", mounts, &err), 0);
    assert_null(mounts[0].claim);
    assert_string_equal(mounts[0].source, corpus);
    /* and an engine without claims takes the folder, where there is one */
    assert_int_equal(make(list, "ann", "[{name: corpus}]", mounts, &err), 0);
    assert_null(mounts[0].claim);
    assert_string_equal(mounts[0].source, corpus);
    assert_int_equal(make(list, "ann", "[{name: home}]", mounts, &err), ERR_INVALID);
    assert_string_equal(err.text,
                        "storage home is a claim of Kubernetes clusters, and no directory");
}

/* A group whose first storage, the default of its members, is this one. */
static struct store_change group_change(const char *name, const char *extension)
{
    return (struct store_change){
        .kind = CHANGE_GROUP_ADD,
        .group = {.name = name, .description = "", .extension_json = extension}};
}

static struct store_change user_change(const char *name, struct store_member *groups, size_t count)
{
    return (struct store_change){.kind = CHANGE_USER_ADD,
                                 .user = {.name = name,
                                          .password_hash = "",
                                          .email = "",
                                          .extension_json = "{}",
                                          .groups = {groups, count}}};
}

/* Ann's defaults are "speech" and "gone", Bob's is "gone", Carl has none. */
static struct store *accounts_make(struct err *err)
{
    struct store *store;
    struct store_member both[] = {{.name = "audio"}, {.name = "past"}};
    struct store_change changes[] = {
        group_change("audio", "{\"acls\":{\"storageConfigs\":[\"speech\",\"corpus\"]}}"),
        group_change("past", "{\"acls\":{\"storageConfigs\":[\"gone\"]}}"),
        user_change("ann", both, 2),
        user_change("bob", both + 1, 1),
        user_change("carl", NULL, 0),
    };
    const struct store_batch batch = {.changes = changes, .change_count = COUNT_OF(changes)};
    const char *directory = in_work("store");
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(store_open(directory, &store, err), 0);
    assert_int_equal(store_commit(store, &batch, err), 0);
    for (size_t i = 0; i < COUNT_OF(changes); i++)
        assert_int_equal(changes[i].code, 0);
    return store;
}

/* What is mounted for an empty list of this user, and what the user is told of it. */
static void assert_defaults(struct store_reader *reader, const char *user, const char *mounted,
                            const char *told)
{
    static const struct storage items[] = {{.name = "corpus"}, {.name = "speech"}};
    const struct storage_list list = {items, COUNT_OF(items)};
    struct spec *spec = spec_of("[]");
    cleanup_problems struct problems problems;
    cleanup_buf struct buf names = BUF_INIT, words = BUF_INIT;
    struct err err;
    problems_init(&problems, &arena);
    assert_int_equal(storage_submit_check(list, reader, user, spec, &problems, &arena, &err), 0);
    for (size_t i = 0; i < spec->storage_count; i++)
        buf_format(&names, "%s;", spec->storages[i].name);
    for (size_t i = 0; i < problems.count; i++)
        buf_format(&words, "%s;", problems.items[i].text);
    assert_string_equal(buf_cstr(&names), mounted);
    assert_string_equal(buf_cstr(&words), told);
    assert_int_equal(problems.error_count, 0);
    spec_free(spec);
}

static void an_empty_list_means_the_defaults_that_are_there(void **state)
{
    struct store_reader *reader;
    struct err err;
    (void)state;
    struct store *store = accounts_make(&err);
    assert_int_equal(store_reader_open(store, &reader, &err), 0);
    assert_defaults(reader, "ann", "speech;",
                    "your default storage gone is not there: it is not mounted;");
    assert_defaults(reader, "bob", "",
                    "your default storage gone is not there: it is not mounted;"
                    "you have no default storage: nothing is mounted;");
    assert_defaults(reader, "carl", "", "you have no default storage: nothing is mounted;");
    store_reader_close(reader);
    store_close(store);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(mounts_of_a_job),
    cmocka_unit_test(claims_are_for_engines_that_mount_them),
    cmocka_unit_test(an_empty_list_means_the_defaults_that_are_there),
};
UNIT_FILE(tests, setup, teardown);
