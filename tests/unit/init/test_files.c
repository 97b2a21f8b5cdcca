/* The formats in /skep: what is written is read back; damage is found, never believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "init/exit_file.h"
#include "init/job_file.h"
#include "init/task_file.h"

static const struct job_file_port PS_PORTS[] = {{"http", 1, 0}, {"ssh", 1, 0}};
static const struct job_file_port WORKER_PORTS[] = {{"http", 2, 0}, {"ssh", 1, 0}, {"tb", 1, 6006}};
static const struct job_file_role ROLES[] = {
    {.name = "ps_server",
     .instances = 1,
     .cpu = 2,
     .memory_mib = 8192,
     .min_failed = 1,
     .min_succeeded = -1,
     .ports = PS_PORTS,
     .port_count = 2},
    {.name = "worker",
     .instances = 2,
     .cpu = 4,
     .gpu = 4,
     .memory_mib = 16384,
     .shm_mib = 64,
     .min_failed = 1,
     .min_succeeded = 2,
     .is_ssh_enabled = true,
     .ports = WORKER_PORTS,
     .port_count = 3},
};
static const struct job_file_task TASKS[] = {
    {"10.0.0.1", "n1", (const uint16_t[]){5001, 5002}},
    {"10.0.0.3", "n3", (const uint16_t[]){5201, 5203, 6006}},
    {"10.0.0.2", "n2", (const uint16_t[]){65535, 5303, 6006}},
};
static const struct job_file_pair ENVS[] = {{"A", "1"}, {"B", "two words\n"}};
static const struct job_file JOB = {
    .format = JOB_FILE_V1,
    .name = "tfdist",
    .user = "alice",
    .virtual_cluster = "vc1",
    .id = 77,
    .attempt = 3,
    .is_gang = true,
    .is_namespaced = true,
    .kill_all_on_completed = 2,
    .fs_uri = "hdfs://nn:9000",
    .data_dir = "$PAI_DEFAULT_FS_URI/d",
    .output_dir = "",
    .code_dir = "/c",
    .envs = ENVS,
    .env_count = 2,
    .roles = ROLES,
    .role_count = 2,
    .tasks = TASKS,
    .task_count = 3,
};
static const struct task_file TASK = {
    .attempt_id = 1ULL << 40,
    .container = "skep-1099511627776",
    .role = 1,
    .index = 1,
    .task_attempt = 2,
    .retries = 1,
    .gpus = (const uint16_t[]){4, 5},
    .gpu_count = 2,
    .is_gpu_simulated = true,
    .pre_command = "true",
    .command = "echo hi\n",
    .post_command = "",
    .ssh_private_key = "KEY",
    .ssh_public_key = "ssh-ed25519 AAAA skep",
    .ssh_authorized_keys = "ssh-rsa B me",
    .has_ssh_barrier = true,
    .ssh_barrier_timeout_s = 60,
    .barrier_url = "http://127.0.0.1:1/b",
    .barrier_token = "t",
    .barrier_timeout_s = 600,
    .code_path = "/files/alice/code",
    .segment_bytes = 4096,
};

static void job_round_trip(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT, again = BUF_INIT;
    struct arena arena;
    struct job_file job;
    struct err err = {0};
    arena_init(&arena);
    job_file_write(&JOB, &bytes);
    assert_int_equal(job_file_read(buf_as_text(&bytes), &arena, &job, &err), 0);
    assert_string_equal(job.roles[1].ports[2].label, "tb");
    assert_int_equal(job.roles[0].min_succeeded, -1);
    assert_int_equal(job.tasks[2].ports[0], 65535);
    assert_string_equal(job.tasks[1].node, "n3");
    assert_string_equal(job.envs[1].value, "two words\n");
    assert_int_equal(job_file_first_task(&job, 1), 1);
    job_file_write(&job, &again);
    assert_int_equal(again.length, bytes.length);
    assert_memory_equal(again.at, bytes.at, bytes.length);
    buf_release(&bytes);
    buf_release(&again);
    arena_release(&arena);
}

static void task_round_trip(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT, again = BUF_INIT;
    struct arena arena;
    struct task_file task;
    struct err err = {0};
    arena_init(&arena);
    task_file_write(&TASK, &bytes);
    assert_int_equal(task_file_read(buf_as_text(&bytes), &arena, &task, &err), 0);
    assert_int_equal(task.gpus[1], 5);
    assert_string_equal(task.ssh_private_key, "KEY");
    task_file_write(&task, &again);
    assert_int_equal(again.length, bytes.length);
    assert_memory_equal(again.at, bytes.at, bytes.length);
    buf_release(&bytes);
    buf_release(&again);
    arena_release(&arena);
}

/* Each truncation is refused, and a flipped byte never crashes the reader. */
static void damage(void **state)
{
    (void)state;
    struct buf bytes[2] = {BUF_INIT, BUF_INIT};
    struct arena arena;
    struct job_file job;
    struct task_file task;
    arena_init(&arena);
    job_file_write(&JOB, &bytes[0]);
    task_file_write(&TASK, &bytes[1]);
    for (size_t file = 0; file < 2; file++) {
        for (size_t length = 0; length < bytes[file].length; length++) {
            struct text part = {bytes[file].at, length};
            assert_int_equal(job_file_read(part, &arena, &job, NULL), ERR_CORRUPT);
            assert_int_equal(task_file_read(part, &arena, &task, NULL), ERR_CORRUPT);
        }
        for (size_t at = 0; at < bytes[file].length; at++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                bytes[file].at[at] ^= (char)(1 << bit);
                job_file_read(buf_as_text(&bytes[file]), &arena, &job, NULL);
                task_file_read(buf_as_text(&bytes[file]), &arena, &task, NULL);
                bytes[file].at[at] ^= (char)(1 << bit);
                arena_clear(&arena);
            }
        }
        buf_release(&bytes[file]);
    }
    arena_release(&arena);
}

static void versions(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    struct arena arena;
    struct job_file job;
    struct err err = {0};
    arena_init(&arena);
    job_file_write(&JOB, &bytes);
    bytes.at[8] = 9;
    assert_int_equal(job_file_read(buf_as_text(&bytes), &arena, &job, &err), ERR_UNSUPPORTED);
    assert_string_equal(err.text, "has version 9, this program reads version 1");
    buf_release(&bytes);
    arena_release(&arena);
}

/* A file that promises more than it holds must not make the reader allocate it. */
static void promises(void **state)
{
    (void)state;
    struct job_file_role role = {
        .name = "r", .instances = JOB_FILE_TASKS_MAX, .ports = PS_PORTS, .port_count = 2};
    struct job_file_task *tasks = mem_zero(JOB_FILE_TASKS_MAX, sizeof *tasks);
    for (size_t i = 0; i < JOB_FILE_TASKS_MAX; i++)
        tasks[i] = TASKS[0];
    struct job_file job = {.name = "j",
                           .user = "u",
                           .roles = &role,
                           .role_count = 1,
                           .tasks = tasks,
                           .task_count = JOB_FILE_TASKS_MAX};
    struct buf bytes = BUF_INIT;
    struct arena arena;
    arena_init(&arena);
    job_file_write(&job, &bytes);
    assert_int_equal(job_file_read(buf_as_text(&bytes), &arena, &job, NULL), 0);
    assert_int_equal(job.task_count, JOB_FILE_TASKS_MAX);
    mem_free(tasks);
    buf_release(&bytes);
    arena_release(&arena);
}

static void exit_round_trip(void **state)
{
    (void)state;
    struct exit_file file = {EXIT_STAGE_USER, 137, 9, 1000, 2000, "killed"}, back;
    struct buf bytes = BUF_INIT;
    struct err err = {0};
    exit_file_write(&file, &bytes);
    assert_string_equal(buf_cstr(&bytes), "skep-exit 1\nstage user\ncode 137\nsignal 9\n"
                                          "started_ms 1000\nended_ms 2000\nmessage killed\n");
    assert_int_equal(exit_file_read(buf_as_text(&bytes), &back, &err), 0);
    assert_int_equal(back.stage, EXIT_STAGE_USER);
    assert_int_equal(back.code, 137);
    assert_int_equal(back.ended_ms, 2000);
    assert_string_equal(back.message, "killed");
    buf_release(&bytes);
    static const char *const WRONG[] = {
        "",
        "skep-exit 2\ncode 1\n",
        "skep-exit 1\n",
        "skep-exit 1\ncode 256\n",
        "skep-exit 1\ncode x\n",
        "skep-exit 1\ncode 1\nstage never\n",
        "skep-exit 1\ncode 1\nsignal -1\n",
    };
    for (size_t i = 0; i < COUNT_OF(WRONG); i++)
        assert_int_equal(exit_file_read(text_of(WRONG[i]), &back, NULL), ERR_CORRUPT);
    assert_int_equal(exit_file_read(text_of("skep-exit 1\nnew x\ncode 1\n"), &back, NULL), 0);
}

static void reason_round_trip(void **state)
{
    (void)state;
    struct reason_file file = {"preempted", 30000}, back;
    struct buf bytes = BUF_INIT;
    reason_file_write(&file, &bytes);
    reason_file_read(buf_as_text(&bytes), &back);
    assert_string_equal(back.reason, "preempted");
    assert_int_equal(back.grace_ms, 30000);
    reason_file_read(text_of("grace_ms many"), &back);
    assert_string_equal(back.reason, "");
    assert_int_equal(back.grace_ms, 0);
    buf_release(&bytes);
}

int main(void)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(job_round_trip),
        cmocka_unit_test(task_round_trip),
        cmocka_unit_test(damage),
        cmocka_unit_test(versions),
        cmocka_unit_test(promises),
        cmocka_unit_test(exit_round_trip),
        cmocka_unit_test(reason_round_trip),
    };
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
