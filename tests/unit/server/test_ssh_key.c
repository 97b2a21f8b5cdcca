/* The ssh key of a job is the same each time. */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/container.h"
#include "sys/file.h"
#include "sys/secret.h"

static void a_jobs_ssh_key_is_the_same_each_time(void **state)
{
    uint8_t master[SECRET_KEY_SIZE], epoch_key[SECRET_KEY_SIZE];
    struct arena arena;
    const char *private_key, *public_key, *again, *other;
    char path[100], command[200], line[400] = "";
    struct err err;
    FILE *pipe;
    (void)state;

    arena_init(&arena);
    secret_random(master, sizeof master);
    ssh_key_make(master, (struct job_id){7}, "alice~train", &arena, &private_key, &public_key);
    ssh_key_make(master, (struct job_id){7}, "alice~train", &arena, &again, &other);
    assert_string_equal(private_key, again);
    ssh_key_make(master, (struct job_id){8}, "alice~train", &arena, &again, &other);
    assert_string_not_equal(public_key, other);
    /* nor has the job of another epoch the same, should it have the number */
    epoch_key_make(master, &(struct store_epoch){.number = 0, .id = 5}, epoch_key);
    assert_memory_equal(epoch_key, master, sizeof master);
    epoch_key_make(master, &(struct store_epoch){.number = 1, .id = 5}, epoch_key);
    ssh_key_make(epoch_key, (struct job_id){7}, "alice~train", &arena, &again, &other);
    assert_string_not_equal(public_key, other);
    if (access("/usr/bin/ssh-keygen", X_OK) == 0) { /* OpenSSH takes it for its own */
        snprintf(path, sizeof path, "%s/key", in_folder(""));
        assert_int_equal(file_write(path, text_of(private_key), 0600, &err), 0);
        snprintf(command, sizeof command, "ssh-keygen -y -f %s", path);
        pipe = popen(command, "r");
        assert_non_null(fgets(line, sizeof line, pipe));
        assert_int_equal(pclose(pipe), 0);
        line[strcspn(line, "\n")] = '\0';
        assert_string_equal(line, public_key);
    }
    arena_release(&arena);
}

static int begin(void **state)
{
    return secret_init(NULL) < 0 ? -1 : folder_setup(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_jobs_ssh_key_is_the_same_each_time),
};
UNIT_FILE(tests, begin, folder_teardown);
