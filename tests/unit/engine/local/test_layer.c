/* Metadata layers: what a tree of them says of an image's files, and what an overlay on it shows.
 */
#include "folder.h"
#include "unit.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/local/layer.h"
#include "sys/ids.h"

enum { FIRST = 40 * ID_RANGE_IDS, NOBODY = 20 * ID_RANGE_IDS };

/* file capabilities of version 2: the one for raw sockets */
static const char capability[20] = {1, 0, 0, 2, 0, 32};

static void image_make(void)
{
    folder_put("image/etc/passwd", "root:x:0:0::/:/bin/sh\n");
    folder_put("image/bin/su", "a program\n");
    folder_put("image/home/strange", "of a high id\n");
    folder_put("image/home/empty", "");
    folder_put("points/proc/nothing", "");
    folder_put("points/etc/more", "");
    char target[300];
    snprintf(target, sizeof target, "%s", in_folder("image/bin/su"));
    assert_int_equal(link(target, in_folder("image/bin/sudo")), 0);
    assert_int_equal(symlink("passwd", in_folder("image/etc/link")), 0);
    assert_int_equal(mkfifo(in_folder("image/etc/pipe"), 0640), 0);
    assert_int_equal(chown(target, 5, 6), 0);
    assert_int_equal(chmod(target, 06755), 0);
    assert_int_equal(setxattr(target, "security.capability", capability, sizeof capability, 0), 0);
    assert_int_equal(chown(in_folder("image/home/strange"), 70000, 65535), 0);
    assert_int_equal(chmod(in_folder("image/home"), 02711), 0);
    const struct timespec times[] = {{.tv_sec = 1000}, {.tv_sec = 2000}};
    assert_int_equal(utimensat(AT_FDCWD, in_folder("image/home"), times, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, target, times, 0), 0);
}

static int made(const char *image_name, const char *folder, uint64_t *entries, struct err *err)
{
    char image[300], points[300], path[300];
    snprintf(image, sizeof image, "%s", in_folder(image_name));
    snprintf(points, sizeof points, "%s", in_folder("points"));
    snprintf(path, sizeof path, "%s", in_folder(folder));
    mkdir(path, 0700);
    const struct layer_order order = {
        .lower = {image, points}, .folder = path, .first = FIRST, .nobody = NOBODY};
    return layer_make(&order, entries, err);
}

static struct stat stat_of(const char *name)
{
    struct stat stat;
    assert_int_equal(lstat(in_folder(name), &stat), 0);
    return stat;
}

static bool has_attribute(const char *name, const char *attribute)
{
    return lgetxattr(in_folder(name), attribute, NULL, 0) >= 0;
}

static void a_layer_has_all_but_the_data(void **state)
{
    (void)state;
    struct err err = {0};
    uint64_t entries = 0;
    if (geteuid() != 0)
        skip();
    made("image", "one", &entries, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(entries, 13);
    const struct {
        const char *name;
        uint32_t user, group;
        mode_t mode;
    } files[] = {
        {"one/upper", FIRST, FIRST, S_IFDIR | 0755},
        {"one/upper/etc/link", FIRST, FIRST, S_IFLNK | 0777},
        {"one/upper/etc/pipe", FIRST, FIRST, S_IFIFO | 0640},
        {"one/upper/bin/su", FIRST + 5, FIRST + 6, S_IFREG | 06755},
        {"one/upper/home", FIRST, FIRST, S_IFDIR | 02711},
        {"one/upper/home/strange", NOBODY, FIRST + 65535, 0},
        {"one/upper/proc", FIRST, FIRST, 0},
        {"one/upper/etc/more", FIRST, FIRST, 0},
    };
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        const struct stat stat = stat_of(files[i].name);
        assert_int_equal(stat.st_uid, files[i].user);
        assert_int_equal(stat.st_gid, files[i].group);
        if (files[i].mode)
            assert_int_equal(stat.st_mode, files[i].mode);
    }
    const struct stat su = stat_of("one/upper/bin/su"), sudo = stat_of("one/upper/bin/sudo");
    assert_int_equal(su.st_ino, sudo.st_ino);
    assert_int_equal(su.st_size, 10);
    assert_int_equal(su.st_blocks * 512 < 8192, true);
    assert_int_equal(su.st_mtim.tv_sec, 2000);
    assert_int_equal(stat_of("one/upper/home").st_mtim.tv_sec, 2000);
    assert_true(has_attribute("one/upper/bin/su", "trusted.overlay.metacopy"));
    assert_true(has_attribute("one/upper/bin/su", "security.capability"));
    assert_false(has_attribute("one/upper/home/empty", "trusted.overlay.metacopy"));
    assert_false(has_attribute("one/upper/etc", "trusted.overlay.metacopy"));
}

/* An image that says that a file's data are another file's. */
static void attributes_of_overlays_are_not_taken_over(void **state)
{
    (void)state;
    struct err err = {0};
    uint64_t entries;
    if (geteuid() != 0)
        skip();
    folder_put("hostile/data", "its own");
    folder_put("hostile/below/x", "");
    char target[300];
    snprintf(target, sizeof target, "%s", in_folder("hostile/data"));
    assert_int_equal(setxattr(target, "trusted.overlay.redirect", "/secret", 7, 0), 0);
    assert_int_equal(setxattr(target, "user.mine", "1", 1, 0), 0);
    assert_int_equal(setxattr(in_folder("hostile/below"), "trusted.overlay.opaque", "y", 1, 0), 0);
    assert_int_equal(made("hostile", "two", &entries, &err), 0);
    assert_false(has_attribute("two/upper/data", "trusted.overlay.redirect"));
    assert_true(has_attribute("two/upper/data", "user.mine"));
    assert_false(has_attribute("two/upper/below", "trusted.overlay.opaque"));
}

static bool say_stop(void *context)
{
    return ++*(int *)context > 2;
}

static void making_one_can_be_ended(void **state)
{
    (void)state;
    struct err err = {0};
    uint64_t entries;
    int asked = 0;
    char image[300], path[300], name[60];
    if (geteuid() != 0)
        skip();
    for (int i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "many/%d", i);
        folder_put(name, "");
    }
    snprintf(image, sizeof image, "%s", in_folder("many"));
    snprintf(path, sizeof path, "%s", in_folder("three"));
    mkdir(path, 0700);
    const struct layer_order order = {.lower = {image},
                                      .folder = path,
                                      .first = FIRST,
                                      .nobody = NOBODY,
                                      .is_stopping = say_stop,
                                      .context = &asked};
    assert_int_equal(layer_make(&order, &entries, &err), ERR_BUSY);
    assert_true(entries > 0 && entries < 400);
}

static void folders_too_deep_are_refused(void **state)
{
    (void)state;
    struct err err = {0};
    uint64_t entries;
    char image[300], path[300];
    if (geteuid() != 0)
        skip();
    snprintf(image, sizeof image, "%s", in_folder("deep"));
    mkdir(image, 0755);
    int at = open(image, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i <= LAYER_DEPTH_MAX; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        const int below = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = below;
    }
    close(at);
    snprintf(path, sizeof path, "%s", in_folder("four"));
    mkdir(path, 0700);
    const struct layer_order order = {
        .lower = {image}, .folder = path, .first = FIRST, .nobody = NOBODY};
    assert_int_equal(layer_make(&order, &entries, &err), ERR_TOO_BIG);
    assert_non_null(strstr(err.text, "nested more than 256 deep"));
}

static void access_lists_name_the_jobs_ids(void **state)
{
    (void)state;
    const struct layer_order order = {.first = FIRST, .nobody = NOBODY};
    const struct {
        uint16_t tag;
        uint32_t id, wanted;
    } entries[] = {{ACL_USER_OBJ, UINT32_MAX, UINT32_MAX},
                   {ACL_USER, 1000, FIRST + 1000},
                   {ACL_GROUP, 70000, NOBODY},
                   {ACL_MASK, UINT32_MAX, UINT32_MAX}};
    struct posix_acl_xattr_header header = {.a_version = htole32(POSIX_ACL_XATTR_VERSION)};
    struct posix_acl_xattr_entry entry;
    unsigned char list[sizeof header + COUNT_OF(entries) * sizeof entry];
    memcpy(list, &header, sizeof header);
    for (size_t i = 0; i < COUNT_OF(entries); i++) {
        entry = (struct posix_acl_xattr_entry){
            .e_tag = htole16(entries[i].tag), .e_perm = htole16(4), .e_id = htole32(entries[i].id)};
        memcpy(list + sizeof header + i * sizeof entry, &entry, sizeof entry);
    }
    assert_true(layer_list_map(&order, list, sizeof list));
    for (size_t i = 0; i < COUNT_OF(entries); i++) {
        memcpy(&entry, list + sizeof header + i * sizeof entry, sizeof entry);
        assert_int_equal(le32toh(entry.e_id), entries[i].wanted);
    }
    assert_false(layer_list_map(&order, list, sizeof list - 1));
    assert_false(layer_list_map(&order, list, 2));
    list[0] = 9; /* another version */
    assert_false(layer_list_map(&order, list, sizeof list));
}

/* In a mount namespace of its own: 0 when the overlay shows what it must. */
static int overlay_look(const char *options, const char *merged)
{
    char path[400], text[40] = "";
    struct stat stat;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("overlay", merged, "overlay", 0, options) < 0)
        return 77;
    snprintf(path, sizeof path, "%s/bin/sudo", merged);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) != 10 || strcmp(text, "a program\n") != 0)
        return 2;
    return lstat(path, &stat) == 0 && stat.st_uid == FIRST + 5 ? 0 : 3;
}

static void an_overlay_on_it_shows_the_images_data(void **state)
{
    (void)state;
    struct err err = {0};
    uint64_t entries;
    if (geteuid() != 0)
        skip();
    assert_int_equal(made("image", "five", &entries, &err), 0);
    static const char *const parts[] = {"up", "work", "merged"};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        mkdir(in_folder(parts[i]), 0755);
    char options[2000], folder[300], merged[300];
    snprintf(folder, sizeof folder, "%s", in_folder(""));
    snprintf(merged, sizeof merged, "%s", in_folder("merged"));
    snprintf(options, sizeof options,
             "lowerdir=%s/five/upper:%s/image,upperdir=%s/up,workdir=%s/work,metacopy=on", folder,
             folder, folder, folder);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(overlay_look(options, merged));
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip(); /* no overlays on this file system */
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a mount namespace of its own, where a file system is mounted in the image. */
static int mounted_make(const char *point)
{
    struct err err = {0};
    uint64_t entries;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", point, "tmpfs", 0, NULL) < 0)
        return 77;
    folder_put("image/data/theirs", "of another file system\n");
    if (made("image", "six", &entries, &err) < 0)
        return 2;
    return access(in_folder("six/upper/data/theirs"), F_OK) < 0 &&
                   access(in_folder("six/upper/data/ours"), F_OK) == 0
               ? 0
               : 3;
}

static void what_is_mounted_in_an_image_is_not_of_it(void **state)
{
    (void)state;
    char point[300];
    if (geteuid() != 0)
        skip();
    folder_put("image/data/ours", "below the mount\n");
    snprintf(point, sizeof point, "%s", in_folder("image/data"));
    const pid_t pid = fork();
    if (pid == 0)
        _exit(mounted_make(point));
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip(); /* nothing may be mounted here */
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int setup(void **state)
{
    const int code = folder_setup(state);
    if (code == 0 && geteuid() == 0)
        image_make();
    return code;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_layer_has_all_but_the_data),
    cmocka_unit_test(attributes_of_overlays_are_not_taken_over),
    cmocka_unit_test(making_one_can_be_ended),
    cmocka_unit_test(folders_too_deep_are_refused),
    cmocka_unit_test(access_lists_name_the_jobs_ids),
    cmocka_unit_test(an_overlay_on_it_shows_the_images_data),
    cmocka_unit_test(what_is_mounted_in_an_image_is_not_of_it),
};
UNIT_FILE(tests, setup, folder_teardown);
