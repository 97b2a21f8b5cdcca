/* What is missing of a log is fetched from its segments, and skep-init ends when all of it is
 * taken.
 */
#include "run.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "init/log_line.h"
#include "waits.h"

/* More than what may end at once. */
#define MUCH "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo a word >&2"

struct fetched {
    struct buf bytes[LOG_PIECE_STREAMS];
    uint64_t ends[LOG_PIECE_STREAMS];
    enum log_fetch_end end;
    int code;
};

static void world_begin(struct world *world, const char *command)
{
    world_init(world, command);
    write_whole(path_in(world, LAYOUT_RELAY_NAME), "", 0);
    snprintf(world->output, sizeof world->output, "/dev/null");
}

static void world_end(struct world *world, struct fetched *fetched)
{
    for (size_t i = 0; i < LOG_PIECE_STREAMS; i++)
        buf_release(&fetched->bytes[i]);
    folder_remove(world->root);
}

static bool head_read(FILE *output, struct log_piece *piece)
{
    char line[64];
    if (!fgets(line, sizeof line, output))
        return false;
    const size_t length = strcspn(line, "\n");
    assert_true(log_piece_read((struct text){line, length}, piece));
    return true;
}

static void pieces_read(FILE *output, struct fetched *fetched)
{
    static char bytes[LOG_PIECE_MAX];
    struct log_piece piece;
    while (head_read(output, &piece) && !piece.is_end) {
        assert_int_equal(fread(bytes, 1, piece.length, output), piece.length);
        assert_int_equal(piece.offset, fetched->ends[piece.stream]);
        buf_add(&fetched->bytes[piece.stream], bytes, piece.length);
        fetched->ends[piece.stream] += piece.length;
    }
    assert_true(piece.is_end);
    fetched->end = piece.end;
}

/* One turn; `answer`: what is said when all of it has come. */
static void fetch(const struct world *world, const char *answer, struct fetched *fetched)
{
    int in[2], out[2], status;
    char numbers[LOG_PIECE_STREAMS][24];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    for (size_t i = 0; i < LOG_PIECE_STREAMS; i++)
        snprintf(numbers[i], sizeof numbers[i], "%llu", (unsigned long long)fetched->ends[i]);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execl(SKEP_INIT, SKEP_INIT, LAYOUT_FETCH, world->root, numbers[0], numbers[1], numbers[2],
              numbers[3], (char *)NULL);
        _exit(99);
    }
    close(in[0]);
    close(out[1]);
    FILE *output = fdopen(out[0], "r");
    pieces_read(output, fetched);
    /* it waits for an answer only while the task's own skep-init waits for its word */
    const ssize_t written = write(in[1], answer, strlen(answer));
    assert_true(written == (ssize_t)strlen(answer) || (written < 0 && errno == EPIPE));
    close(in[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    fclose(output);
    fetched->code = WEXITSTATUS(status);
}

static void it_ends_when_all_has_been_taken(void **state)
{
    struct world w;
    struct fetched fetched = {0};
    (void)state;
    world_begin(&w, MUCH);
    const pid_t pid = world_start(&w);
    assert_true(file_await(path_in(&w, "run/exit"), RUN_LIMIT_MS));
    fetch(&w, "", &fetched); /* who goes without a word has taken nothing */
    assert_int_equal(fetched.end, LOG_FETCH_WHOLE);
    assert_int_equal(waitpid(pid, &w.status, WNOHANG), 0);
    const uint64_t length = fetched.bytes[0].length;
    fetch(&w, "t", &fetched); /* nothing more is told, as all is known */
    assert_int_equal(fetched.bytes[0].length, length);
    assert_int_equal(fetched.code, 0);
    world_wait(&w, pid);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    log_is(&w, "stdout", buf_cstr(&fetched.bytes[0]));
    log_is(&w, "all", buf_cstr(&fetched.bytes[2]));
    log_is(&w, "runtime", buf_cstr(&fetched.bytes[3]));
    assert_string_equal(buf_cstr(&fetched.bytes[1]), "a word\n");
    world_end(&w, &fetched);
}

static void segments_follow_each_other(void **state)
{
    struct world w;
    struct fetched fetched = {0};
    cleanup_buf struct buf wanted = BUF_INIT;
    (void)state;
    world_begin(&w, MUCH);
    w.task.segment_bytes = 100 << 10;
    const pid_t pid = world_start(&w);
    assert_true(file_await(path_in(&w, "run/exit"), RUN_LIMIT_MS));
    fetched.ends[0] = 150 << 10; /* in the oldest that is there */
    fetched.ends[2] = 200 << 10; /* where one ends */
    fetch(&w, "t", &fetched);
    world_wait(&w, pid);
    for (int i = 0; i < 20000; i++)
        buf_format(&wanted, "line %d\n", i);
    assert_int_equal(fetched.ends[0], wanted.length);
    assert_string_equal(buf_cstr(&fetched.bytes[0]), buf_cstr(&wanted) + (150 << 10));
    world_end(&w, &fetched);
}

/* Of a log that is not whole what is there now is told. */
static void what_is_there_now(void **state)
{
    struct world w;
    struct fetched fetched = {0};
    (void)state;
    world_begin(&w, "echo a; : >run/ready; read x <run/go; echo b");
    assert_int_equal(mkfifo(path_in(&w, "run/go"), 0600), 0);
    const pid_t pid = world_start(&w);
    ready_await(&w);
    while (fetched.bytes[0].length == 0) /* the pipe is read soon */
        fetch(&w, "", &fetched);
    assert_int_equal(fetched.end, LOG_FETCH_PART);
    assert_string_equal(buf_cstr(&fetched.bytes[0]), "a\n");
    write_whole(path_in(&w, "run/go"), "x\n", 2);
    world_wait(&w, pid); /* so little needs no word */
    fetch(&w, "t", &fetched);
    assert_string_equal(buf_cstr(&fetched.bytes[0]), "a\nb\n");
    world_end(&w, &fetched);
}

/* Nobody has that pipe where bytes were lost. */
static void without_its_pipe_it_says_so(void **state)
{
    struct world w;
    struct fetched fetched = {0};
    (void)state;
    world_begin(&w, "echo a");
    world_run(&w);
    unlink(path_in(&w, "run/" LAYOUT_TAKEN_NAME));
    fetch(&w, "", &fetched);
    assert_int_equal(fetched.end, LOG_FETCH_BROKEN);
    world_end(&w, &fetched);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_ends_when_all_has_been_taken),
    cmocka_unit_test(segments_follow_each_other),
    cmocka_unit_test(what_is_there_now),
    cmocka_unit_test(without_its_pipe_it_says_so),
};

UNIT_FILE(tests, run_setup, NULL);
