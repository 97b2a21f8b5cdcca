/* Files of a storage whose tasks change it meanwhile: nothing outside is reached, nothing but plain
 * files and folders is opened. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "files/tree.h"
#include "model/storage.h"
#include "sys/cleanup.h"
#include "sys/file.h"

static char folder[64], directory[80];
static struct storage storage;
static struct files_root root;

static const char *place(const char *name)
{
    static char paths[4][300];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    struct err err = {0};
    assert_int_equal(file_write(place(name), text_of(text), 0644, &err), 0);
}

/* storage/: a folder with a file; outside/: what nobody may reach. */
static int setup(void **state)
{
    struct err err = {0};
    (void)state;
    strcpy(folder, "/tmp/skep-test-files-XXXXXX");
    if (!mkdtemp(folder) || mkdir(place("storage"), 0755) || mkdir(place("outside"), 0755) ||
        mkdir(place("storage/data"), 0755))
        return -1;
    put("outside/secret", "a secret");
    put("storage/data/words", "one two");
    snprintf(directory, sizeof directory, "%s/storage", folder);
    storage = (struct storage){.name = "s", .directory = directory, .is_shared = true};
    return files_root_open(&storage, "ann", 1, &root, &err);
}

static int teardown(void **state)
{
    (void)state;
    char command[160];
    files_root_release(&root);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static struct files_path path_of(const char *text)
{
    struct files_path path;
    struct err err = {0};
    assert_int_equal(files_path_parse(text_of(text), "path", &path, &err), 0);
    return path;
}

/* What is in the file, or why it cannot be opened. */
static int read_file(const char *name, char text[64])
{
    const struct files_path path = path_of(name);
    struct stat stat;
    struct err err = {0};
    cleanup_close int fd = files_open(&root, &path, &stat, &err);
    if (fd < 0)
        return fd;
    const ssize_t length = read(fd, text, 63);
    assert_true(length >= 0);
    text[length] = '\0';
    return 0;
}

static int call(int (*function)(const struct files_root *, const struct files_path *, struct err *),
                const char *name)
{
    const struct files_path path = path_of(name);
    struct err err = {0};
    return function(&root, &path, &err);
}

static int rename_to(const char *from, const char *to)
{
    const struct files_path old = path_of(from), new = path_of(to);
    struct err err = {0};
    return files_rename(&root, &old, &new, &err);
}

static void test_read(void **state)
{
    char text[64];
    (void)state;
    assert_int_equal(read_file("data/words", text), 0);
    assert_string_equal(text, "one two");
    assert_int_equal(read_file("data/none", text), ERR_NOT_FOUND);
    assert_int_equal(read_file("none/words", text), ERR_NOT_FOUND);
    assert_int_equal(read_file("data/words/deeper", text), ERR_INVALID);
    assert_int_equal(read_file("data", text), ERR_INVALID);
    assert_int_equal(read_file("", text), ERR_INVALID);
}

static void test_links_lead_nowhere(void **state)
{
    char text[64];
    (void)state;
    assert_int_equal(symlink("../../outside", place("storage/data/out")), 0);
    assert_int_equal(symlink(place("outside"), place("storage/data/far")), 0);
    assert_int_equal(symlink("words", place("storage/data/near")), 0);
    assert_int_equal(symlink("/proc/self/root/etc", place("storage/data/magic")), 0);
    assert_int_equal(read_file("data/out/secret", text), ERR_INVALID);
    assert_int_equal(read_file("data/far/secret", text), ERR_INVALID);
    assert_int_equal(read_file("data/near", text), ERR_INVALID);
    assert_int_equal(read_file("data/magic/passwd", text), ERR_INVALID);
    assert_int_equal(call(files_make_folder, "data/out/new"), ERR_INVALID);
    assert_int_equal(call(files_remove, "data/out/secret"), ERR_INVALID);
    assert_int_equal(rename_to("data/words", "data/out/words"), ERR_INVALID);
    /* the link itself is a name as others are */
    assert_int_equal(rename_to("data/out", "data/away"), 0);
    assert_int_equal(call(files_remove, "data/away"), 0);
    assert_int_equal(access(place("outside/secret"), F_OK), 0);
    assert_int_equal(call(files_remove, "data/far"), 0);
    assert_int_equal(call(files_remove, "data/near"), 0);
    assert_int_equal(call(files_remove, "data/magic"), 0);
}

/* Opened, a FIFO would keep the thread for ever; the test would not end. */
static void test_what_is_no_file_is_not_opened(void **state)
{
    char text[64];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)state;
    assert_int_equal(mkfifo(place("storage/data/fifo"), 0666), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", place("storage/data/socket"));
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(read_file("data/fifo", text), ERR_INVALID);
    assert_int_equal(read_file("data/socket", text), ERR_INVALID);
    assert_int_equal(read_file("data/fifo/x", text), ERR_INVALID);
    assert_int_equal(call(files_remove, "data/fifo"), 0);
    assert_int_equal(call(files_remove, "data/socket"), 0);
}

static void test_list(void **state)
{
    struct arena arena;
    struct err err = {0};
    (void)state;
    arena_init(&arena);
    assert_int_equal(mkfifo(place("storage/data/fifo"), 0666), 0);
    assert_int_equal(mkdir(place("storage/data/below"), 0755), 0);
    const struct files_path path = path_of("data");
    cleanup_array struct files_listing listing = {0};
    assert_int_equal(files_list(&root, &path, &arena, &listing, &err), 0);
    assert_int_equal(listing.count, 3);
    assert_string_equal(listing.items[0].name, "below");
    assert_int_equal(listing.items[0].kind, FILES_FOLDER);
    assert_string_equal(listing.items[1].name, "fifo");
    assert_int_equal(listing.items[1].kind, FILES_OTHER);
    assert_string_equal(listing.items[2].name, "words");
    assert_int_equal(listing.items[2].kind, FILES_FILE);
    assert_int_equal(listing.items[2].size, 7);
    assert_true(listing.items[2].changed_ms > 0);
    const struct files_path file = path_of("data/words");
    cleanup_array struct files_listing none = {0};
    assert_int_equal(files_list(&root, &file, &arena, &none, &err), ERR_INVALID);
    assert_int_equal(call(files_remove, "data/fifo"), 0);
    assert_int_equal(call(files_remove, "data/below"), 0);
    arena_release(&arena);
}

static void test_changes(void **state)
{
    struct stat made;
    (void)state;
    const mode_t before = umask(077); /* the server's own */
    assert_int_equal(call(files_make_folder, "data/new"), 0);
    umask(before);
    assert_int_equal(stat(place("storage/data/new"), &made), 0);
    assert_int_equal(made.st_mode & 07777, 0755);
    assert_int_equal(call(files_make_folder, "data/new"), ERR_CONFLICT);
    assert_int_equal(call(files_make_folder, ""), ERR_INVALID);
    assert_int_equal(rename_to("data/words", "data/new/text"), 0);
    assert_int_equal(call(files_remove, "data/new"), ERR_CONFLICT);
    assert_int_equal(rename_to("data/new", "data/new/below"), ERR_INVALID);
    put("storage/data/words", "other");
    assert_int_equal(rename_to("data/new/text", "data/words"), ERR_CONFLICT);
    assert_int_equal(call(files_remove, "data/words"), 0);
    assert_int_equal(rename_to("data/new/text", "data/words"), 0);
    assert_int_equal(call(files_remove, "data/new"), 0);
    assert_int_equal(call(files_remove, "data/new"), ERR_NOT_FOUND);
    assert_int_equal(call(files_remove, ""), ERR_INVALID);
}

static void test_read_only(void **state)
{
    char text[64];
    (void)state;
    root.is_read_only = true;
    assert_int_equal(read_file("data/words", text), 0);
    assert_int_equal(call(files_make_folder, "data/no"), ERR_FORBIDDEN);
    assert_int_equal(call(files_remove, "data/words"), ERR_FORBIDDEN);
    assert_int_equal(rename_to("data/words", "data/no"), ERR_FORBIDDEN);
    root.is_read_only = false;
}

struct swap {
    atomic_bool is_over;
    char link[300], name[300];
};

/* Puts a link in the place of a folder as soon as there is one. */
static void *swap_run(void *context)
{
    const struct swap *swap = context;
    while (!atomic_load(&swap->is_over))
        renameat2(AT_FDCWD, swap->link, AT_FDCWD, swap->name, RENAME_EXCHANGE);
    return NULL;
}

/* A folder of a user that is exchanged for a link while it is made: what the link names stays as it
 * is. By chance, but rarely missed. */
static void test_folders_of_users_exchanged(void **state)
{
    enum { ROUNDS = 600 };
    struct storage homes = storage;
    struct swap swap = {0};
    struct stat before, after;
    pthread_t thread;
    (void)state;
    homes.is_shared = false;
    assert_int_equal(stat(place("outside"), &before), 0);
    snprintf(swap.link, sizeof swap.link, "%s", place("link"));
    snprintf(swap.name, sizeof swap.name, "%s", place("storage/eve"));
    assert_int_equal(pthread_create(&thread, NULL, swap_run, &swap), 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct files_root own;
        struct err err = {0};
        assert_int_equal(symlink("../outside", swap.link), 0);
        if (files_root_open(&homes, "eve", 1, &own, &err) == 0)
            files_root_release(&own);
        while (unlink(swap.link) < 0 && unlink(swap.name) < 0)
            continue; /* one of them is the link, … */
        while (rmdir(swap.link) < 0 && rmdir(swap.name) < 0)
            continue; /* … and the other one the folder */
    }
    atomic_store(&swap.is_over, true);
    pthread_join(thread, NULL);
    assert_int_equal(stat(place("outside"), &after), 0);
    assert_int_equal(after.st_mode, before.st_mode);
}

static void test_folders_of_users(void **state)
{
    struct storage homes = storage;
    struct files_root own;
    struct stat made;
    struct err err = {0};
    (void)state;
    homes.is_shared = false;
    assert_int_equal(files_root_open(&homes, "ann", 1, &own, &err), 0);
    assert_int_equal(stat(place("storage/ann"), &made), 0);
    assert_int_equal(made.st_mode & 07777, 0777);
    files_root_release(&own);
    assert_int_equal(files_root_open(&homes, "..", 1, &own, &err), ERR_INVALID);
    assert_int_equal(symlink("../outside", place("storage/eve")), 0);
    assert_true(files_root_open(&homes, "eve", 1, &own, &err) < 0);
    homes.directory = "";
    assert_int_equal(files_root_open(&homes, "ann", 1, &own, &err), ERR_UNSUPPORTED);
    homes.directory = place("none");
    assert_int_equal(files_root_open(&homes, "ann", 1, &own, &err), ERR_UNAVAILABLE);
    assert_int_equal(unlink(place("storage/eve")), 0);
    assert_int_equal(rmdir(place("storage/ann")), 0);
}

/* As a task: a folder is exchanged for a link to the outside and back, as fast as it goes. */
static atomic_bool is_over;
static void *exchange_run(void *context)
{
    (void)context;
    while (!atomic_load(&is_over))
        renameat2(AT_FDCWD, place("storage/swap"), AT_FDCWD, place("storage/link"),
                  RENAME_EXCHANGE);
    return NULL;
}

static void test_a_folder_that_is_exchanged(void **state)
{
    enum { TRIES = 4000 };
    pthread_t thread;
    char text[64];
    unsigned inside = 0;
    (void)state;
    assert_int_equal(mkdir(place("storage/swap"), 0755), 0);
    put("storage/swap/secret", "inside");
    assert_int_equal(symlink("../outside", place("storage/link")), 0);
    atomic_store(&is_over, false);
    assert_int_equal(pthread_create(&thread, NULL, exchange_run, NULL), 0);
    for (unsigned i = 0; i < TRIES || !inside; i++) {
        const char *name = i % 2 ? "swap/secret" : "link/secret";
        if (read_file(name, text) == 0) {
            inside++;
            if (strcmp(text, "inside") != 0)
                break;
        }
        call(files_make_folder, i % 2 ? "swap/made" : "link/made");
        call(files_remove, i % 2 ? "link/made" : "swap/made");
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    assert_string_equal(text, "inside");
    assert_int_not_equal(access(place("outside/made"), F_OK), 0);
    assert_int_equal(access(place("outside/secret"), F_OK), 0);
}

/* With rootSquash, as root: folders belong to the owner, and root's are left alone. */
static void test_squashed(void **state)
{
    struct storage squashed = storage;
    struct files_root own;
    struct stat made;
    struct err err = {0};
    const struct files_path path = path_of("team/new"), other = path_of("team/roots/new");
    const struct files_path roots = path_of("team/roots");
    (void)state;
    if (geteuid() != 0) /* nobody else can give files away */
        skip();
    squashed.is_root_squashed = true;
    assert_int_equal(mkdir(place("storage/team"), 0755), 0);
    assert_int_equal(mkdir(place("storage/team/roots"), 0755), 0);
    assert_int_equal(chown(place("storage/team"), 1234, 1235), 0);
    assert_int_equal(chown(place("storage"), 1234, 1235), 0);
    assert_int_equal(files_root_open(&squashed, "ann", 1, &own, &err), 0);
    assert_int_equal(files_make_folder(&own, &path, &err), 0);
    assert_int_equal(stat(place("storage/team/new"), &made), 0);
    assert_int_equal(made.st_uid, 1234);
    assert_int_equal(made.st_gid, 1235);
    assert_int_equal(files_make_folder(&own, &other, &err), ERR_FORBIDDEN);
    assert_int_equal(files_make_folder(&own, &roots, &err), ERR_CONFLICT);
    assert_int_equal(chmod(place("storage/team/roots"), 01777), 0);
    assert_int_equal(files_make_folder(&own, &other, &err), 0);
    assert_int_equal(files_remove(&own, &other, &err), ERR_FORBIDDEN);
    files_root_release(&own);
    assert_int_equal(chown(place("storage"), 0, 0), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_read),
    cmocka_unit_test(test_links_lead_nowhere),
    cmocka_unit_test(test_what_is_no_file_is_not_opened),
    cmocka_unit_test(test_list),
    cmocka_unit_test(test_changes),
    cmocka_unit_test(test_read_only),
    cmocka_unit_test(test_folders_of_users),
    cmocka_unit_test(test_folders_of_users_exchanged),
    cmocka_unit_test(test_a_folder_that_is_exchanged),
    cmocka_unit_test(test_squashed),
};
UNIT_FILE(tests, setup, teardown);
