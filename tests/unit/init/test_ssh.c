/* What ssh needs: keys in the home of the user, whom to reach, who may come. */
#include "run.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "init/exit_file.h"
#include "init/job_file.h"

/* Every v1 job has ssh, also where the image's user has no home to keep the keys in. */
static void ssh_without_home(void **state)
{
    (void)state;
    for (int format = JOB_FILE_V1; format <= JOB_FILE_V2; format++) {
        struct world w;
        char *home = strdup(getenv("HOME") ? getenv("HOME") : "/");
        world_init(&w, "echo ran");
        w.job.format = (uint8_t)format;
        w.role.is_ssh_enabled = true;
        w.role.is_ssh_optional = format == JOB_FILE_V1;
        w.task.has_ssh_barrier = true;
        w.task.ssh_private_key = w.task.ssh_public_key = "KEY";
        setenv("HOME", "/proc", 1); /* nothing can be made there */
        world_run(&w);
        setenv("HOME", home, 1);
        free(home);
        if (format == JOB_FILE_V1)
            end_is(&w, EXIT_STAGE_USER, 0, 0);
        else
            end_is(&w, EXIT_STAGE_SETUP, EXIT_FILE_SETUP, 0);
        folder_remove(w.root);
    }
}

/* What ssh needs lies in the user's home: whom to reach, who may come, and what a command that
 * comes that way finds in its environment. Without a port for it no server is started. */
static void ssh_files(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
    } FILES[] = {
        {"home/.ssh/config", "Host "},
        {"home/.ssh/authorized_keys", "ssh-ed25519 OWN\nssh-rsa ANOTHER\n"},
        {"home/.ssh/environment", "SKEP_INIT_TEST=here\n"},
    };
    struct world w;
    struct buf text = BUF_INIT;
    char *home = strdup(getenv("HOME") ? getenv("HOME") : "/");
    world_init(&w, "echo ran");
    mkdir(path_in(&w, "home"), 0755);
    w.role.is_ssh_enabled = true;
    w.role.port_count = 1;
    w.task.ssh_private_key = "KEY";
    w.task.ssh_public_key = "ssh-ed25519 OWN";
    w.task.ssh_authorized_keys = "ssh-rsa ANOTHER";
    setenv("HOME", path_in(&w, "home"), 1);
    setenv("SKEP_INIT_TEST", "here", 1);
    world_run(&w);
    setenv("HOME", home, 1);
    unsetenv("SKEP_INIT_TEST");
    free(home);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    for (size_t i = 0; i < COUNT_OF(FILES); i++) {
        read_whole(path_in(&w, FILES[i].name), &text);
        if (!strstr(buf_cstr(&text), FILES[i].says))
            fail_msg("%s says not %s but %s", FILES[i].name, FILES[i].says, buf_cstr(&text));
    }
    buf_release(&text);
    folder_remove(w.root);
}

/* A job that asks for ssh fails where the image has no server, unless it says that it can do
 * without. With a barrier the others must be told, which the barrier does. */
static void ssh_without_server(void **state)
{
    (void)state;
    static const struct {
        bool is_optional, has_barrier;
        enum exit_stage stage;
        int code;
    } rows[] = {{false, false, EXIT_STAGE_SETUP, EXIT_FILE_SSH_MISSING},
                {true, false, EXIT_STAGE_USER, 0},
                {true, true, EXIT_STAGE_USER, 0}};
    if (access("/usr/sbin/sshd", X_OK) == 0)
        skip(); /* this machine has one */
    char *home = strdup(getenv("HOME") ? getenv("HOME") : "/");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct world w;
        uint16_t ports[2] = {0, 1};
        world_init(&w, "echo ran");
        mkdir(path_in(&w, "home"), 0755);
        w.role.is_ssh_enabled = true;
        w.role.is_ssh_optional = rows[i].is_optional;
        w.role.port_count = 2;
        w.tasks[0].ports = ports;
        w.tasks[0].address = "127.0.0.1";
        w.task.has_ssh_barrier = rows[i].has_barrier;
        w.task.ssh_barrier_timeout_s = 600;
        w.task.ssh_private_key = w.task.ssh_public_key = "KEY";
        setenv("HOME", path_in(&w, "home"), 1);
        world_run(&w);
        end_is(&w, rows[i].stage, rows[i].code, 0);
        folder_remove(w.root);
    }
    setenv("HOME", home, 1);
    free(home);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ssh_without_server),
    cmocka_unit_test(ssh_without_home),
    cmocka_unit_test(ssh_files),
};
UNIT_FILE(tests, run_setup, NULL);
