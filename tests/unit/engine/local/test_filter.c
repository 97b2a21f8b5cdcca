/* The shortened seccomp program answers as the one it was made of. */
#include "unit.h"

#include <errno.h>
#include <linux/audit.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/local/filter.h"
#include "engine/local/oci.h"

static struct sock_filter whole[FILTER_MAX], shorter[FILTER_MAX];

static void assert_agree(size_t count, size_t shorter_count, const struct seccomp_data *data)
{
    uint32_t left = 1, right = 2;
    assert_true(filter_run(whole, count, data, &left));
    assert_true(filter_run(shorter, shorter_count, data, &right));
    if (left != right)
        fail_msg("call %#x of architecture %#x with %#llx: %#x became %#x", (unsigned)data->nr,
                 data->arch, (unsigned long long)data->args[0], left, right);
}

/* Values of a first argument: each bit alone, all others, and those that the profile names. */
static void assert_agree_for_arguments(size_t count, size_t shorter_count,
                                       struct seccomp_data *data)
{
    static const uint64_t named[] = {0,  0x8, 0x20000, 0x20008,    0x20009,   0xffffffff,
                                     39, 40,  41,      0x7e020000, UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(named); i++)
        for (uint64_t high = 0; high < 2; high++) {
            data->args[0] = named[i] + (high << 32);
            assert_agree(count, shorter_count, data);
        }
    for (int bit = 0; bit < 64; bit++)
        for (int is_other = 0; is_other < 2; is_other++) {
            data->args[0] = is_other ? ~(1ull << bit) : 1ull << bit;
            assert_agree(count, shorter_count, data);
        }
    data->args[0] = 0;
}

static void test_profile(void **state)
{
    (void)state;
    static const uint32_t architectures[] = {
        AUDIT_ARCH_X86_64, AUDIT_ARCH_I386,    AUDIT_ARCH_AARCH64,      AUDIT_ARCH_ARM, 0, 1,
        UINT32_MAX,        AUDIT_ARCH_RISCV64, AUDIT_ARCH_X86_64 & 0xff};
    static const uint32_t places[] = {0,          0x3ffffff0, 0x40000000,
                                      0x7ffffff0, 0x80000000, 0xfffff000};
    struct err err = {0};
    size_t count = 0;
    assert_int_equal(oci_seccomp_compile(whole, &count, &err), 0);
    size_t shorter_count = filter_shorten(whole, count, shorter);
    assert_in_range(shorter_count, 1, count / 2);
    for (size_t a = 0; a < COUNT_OF(architectures); a++)
        for (size_t p = 0; p < COUNT_OF(places); p++)
            for (uint32_t i = 0; i < 4096; i++) {
                struct seccomp_data data = {.nr = (int)(places[p] + i), .arch = architectures[a]};
                assert_agree(count, shorter_count, &data);
                if (i < 512)
                    assert_agree_for_arguments(count, shorter_count, &data);
            }
    for (size_t i = 0; i < count; i++) /* wherever a comparison may turn */
        for (int beside = -1; beside <= 1; beside++)
            for (size_t a = 0; a < COUNT_OF(architectures); a++) {
                struct seccomp_data data = {.nr = (int)(whole[i].k + (uint32_t)beside),
                                            .arch = architectures[a]};
                assert_agree(count, shorter_count, &data);
            }
}

/* The test above would see a difference. */
static void test_answers(void **state)
{
    (void)state;
    struct err err = {0};
    size_t count = 0;
    uint32_t answer;
    assert_int_equal(oci_seccomp_compile(whole, &count, &err), 0);
#ifdef __x86_64__
    struct seccomp_data data = {.nr = 0, .arch = AUDIT_ARCH_X86_64}; /* read */
    assert_true(filter_run(whole, count, &data, &answer));
    assert_int_equal(answer, SECCOMP_RET_ALLOW);
    data.nr = 321; /* bpf */
    assert_true(filter_run(whole, count, &data, &answer));
    assert_int_equal(answer, SECCOMP_RET_ERRNO | EPERM);
    data.nr = 435; /* clone3 */
    assert_true(filter_run(whole, count, &data, &answer));
    assert_int_equal(answer, SECCOMP_RET_ERRNO | ENOSYS);
    data = (struct seccomp_data){.nr = 41, .arch = AUDIT_ARCH_X86_64, .args = {40}}; /* socket */
    assert_true(filter_run(whole, count, &data, &answer));
    assert_int_equal(answer, SECCOMP_RET_ERRNO | EPERM);
    data.args[0] = 2;
    assert_true(filter_run(whole, count, &data, &answer));
    assert_int_equal(answer, SECCOMP_RET_ALLOW);
#else
    struct seccomp_data data = {.nr = 0, .arch = 1};
    assert_true(filter_run(whole, count, &data, &answer));
    assert_int_not_equal(answer, SECCOMP_RET_ALLOW);
#endif
}

#define LOAD(offset)                                                                               \
    {                                                                                              \
        BPF_LD | BPF_W | BPF_ABS, 0, 0, offset                                                     \
    }
#define JUMP(kind, yes, no, constant)                                                              \
    {                                                                                              \
        BPF_JMP | (kind) | BPF_K, yes, no, constant                                                \
    }
#define RET(answer)                                                                                \
    {                                                                                              \
        BPF_RET | BPF_K, 0, 0, answer                                                              \
    }

/* What is not understood stays as it is. */
static void test_refused(void **state)
{
    (void)state;
    static const struct sock_filter no_architecture[] = {
        LOAD(0), JUMP(BPF_JEQ, 0, 1, 3), RET(1), RET(2), RET(3), RET(4)};
    static const struct sock_filter bits[] = {
        LOAD(4), JUMP(BPF_JEQ, 0, 3, 7), LOAD(0), JUMP(BPF_JSET, 0, 1, 3), RET(1), RET(2)};
    static const struct sock_filter calculates[] = {LOAD(4),
                                                    JUMP(BPF_JEQ, 0, 4, 7),
                                                    LOAD(0),
                                                    {BPF_ALU | BPF_AND | BPF_K, 0, 0, 15},
                                                    JUMP(BPF_JEQ, 0, 1, 3),
                                                    RET(1),
                                                    RET(2)};
    static const struct sock_filter endless[] = {LOAD(4), JUMP(BPF_JEQ, 0, 200, 7), LOAD(0),
                                                 RET(1)};
    static const struct sock_filter short_one[] = {LOAD(4), JUMP(BPF_JEQ, 0, 2, 7), LOAD(0), RET(1),
                                                   RET(2)};
    static const struct sock_filter any_number[] = {
        LOAD(4), JUMP(BPF_JEQ, 0, 2, 7), LOAD(0), RET(1),
        LOAD(0), JUMP(BPF_JEQ, 0, 1, 3), RET(2),  RET(3)};
    assert_int_equal(filter_shorten(no_architecture, COUNT_OF(no_architecture), shorter), 0);
    assert_int_equal(filter_shorten(bits, COUNT_OF(bits), shorter), 0);
    assert_int_equal(filter_shorten(calculates, COUNT_OF(calculates), shorter), 0);
    assert_int_equal(filter_shorten(endless, COUNT_OF(endless), shorter), 0);
    assert_int_equal(filter_shorten(short_one, COUNT_OF(short_one), shorter), 0);
    assert_int_equal(filter_shorten(any_number, COUNT_OF(any_number), shorter), 0);
    assert_int_equal(filter_shorten(short_one, 0, shorter), 0);
    uint32_t answer;
    struct seccomp_data data = {.arch = 8};
    assert_false(filter_run(endless, COUNT_OF(endless), &data, &answer));
}

/* Far jumps: more ranges than a conditional jump reaches over. */
static void test_many_ranges(void **state)
{
    (void)state;
    size_t count = 0;
    whole[count++] = (struct sock_filter)LOAD(4);
    whole[count++] = (struct sock_filter)JUMP(BPF_JEQ, 1, 0, 7);
    whole[count++] = (struct sock_filter)RET(99);
    whole[count++] = (struct sock_filter)LOAD(0);
    for (uint32_t i = 0; i < 900; i++) { /* three answers by turns, each for two numbers */
        whole[count++] = (struct sock_filter)JUMP(BPF_JEQ, 1, 0, 2 * i);
        whole[count++] = (struct sock_filter)JUMP(BPF_JEQ, 0, 1, 2 * i + 1);
        whole[count++] = (struct sock_filter)RET(i % 3);
    }
    whole[count++] = (struct sock_filter)RET(50);
    size_t shorter_count = filter_shorten(whole, count, shorter);
    assert_in_range(shorter_count, 1, count / 2);
    for (uint32_t i = 0; i < 4000; i++) {
        struct seccomp_data data = {.nr = (int)i, .arch = 7};
        assert_agree(count, shorter_count, &data);
        data.arch = 8;
        assert_agree(count, shorter_count, &data);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_profile),
    cmocka_unit_test(test_answers),
    cmocka_unit_test(test_refused),
    cmocka_unit_test(test_many_ranges),
};
UNIT_FILE(tests, NULL, NULL);
