/* The exit-spec table and the judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "base/random.h"
#include "doc/problem.h"
#include "exits/judge.h"

static struct exit_rules *rules;
static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena);
    struct problems problems;
    problems_init(&problems, &arena);
    rules = exit_rules_new((struct text){0}, &problems);
    assert_int_equal(problems.count, 0); /* no warning either */
    problems_release(&problems);
    return rules ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    exit_rules_free(rules);
    arena_release(&arena);
    return 0;
}

static struct exit_verdict judge(const struct exit_rules *with, struct exit_report input)
{
    struct exit_verdict verdict;
    exit_judge(with, &input, &verdict);
    assert_non_null(verdict.spec);
    return verdict;
}

static struct exit_verdict judge_log(int32_t code, const char *log)
{
    return judge(rules, (struct exit_report){.exit_code = code,
                                             .signal = code > 128 && code < 160 ? code - 128 : 0,
                                             .is_user_command = true,
                                             .log_tail = text_of(log)});
}

/* ---- what an exit is ---- */

struct exit_case {
    int32_t code, want;
    uint8_t attributes;
    const char *log;
};

static const struct exit_case told_by_log[] = {
    {0, 0, 0, "SyntaxError: printed, but all went well"},
    {1, 1, 0, ""},
    {3, 3, 0, "nothing that a rule knows"},
    {200, 200, EXIT_TRANSIENT, ""},
    {201, 201, EXIT_TRANSIENT | EXIT_CONFLICT, ""},
    {210, 210, EXIT_PERMANENT, "SyntaxError: x"},
    {130, 130, 0, ""},
    {131, 131, 0, ""},
    {132, 132, EXIT_PERMANENT, ""},
    {134, 134, 0, "Aborted (core dumped)"},
    {135, 135, EXIT_PERMANENT, ""},
    {136, 136, EXIT_PERMANENT, ""},
    {137, 137, 0, "epoch 1"},
    {139, 139, 0, "Segmentation fault"},
    {141, 141, EXIT_PERMANENT, ""},
    {143, 143, 0, ""},
    {124, 247, 0, ""},
    {1, 231, EXIT_PERMANENT | EXIT_NEVER_RETRIED,
     "  File \"a.py\", line 1\n    print(\n         ^\nSyntaxError: '(' was never closed\n"},
    {1, 231, EXIT_PERMANENT | EXIT_NEVER_RETRIED, "[rank0]: IndentationError: unexpected indent\n"},
    {1, 231, EXIT_PERMANENT | EXIT_NEVER_RETRIED, "TabError: inconsistent use of tabs"},
    {2, 231, EXIT_PERMANENT | EXIT_NEVER_RETRIED,
     "bash: -c: line 1: syntax error near unexpected token `)'"},
    {2, 231, EXIT_PERMANENT | EXIT_NEVER_RETRIED,
     "sh: 1: Syntax error: Unterminated quoted string"},
    {2, 231, EXIT_PERMANENT | EXIT_NEVER_RETRIED,
     "bash: line 3: unexpected EOF while looking for matching `\"'"},
    {7, 231, EXIT_PERMANENT, "SyntaxError: invalid syntax"},
    {1, 231, EXIT_PERMANENT, "AttributeError: 'NoneType' object has no attribute 'x'"},
    {1, 231, EXIT_PERMANENT, "NameError: name 'x' is not defined"},
    {1, 231, EXIT_PERMANENT, "_pickle.UnpicklingError: invalid load key"},
    {1, 232, EXIT_PERMANENT, "ModuleNotFoundError: No module named 'torch'"},
    {1, 232, EXIT_PERMANENT, "ImportError: cannot import name 'x'"},
    {127, 232, EXIT_PERMANENT,
     "./a: error while loading shared libraries: libx.so: cannot open shared object file: "
     "No such file or directory"},
    {127, 220, EXIT_PERMANENT, "bash: line 1: trian.py: command not found"},
    {127, 220, EXIT_PERMANENT, "sh: 1: nvcc: not found"},
    {127, 220, EXIT_PERMANENT, ""},
    {126, 220, EXIT_PERMANENT, "bash: ./run.sh: Permission denied"},
    {2, 220, EXIT_PERMANENT,
     "python3: can't open file '/app/x.py': [Errno 2] No such file or directory"},
    {1, 226, EXIT_PERMANENT, "RuntimeError: cuda runtime error (2) : out of memory at THC.cu"},
    {1, 226, EXIT_PERMANENT, "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"},
    {1, 226, EXIT_PERMANENT, "torch.cuda.OutOfMemoryError: CUDA out of memory."},
    {1, 226, EXIT_PERMANENT, "torch.OutOfMemoryError: too much"},
    {1, 221, EXIT_PERMANENT,
     "tensorflow...ResourceExhaustedError: OOM when allocating tensor with shape[1]"},
    {1, 237, EXIT_PERMANENT, "MemoryError"},
    {1, 237, EXIT_PERMANENT,
     "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB for an array"},
    {134, 237, EXIT_PERMANENT, "terminate called after throwing 'std::bad_alloc'"},
    {1, 236, 0, "OSError: [Errno 28] No space left on device"},
    {1, 223, EXIT_TRANSIENT, "CUDA_ERROR_ECC_UNCORRECTABLE"},
    {134, 223, EXIT_TRANSIENT, "CUDA error: uncorrectable ECC error encountered"},
    {134, 238, 0, "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(...)"},
    {1, 238, 0, "NCCL error: unhandled system error, ncclSystemError: x"},
    {1, 239, EXIT_PERMANENT,
     "ERROR: Unexpected bus error. This might be caused by insufficient shared memory (shm)."},
    {1, 240, EXIT_TRANSIENT, "Unable to determine the device handle for GPU 0000:3B:00.0"},
    {1, 224, EXIT_PERMANENT, "CUDA driver version is insufficient for CUDA runtime version"},
    {1, 225, EXIT_PERMANENT, "dropout supported only in cuDNN v7 and above"},
    {1, 242, 0, "RuntimeError: CUDA error: an illegal memory access was encountered"},
    {59, 222, EXIT_PERMANENT, "[n1:1] Signal code: Address not mapped (1)"},
    {1, 228, EXIT_PERMANENT,
     "TypeError: dynamic_rnn() got multiple values for keyword argument 'dtype'"},
    {2, 228, EXIT_PERMANENT, "train.py: error: unrecognized arguments: --lr"},
    {1, 229, EXIT_PERMANENT, "FileNotFoundError: [Errno 2] No such file or directory: '/d'"},
    {1, 229, EXIT_PERMANENT, "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff"},
    {1, 229, EXIT_PERMANENT, "OSError: [Errno 5] Input/output error"},
    {1, 230, EXIT_PERMANENT, "ValueError: Restore called with invalid save path x"},
    {1, 233, EXIT_PERMANENT, "IndexError: list index out of range"},
    {1, 234, EXIT_PERMANENT, "worker 3: Segmentation fault"},
    {1, 235, EXIT_PERMANENT, "Aborted (core dumped)"},
    {1, 241, 0, "OSError: [Errno 98] Address already in use"},
    {1, 245, 0,
     "Traceback (most recent call last):\nConnectionRefusedError: [Errno 111] "
     "Connection refused"},
    {1, 244, EXIT_PERMANENT, "touch: cannot touch '/x': Read-only file system"},
    {1, 243, 0, "Traceback (most recent call last):\n  ...\nValueError: no"},
    {1, 246, EXIT_PERMANENT, "cat: /nope: No such file or directory"},
    {2, 231, EXIT_PERMANENT | EXIT_NEVER_RETRIED, "sh: 1: Syntax error: \"fi\" unexpected"},
    {2, 231, EXIT_PERMANENT | EXIT_NEVER_RETRIED,
     "sh: 1: Syntax error: end of file unexpected (expecting \"fi\")"},
    {1, 231, EXIT_PERMANENT, "/skep/private/command: line 1: DATA: unbound variable\n"},
    {2, 231, EXIT_PERMANENT, "run.sh: 3: DATA: parameter not set\n"},
    {1, 232, EXIT_PERMANENT, "/usr/bin/python3: No module named torch"},
    {1, 232, EXIT_PERMANENT,
     "./train: /lib/libc.so.6: version `GLIBC_2.38' not found (required by ./train)"},
    {1, 220, EXIT_PERMANENT, "/usr/bin/python3: can't find '__main__' module in '/etc'"},
    {1, 228, EXIT_PERMANENT, "TypeError: f() got an unexpected keyword argument 'b'"},
    {1, 228, EXIT_PERMANENT, "TypeError: f() missing 1 required positional argument: 'b'"},
    {1, 229, EXIT_PERMANENT, "x\njson.decoder.JSONDecodeError: Expecting value: line 1"},
    {1, 243, 0,
     "Traceback (most recent call last):\nrequests.exceptions.JSONDecodeError: Expecting"},
    {1, 229, EXIT_PERMANENT, "gzip.BadGzipFile: Not a gzipped file (b'pl')"},
    {1, 229, EXIT_PERMANENT, "zipfile.BadZipFile: File is not a zip file"},
    {1, 229, EXIT_PERMANENT, "tarfile.ReadError: file could not be opened successfully"},
    {2, 229, EXIT_PERMANENT, "tar: This does not look like a tar archive"},
    {1, 229, EXIT_PERMANENT, "\ngzip: /tmp/x.gz: not in gzip format\n"},
    {9, 229, EXIT_PERMANENT, "  End-of-central-directory signature not found."},
    {1, 233, EXIT_PERMANENT, "IndexError: pop from empty list"},
    {1, 235, EXIT_PERMANENT, "/skep/private/command: line 1:     3 Aborted          ./train"},
    {1, 245, 0, "TimeoutError: timed out"},
    {1, 245, 0, "ConnectionResetError: [Errno 104] Connection reset by peer"},
    {128, 245, 0, "fatal: unable to access 'https://x/': Couldn't connect to server"},
    {128, 246, EXIT_PERMANENT, "fatal: repository '/srv/x.git' does not exist"},
    {128, 246, EXIT_PERMANENT, "fatal: 'x' does not appear to be a git repository"},
    {128, 244, EXIT_PERMANENT, "fatal: Authentication failed for 'https://x/y.git/'"},
    {128, 244, EXIT_PERMANENT, "fatal: could not read Username for 'https://x': no terminal"},
    {1, 242, 0, "RuntimeError: No CUDA GPUs are available"},
    {1, 242, 0, "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"},
    {254, 227, 0, "bash: fork: retry: Resource temporarily unavailable"},
    {1, 227, 0, "RuntimeError: can't start new thread"},
    {1, 227, 0, "BlockingIOError: [Errno 11] Resource temporarily unavailable"},
    {1, 227, 0, "libgomp: pthread_create failed: Resource temporarily unavailable"},
    {1, 227, 0, "OSError: [Errno 24] Too many open files: '/data/x'"},
};

static void told_by_code_and_log(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(told_by_log); i++) {
        const struct exit_verdict verdict = judge_log(told_by_log[i].code, told_by_log[i].log);
        if (verdict.completion.code != told_by_log[i].want ||
            verdict.completion.attributes != told_by_log[i].attributes ||
            verdict.completion.exit_code != told_by_log[i].code ||
            verdict.completion.is_success != (told_by_log[i].want == 0))
            fail_msg("exit %d, \"%s\": wanted %d (%u), got %d (%u) %s", told_by_log[i].code,
                     told_by_log[i].log, told_by_log[i].want, told_by_log[i].attributes,
                     verdict.completion.code, verdict.completion.attributes,
                     verdict.completion.diagnostics);
    }
}

static void told_by_the_engine(void **state)
{
    (void)state;
    static const struct {
        struct exit_report input;
        int32_t want;
        const char *type;
    } cases[] = {
        {{.is_lost = true}, -1001, "PLATFORM_FAILURE"},
        {{.is_missing = true, .is_user_command = true}, -101, "PLATFORM_FAILURE"},
        {{.exit_code = 137, .signal = 9, .is_oom_killed = true, .is_user_command = true},
         -1200,
         "USER_FAILURE"},
        {{.exit_code = 137, .is_oom_killed = true}, -1300, "PLATFORM_FAILURE"},
        {{.exit_code = 1, .reason = "ImageNotFound"}, 254, "USER_FAILURE"},
        {{.exit_code = 1, .reason = "ErrImagePull", .message = "unauthorized: no"},
         254,
         "USER_FAILURE"},
        {{.exit_code = 1, .reason = "ImagePullError", .message = "team/denied: broken pipe"},
         -1210,
         "PLATFORM_FAILURE"},
        {{.exit_code = 128, .reason = "ImageTooBig"}, -1213, "USER_FAILURE"},
        {{.exit_code = 1, .reason = "ImagePullError", .message = "connection reset"},
         -1210,
         "PLATFORM_FAILURE"},
        {{.exit_code = 128, .reason = "ImagePullUnauthorized"}, 254, "USER_FAILURE"},
        {{.exit_code = 128, .reason = "ImageBroken"}, 254, "USER_FAILURE"},
        {{.exit_code = 128, .reason = "RegistryUnavailable"}, -1210, "PLATFORM_FAILURE"},
        {{.exit_code = 128, .reason = "NodeRestarted", .is_user_command = true},
         -1001,
         "PLATFORM_FAILURE"},
        {{.exit_code = 1, .message = "the image has neither /bin/bash nor /bin/sh to run x"},
         -1203,
         "PLATFORM_FAILURE"},
        {{.exit_code = 1, .reason = "DiskFull"}, -1211, "PLATFORM_FAILURE"},
        {{.reason = "CreationError"}, -310, "UNKNOWN_FAILURE"},
        {{.exit_code = 126, .reason = "ContainerCannotRun"}, -1202, "PLATFORM_FAILURE"},
        {{.exit_code = 127, .reason = "ContainerCannotRun"}, -1203, "PLATFORM_FAILURE"},
        {{.exit_code = 128, .reason = "ContainerCannotRun", .message = "unknown device"},
         -1205,
         "PLATFORM_FAILURE"},
        {{.exit_code = 128, .reason = "ContainerCannotRun"}, -1204, "UNKNOWN_FAILURE"},
        {{.exit_code = 1, .reason = "ContainerCannotRun"}, -1204, "UNKNOWN_FAILURE"},
        {{.reason = "Evicted"}, -1000, "PLATFORM_FAILURE"},
        {{.reason = "SystemOOM"}, -1212, "PLATFORM_FAILURE"},
        {{.reason = "NodeOutOfMemory", .exit_code = 137, .signal = 9, .is_user_command = true},
         -1212,
         "PLATFORM_FAILURE"},
        {{.reason = "Preempting"}, -1003, "PLATFORM_FAILURE"},
        {{.exit_code = 253}, 253, "PLATFORM_FAILURE"},
        {{.exit_code = 218}, 218, "USER_FAILURE"},
        {{.exit_code = 9}, 256, "PLATFORM_FAILURE"},
        {{.exit_code = 10, .platform_tail = {"ssh barrier gave up", 19}, .is_user_command = true},
         249,
         "PLATFORM_FAILURE"},
        {{.exit_code = 3, .is_user_command = true, .has_gpu_ecc_error = true},
         128,
         "PLATFORM_FAILURE"},
        {{.exit_code = 139, .is_user_command = true, .has_gpu_lost = true},
         240,
         "PLATFORM_FAILURE"},
        {{.exit_code = 0, .is_user_command = true, .has_gpu_lost = true}, 0, "USER_SUCCESS"},
        {{.exit_code = 253, .is_user_command = true}, 255, "UNKNOWN_FAILURE"},
        {{.exit_code = 248, .is_user_command = true, .message = "m"}, 248, "UNKNOWN_FAILURE"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct exit_verdict verdict = judge(rules, cases[i].input);
        if (verdict.completion.code != cases[i].want ||
            strcmp(verdict.spec->type, cases[i].type) != 0)
            fail_msg("case %zu: wanted %d (%s), got %d (%s)", i, cases[i].want, cases[i].type,
                     verdict.completion.code, verdict.spec->type);
    }
}

static void pods_with_containers(void **state)
{
    (void)state;
    const struct exit_container containers[] = {
        {.name = "init", .exit_code = 0, .is_terminated = true, .finished_at = 1},
        {.name = "side", .exit_code = 3, .is_terminated = true, .finished_at = 9},
        {.name = "app", .exit_code = 4, .is_terminated = true, .finished_at = 5},
        {.name = "running", .exit_code = 200},
    };
    struct exit_verdict verdict =
        judge(rules, (struct exit_report){.containers = containers, .container_count = 4});
    assert_int_equal(verdict.completion.code, 3);
    assert_string_equal(verdict.completion.phrase, "ContainerUnrecognizedFailed");
    assert_string_equal(verdict.spec->phrase, "PAIRuntimeUnknownFailed");
    verdict = judge(rules, (struct exit_report){.containers = containers, .container_count = 1});
    assert_int_equal(verdict.completion.code, -300);
}

static void creation_errors(void **state)
{
    (void)state;
    assert_int_equal(exit_judge_creation(403, "forbidden: exceeded quota: q", NULL), -120);
    assert_int_equal(exit_judge_creation(403, "forbidden", NULL), -310);
    assert_int_equal(exit_judge_creation(400, "bad", ""), -310);
    assert_int_equal(exit_judge_creation(422, "invalid", ""), -200);
    assert_int_equal(exit_judge_creation(413, "too large", NULL), -200);
    assert_int_equal(exit_judge_creation(422, "invalid", "connection reset"), -310);
    assert_int_equal(exit_judge_creation(500, "x", NULL), -120);
    assert_int_equal(exit_judge_creation(0, "x", NULL), -120);
}

static enum exit_evidence evidence(const struct exit_rules *with, struct exit_report input)
{
    return judge(with, input).evidence;
}

/* Nothing that a task can write, print or do counts as the platform's word. */
static void only_the_platform_vouches(void **state)
{
    static const char *const lines[] = {"GPU is lost", "GPU has fallen off the bus",
                                        "CUDA_ERROR_ECC_UNCORRECTABLE", "ssh barrier gave up"};
    (void)state;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        for (int32_t code = 1; code < 256; code++)
            for (int is_user = 0; is_user < 2; is_user++)
                assert_int_equal(
                    evidence(rules, (struct exit_report){.exit_code = code,
                                                         .is_user_command = is_user,
                                                         .reason = "",
                                                         .message = lines[i],
                                                         .log_tail = text_of(lines[i]),
                                                         .platform_tail = text_of(lines[i])}),
                    EVIDENCE_TASK);
    assert_int_equal(judge_log(1, "GPU is lost").completion.code, 240); /* the retry knows it */
    /* the engine's message repeats names of the user's */
    assert_int_equal(
        evidence(rules, (struct exit_report){.exit_code = 128,
                                             .reason = "ContainerCannotRun",
                                             .message = "chdir to `unknown device`: none"}),
        EVIDENCE_TASK);

    assert_int_equal(evidence(rules, (struct exit_report){.exit_code = 1,
                                                          .is_user_command = true,
                                                          .has_gpu_lost = true}),
                     EVIDENCE_PLATFORM);
    assert_int_equal(evidence(rules, (struct exit_report){.exit_code = 1,
                                                          .is_user_command = true,
                                                          .has_gpu_ecc_error = true}),
                     EVIDENCE_PLATFORM);
    assert_int_equal(evidence(rules, (struct exit_report){.exit_code = 128, .reason = "DiskFull"}),
                     EVIDENCE_PLATFORM);
    assert_int_equal(evidence(rules, (struct exit_report){.exit_code = 137,
                                                          .signal = 9,
                                                          .is_user_command = true,
                                                          .is_oom_killed = true}),
                     EVIDENCE_PLATFORM);
    assert_int_equal(evidence(rules, (struct exit_report){.is_lost = true}), EVIDENCE_PLATFORM);
    assert_int_equal(evidence(rules, (struct exit_report){.is_missing = true}), EVIDENCE_PLATFORM);
}

/* An expression for the reason that fits the empty one is not the engine's word. */
static void no_reason_vouches_for_nothing(void **state)
{
    struct problems problems;
    (void)state;

    problems_init(&problems, &arena);
    struct exit_rules *own = exit_rules_new(TEXT("spec:\n"
                                                 "- code: 100\n"
                                                 "  phrase: Own\n"
                                                 "  type: PLATFORM_FAILURE\n"
                                                 "  pattern:\n"
                                                 "    controllerPodPatterns:\n"
                                                 "    - reasonRegex: '.*'\n"),
                                            &problems);
    assert_non_null(own);
    assert_int_equal(
        evidence(own, (struct exit_report){.exit_code = 1, .is_user_command = true, .reason = ""}),
        EVIDENCE_TASK);
    assert_int_equal(evidence(own, (struct exit_report){.exit_code = 1, .is_user_command = true}),
                     EVIDENCE_TASK);
    assert_int_equal(
        evidence(own,
                 (struct exit_report){.exit_code = 1, .is_user_command = true, .reason = "Broken"}),
        EVIDENCE_PLATFORM);
    exit_rules_free(own);
    problems_release(&problems);
}

static void verdict_says_what_matched(void **state)
{
    (void)state;
    const char *log = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\nMemoryError\n";
    const struct exit_verdict verdict = judge_log(1, log);
    assert_true(verdict.is_matched);
    assert_int_equal(exit_rules_at(rules, verdict.rule)->code, 237);
    assert_int_equal(verdict.pattern, 0);
    assert_true(text_find(verdict.user_text, TEXT("MemoryError")) != SIZE_MAX);
    assert_true(text_starts(verdict.user_lines, TEXT("3\n4\n")));
    assert_int_equal(verdict.platform_lines.length, 0);
    char many[EXIT_EXCERPT_MAX * 2 + 40];
    memset(many, 'x', sizeof many);
    memcpy(many, "\x01Traceback (most recent call last):", 35);
    memcpy(many + sizeof many - 20, "ImportError: \x80\n12345", 20);
    const struct exit_verdict other =
        judge(rules, (struct exit_report){
                         .exit_code = 1, .is_user_command = true, .log_tail = {many, sizeof many}});
    assert_int_equal(other.completion.code, 232);
}

/* ---- the operator's file ---- */

static struct exit_rules *read_file(const char *text, struct buf *said)
{
    struct problems problems;
    problems_init(&problems, &arena);
    struct exit_rules *read = exit_rules_new(text_of(text), &problems);
    problems_print(&problems, "f", said);
    problems_release(&problems);
    return read;
}

/* Long matches are cut; expressions that match all, alternate or repeat are searched all the same.
 */
static void odd_expressions(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *log;
        bool is_found;
    } cases[] = {
        {"(?ms).*", "anything", true},
        {"abcd|efgh", "xx efgh", true},
        {"ab+cd", "xx ABBCD", false},
        {"(?i)ab+cd", "xx ABBCD", true},
        {"(?i)abc?d{0}(ef|gh)ij\\.k", "ABGHIJ.K", true},
        {"\\x41\\.\\Qb.\\E", "A.b.", true},
        {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnop", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop",
         true},
        {"(?s)aaa.*bbb", "aaa\n\xff\nbbb", true},
        {"\xe4\xb8\xad+$", "x \xff \xe4\xb8\xad\xe4\xb8\xad", true},
        {"^never$", "never\n", false},
        {"(?m)^never$", "x\nnever\n", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf text = BUF_INIT, said = BUF_INIT;
        buf_format(&text,
                   "spec:\n- code: 248\n  phrase: A\n  pattern:\n    runtimeContainerPatterns:\n"
                   "    - userLogRegex: '%s'\n",
                   cases[i].expression);
        struct exit_rules *own = read_file(buf_cstr(&text), &said);
        if (!own)
            fail_msg("%s: %s", cases[i].expression, buf_cstr(&said));
        const struct exit_verdict verdict = judge(
            own, (struct exit_report){
                     .exit_code = 1, .is_user_command = true, .log_tail = text_of(cases[i].log)});
        if ((verdict.completion.code == 248) != cases[i].is_found)
            fail_msg("%s in \"%s\": code %d", cases[i].expression, cases[i].log,
                     verdict.completion.code);
        exit_rules_free(own);
        buf_release(&text);
        buf_release(&said);
    }
    struct buf said = BUF_INIT;
    struct exit_rules *own = read_file(
        "- containerExitCode: 248\n  patterns: [{userLogRegex: 'x+', platformLogRegex: 'y+'}]\n",
        &said);
    char *log = mem_alloc(2 * (EXIT_EXCERPT_MAX + 1));
    memset(log, '.', 2 * (EXIT_EXCERPT_MAX + 1));
    log[0] = 'x';
    log[EXIT_EXCERPT_MAX + 1] = 'y';
    const struct exit_verdict verdict = judge(
        own,
        (struct exit_report){.exit_code = 1,
                             .is_user_command = true,
                             .log_tail = {log, EXIT_EXCERPT_MAX + 1},
                             .platform_tail = {log + EXIT_EXCERPT_MAX + 1, EXIT_EXCERPT_MAX + 1}});
    assert_int_equal(verdict.user_text.length, EXIT_EXCERPT_MAX);
    assert_int_equal(verdict.platform_text.length, EXIT_EXCERPT_MAX);
    mem_free(log);
    exit_rules_free(own);
    buf_release(&said);
}

static void operator_extends(void **state)
{
    (void)state;
    struct buf said = BUF_INIT;
    struct exit_rules *own = read_file("spec:\n"
                                       "- code: 248\n"
                                       "  phrase: LicenceServerDown\n"
                                       "  behavior: TRANSIENT_CONFLICT\n"
                                       "  reason: no licence\n"
                                       "  pattern:\n"
                                       "    runtimeContainerPatterns:\n"
                                       "    - userLogRegex: 'no licence (left|server)'\n"
                                       "- code: 137\n"
                                       "  phrase: KilledHere\n"
                                       "  behavior: TRANSIENT\n"
                                       "  pattern:\n"
                                       "    runtimeContainerPatterns:\n"
                                       "    - exitCode: 137\n",
                                       &said);
    assert_non_null(own);
    assert_string_equal(buf_cstr(&said), "");
    struct exit_report input = {
        .exit_code = 1, .is_user_command = true, .log_tail = TEXT("no licence left\nMemoryError")};
    struct exit_verdict verdict = judge(own, input);
    assert_int_equal(verdict.completion.code, 248);
    assert_int_equal(verdict.completion.attributes, EXIT_TRANSIENT | EXIT_CONFLICT);
    assert_string_equal(verdict.spec->reaction, "ALWAYS_BACKOFF_RETRY");
    assert_true(verdict.spec->is_operators);
    assert_string_equal(verdict.completion.diagnostics, "no licence (no licence left)");
    input = (struct exit_report){.exit_code = 137, .is_user_command = true};
    verdict = judge(own, input);
    assert_string_equal(verdict.completion.phrase, "KilledHere");
    assert_int_equal(exit_rules_count(own), exit_rules_count(rules) + 1);
    exit_rules_free(own);
    own = read_file("builtin: false\n", &said);
    verdict = judge(own, (struct exit_report){.exit_code = 139, .is_user_command = true});
    assert_false(verdict.is_matched);
    assert_int_equal(verdict.completion.code, 255);
    assert_int_equal(verdict.completion.exit_code, 139);
    exit_rules_free(own);
    exit_rules_free(NULL);
    buf_release(&said);
}

static void other_shapes_are_read(void **state)
{
    (void)state;
    struct buf said = BUF_INIT;
    struct exit_rules *own = read_file("- containerExitCode: 248\n"
                                       "  patterns:\n"
                                       "  - exitCode: 5\n"
                                       "    platformLogRegex: lost\n"
                                       "  - gpuInfo: {nvidiaDoubleEccError: true}\n",
                                       &said);
    assert_non_null(own);
    struct exit_report input = {
        .exit_code = 5, .is_user_command = true, .platform_tail = TEXT("all lost")};
    assert_int_equal(judge(own, input).completion.code, 248);
    input.platform_tail = TEXT("all won");
    assert_int_equal(judge(own, input).completion.code, 5);
    input.has_gpu_ecc_error = true;
    assert_int_equal(judge(own, input).completion.code, 248);
    exit_rules_free(own);
    buf_clear(&said);
    own = read_file("- containerExitCode: 249\n"
                    "  patterns: [{gpuInfo: {nvidiaGpuLost: true, nvidiaDoubleEccError: true}}]\n"
                    "- containerExitCode: 250\n"
                    "  patterns: [{gpuInfo: {nvidiaGpuGone: true}, exitCode: 7}]\n",
                    &said);
    assert_non_null(own);
    assert_non_null(strstr(buf_cstr(&said), "nvidiaGpuGone")); /* told, and taken for nothing */
    buf_clear(&said);
    assert_int_equal(judge(own, input).completion.code, 128);
    input.has_gpu_lost = true;
    assert_int_equal(judge(own, input).completion.code, 249);
    exit_rules_free(own);
    own = read_file("podFailureSpec:\n"
                    "- code: 221\n"
                    "  phrase: Mine\n"
                    "  type: {name: Failed, attributes: [Transient, Conflict]}\n"
                    "  podPatterns:\n"
                    "  - containers:\n"
                    "    - {codeRange: {min: 7, max: 9}, signalRange: {max: 0}}\n"
                    "- code: 222\n"
                    "  type: {attributes: [Permanent]}\n"
                    "  podPatterns: [{messageRegex: deadbeef}]\n",
                    &said);
    assert_non_null(own);
    input = (struct exit_report){.exit_code = 8, .is_user_command = true};
    assert_int_equal(judge(own, input).completion.attributes, EXIT_TRANSIENT | EXIT_CONFLICT);
    input.signal = 1;
    assert_int_equal(judge(own, input).completion.code, 8);
    input.message = "0xdeadbeef";
    assert_int_equal(judge(own, input).completion.attributes, EXIT_PERMANENT);
    exit_rules_free(own);
    assert_string_equal(buf_cstr(&said), "");
    buf_release(&said);
}

static void bad_files_say_where(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"x", "must be a map or a list"},
        {"spec: 5", "f:1:7: spec: must be a list, is an integer"},
        {"spec: [5]", "spec[0]: must be a map, is an integer"},
        {"spec: [{phrase: A}]", "spec[0]: has no code"},
        {"spec: [{code: a, phrase: A}]", "spec[0].code: must be an integer, is a string"},
        {"spec: [{code: 257, phrase: A}]", "must be in -8000..256, is 257"},
        {"spec: [{code: 1}]", "spec[0].phrase: must have 1..47 characters"},
        {"spec: [{code: 1, phrase: A}, {code: 1, phrase: B}]", "code 1 is there twice"},
        {"spec: [{code: 1, phrase: A, issuer: ME}]", "'ME' is none of USER_CONTAINER"},
        {"spec: [{code: 1, phrase: A, solution: [1]}]", "solution[0]: must be a string"},
        {"spec: [{code: 1, phrase: A, pattern: {runtimeContainerPatterns: [{}]}}]",
         "has no condition and would match all"},
        {"spec: [{code: 1, phrase: A, pattern: {runtimeContainerPatterns: [7]}}]",
         "runtimeContainerPatterns[0]: must be a map"},
        {"spec: [{code: 1, phrase: A, pattern: {controllerPodPatterns: [{containers: [1]}]}}]",
         "containers[0]: must be a map"},
        {"spec: [{code: 1, phrase: A, pattern: {runtimeContainerPatterns: [{userLogRegex: "
         "'(?=a)'}]}}]",
         "userLogRegex: expression: invalid perl operator: (?="},
        {"spec: [{code: 1, phrase: A, pattern: {runtimeContainerPatterns: [{exitCode: 256}]}}]",
         "must be in 0..255"},
        {"- {}", "[0]: has no containerExitCode"},
        {"- {containerExitCode: 0}", "must be in 1..255"},
        {"podFailureSpec: [{}]", "has no code"},
        {"podFailureSpec: [{code: 200, podPatterns: [{reasonRegex: a}]}]", "must not be in -999"},
        {"podFailureSpec: [{code: 220}]", "has no podPatterns"},
        {"podFailureSpec: [{code: 220, podPatterns: 5}]", "has no podPatterns"},
        {"podFailureSpec: [{code: 220, podPatterns: []}]", "has no podPatterns"},
        {"podFailureSpec: [{code: -5, podPatterns: [{reasonRegex: a}]}]", "must not be in -999"},
        {"podFailureSpec: [{code: 9, podPatterns: [{reasonRegex: a}]}, {code: 9, podPatterns: "
         "[{reasonRegex: a}]}]",
         "code 9 is there twice"},
        {"podFailureSpec: [{code: 9, phrase: "
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, podPatterns: "
         "[{reasonRegex: a}]}]",
         "1..47 characters"},
        {"[{containerExitCode: 9}, {containerExitCode: 9}]", "code 9 is there twice"},
        {"podFailureSpec: [{code: 220, type: {name: Succeeded}, podPatterns: [{reasonRegex: a}]}]",
         "must be Failed"},
        {"a: [", "f:"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf said = BUF_INIT;
        struct exit_rules *read = read_file(cases[i].text, &said);
        if (read || text_find(buf_as_text(&said), text_of(cases[i].want)) == SIZE_MAX)
            fail_msg("%s: wanted \"%s\", got \"%s\"", cases[i].text, cases[i].want,
                     buf_cstr(&said));
        buf_release(&said);
    }
    struct buf said = BUF_INIT;
    struct exit_rules *read =
        read_file("odd: 1\nspec: [{code: 1, phrase: A, behavior: TRANSIENT, reaction: "
                  "NEVER_RETRY, colour: red}]\npodFailureSpec: [{code: 2, phrase: B, type: "
                  "{attributes: [Odd]}, podPatterns: [{reasonRegex: a}]}]",
                  &said);
    assert_non_null(read);
    assert_non_null(strstr(buf_cstr(&said), "warning: "));
    assert_non_null(strstr(buf_cstr(&said), "ALWAYS_RETRY"));
    assert_non_null(strstr(buf_cstr(&said), "'Odd' has no meaning"));
    exit_rules_free(read);
    buf_release(&said);
}

static void limits_of_the_file(void **state)
{
    (void)state;
    struct buf text = BUF_INIT, said = BUF_INIT;
    buf_string(&text, "spec:\n");
    for (int i = 0; i <= EXIT_SPECS_MAX; i++)
        buf_format(&text, "- {code: %d, phrase: A%d}\n", -2000 - i, i);
    assert_null(read_file(buf_cstr(&text), &said));
    assert_non_null(strstr(buf_cstr(&said), "more than 1000 codes"));
    buf_clear(&text);
    buf_clear(&said);
    buf_string(&text, "spec:\n- code: 1\n  phrase: A\n  pattern:\n    runtimeContainerPatterns:\n");
    for (int i = 0; i <= EXIT_PATTERNS_MAX; i++)
        buf_string(&text, "    - {exitCode: 1}\n");
    assert_null(read_file(buf_cstr(&text), &said));
    assert_non_null(strstr(buf_cstr(&said), "more than 4000 patterns"));
    buf_release(&text);
    buf_release(&said);
}

/* An expression made to blow up a backtracking search takes no longer than another. */
static void searches_are_linear(void **state)
{
    (void)state;
    struct buf said = BUF_INIT;
    struct exit_rules *own = read_file(
        "spec: [{code: 248, phrase: A, pattern: {runtimeContainerPatterns: [{userLogRegex: "
        "'(a|aa|aaa)*[bc]z'}, {userLogRegex: '(?s)(a+)+.*.*.*never(x|y)'}]}}]",
        &said);
    assert_non_null(own);
    const size_t size = 1 << 20;
    char *log = mem_alloc(size);
    memset(log, 'a', size);
    memcpy(log + size - 6, "neverz", 6);
    const struct exit_report input = {
        .exit_code = 3, .is_user_command = true, .log_tail = {log, size}};
    const struct exit_verdict verdict = judge(own, input);
    assert_int_equal(verdict.completion.code, 3);
    exit_rules_free(own);
    /* this one has more states than can be kept: it costs its length for each byte */
    own = read_file("spec: [{code: 248, phrase: A, pattern: {runtimeContainerPatterns: "
                    "[{userLogRegex: '(a|b)*a(a|b){300}c'}]}}]",
                    &said);
    assert_non_null(own);
    struct random random = {.state = 5};
    for (size_t i = 0; i < size; i++)
        log[i] = random_below(&random, 2) ? 'a' : 'b';
    const struct exit_verdict other = judge(own, input);
    assert_int_equal(other.completion.code, 3);
    mem_free(log);
    exit_rules_free(own);
    buf_release(&said);
}

/* More than 10 MiB: only the end counts. */
static void only_the_tail_counts(void **state)
{
    (void)state;
    const size_t size = EXIT_TAIL_MAX + 100;
    char *log = mem_alloc(size);
    memset(log, '.', size);
    memcpy(log, "MemoryError", 11);
    struct exit_report input = {.exit_code = 3, .is_user_command = true, .log_tail = {log, size}};
    assert_int_equal(judge(rules, input).completion.code, 3);
    memcpy(log + size - 12, "\nMemoryError", 12);
    assert_int_equal(judge(rules, input).completion.code, 237);
    mem_free(log);
}

static void table_is_whole(void **state)
{
    (void)state;
    assert_true(exit_rules_count(rules) >= 62);
    for (size_t i = 0; i < exit_rules_count(rules); i++) {
        const struct exit_spec *spec = exit_rules_at(rules, i);
        assert_ptr_equal(exit_rules_exact(rules, spec->code), spec);
        assert_true(spec->reason[0] != '\0' && spec->phrase[0] != '\0');
    }
    assert_null(exit_rules_exact(rules, 7));
    assert_int_equal(exit_rules_find(rules, 7)->code, 255);
    assert_int_equal(exit_rules_find(rules, 300)->code, 256);
    assert_int_equal(exit_rules_find(rules, -7)->code, -8000);
    assert_int_equal(exit_rules_find(rules, 0)->code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told_by_code_and_log),
        cmocka_unit_test(told_by_the_engine),
        cmocka_unit_test(only_the_platform_vouches),
        cmocka_unit_test(no_reason_vouches_for_nothing),
        cmocka_unit_test(pods_with_containers),
        cmocka_unit_test(creation_errors),
        cmocka_unit_test(verdict_says_what_matched),
        cmocka_unit_test(odd_expressions),
        cmocka_unit_test(operator_extends),
        cmocka_unit_test(other_shapes_are_read),
        cmocka_unit_test(bad_files_say_where),
        cmocka_unit_test(limits_of_the_file),
        cmocka_unit_test(searches_are_linear),
        cmocka_unit_test(only_the_tail_counts),
        cmocka_unit_test(table_is_whole),
    };
    return cmocka_run_group_tests_name("exit", tests, set_up, tear_down);
}
