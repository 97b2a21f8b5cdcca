/* What an exit was, who vouches for it, and which rule said so. */
#include "table.h"
#include "unit.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/memory.h"
#include "doc/problem.h"
#include "exits/judge.h"
#include "job/blame.h"

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
        /* as the Kubernetes engine gives up a pod whose registry is away, whatever its name is */
        {{.exit_code = 137,
          .reason = "ErrImagePull",
          .message = "it could not be started within 5 minutes"},
         -1210,
         "PLATFORM_FAILURE"},
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
        {{.exit_code = 137, .reason = "TaskDiskFull", .is_user_command = true},
         236,
         "UNKNOWN_FAILURE"},
        {{.exit_code = 1, .reason = "ProcessLimit", .is_user_command = true}, 227, "USER_FAILURE"},
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
        {{.exit_code = 217}, 217, "USER_FAILURE"},
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

static double weight(struct exit_report report)
{
    const struct exit_verdict verdict = judge(rules, report);
    return blame_weight(&verdict.completion, verdict.spec->type, verdict.evidence);
}

/* The engine vouches for these ends too, but a user can bring them about on any node: by files that
 * fill a volume of the pod, or by deleting the pod. */
static void ends_that_a_user_brings_about_blame_no_node(void **state)
{
    (void)state;
    const struct exit_report evicted = {.exit_code = 137, .signal = 9, .reason = "Evicted"};
    const struct exit_report removed = {.is_missing = true};
    assert_int_equal(evidence(rules, evicted), EVIDENCE_PLATFORM);
    assert_true(weight(evicted) == 0);
    assert_true(weight(removed) == 0);
    assert_true(weight((struct exit_report){.is_lost = true}) == 1);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(told_by_code_and_log),
    cmocka_unit_test(told_by_the_engine),
    cmocka_unit_test(only_the_platform_vouches),
    cmocka_unit_test(no_reason_vouches_for_nothing),
    cmocka_unit_test(pods_with_containers),
    cmocka_unit_test(verdict_says_what_matched),
    cmocka_unit_test(only_the_tail_counts),
    cmocka_unit_test(ends_that_a_user_brings_about_blame_no_node),
};
UNIT_FILE(tests, set_up, tear_down);
