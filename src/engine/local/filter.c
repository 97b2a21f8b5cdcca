#include "engine/local/filter.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <linux/audit.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARCHITECTURES_MAX = 8,
    COPIES_MAX = 1024,
    NEAR = 200, /* a conditional jump goes 255 far; room for a few instructions between */
    STEPS_MAX = FILTER_MAX,
    AT_NUMBER = offsetof(struct seccomp_data, nr),
    AT_ARCHITECTURE = offsetof(struct seccomp_data, arch),
};

/* How a call ends as far as its number and architecture tell. */
struct filter_end {
    bool is_answer;
    uint32_t value; /* the answer, or the instruction at which an argument is looked at */
};

struct range { /* of numbers, up to the next one's */
    uint32_t from;
    struct filter_end outcome;
};

struct numbers {
    uint32_t *items;
    size_t count, room;
};

struct ranges {
    struct range *items;
    size_t count, room;
};

/* --- reading --- */

static bool jump_holds(uint16_t code, uint32_t value, uint32_t constant)
{
    switch (BPF_OP(code)) {
    case BPF_JEQ:
        return value == constant;
    case BPF_JGT:
        return value > constant;
    case BPF_JGE:
        return value >= constant;
    default:
        return (value & constant) != 0;
    }
}

static bool is_jump(uint16_t code)
{
    return code == (BPF_JMP | BPF_JEQ | BPF_K) || code == (BPF_JMP | BPF_JGT | BPF_K) ||
           code == (BPF_JMP | BPF_JGE | BPF_K) || code == (BPF_JMP | BPF_JSET | BPF_K);
}

static size_t jump_target(const struct sock_filter *one, size_t at, bool holds)
{
    return at + 1 + (holds ? one->jt : one->jf);
}

bool filter_run(const struct sock_filter *program, size_t count, const struct seccomp_data *data,
                uint32_t *answer)
{
    uint32_t value = 0;
    for (size_t at = 0; at < count; at++) { /* jumps go forward only */
        const struct sock_filter *one = &program[at];
        if (is_jump(one->code)) {
            at = jump_target(one, at, jump_holds(one->code, value, one->k)) - 1;
        } else if (one->code == (BPF_JMP | BPF_JA)) {
            at += one->k;
        } else if (one->code == (BPF_RET | BPF_K)) {
            *answer = one->k;
            return true;
        } else if (one->code == (BPF_ALU | BPF_AND | BPF_K)) {
            value &= one->k;
        } else if (one->code == (BPF_LD | BPF_W | BPF_ABS) && one->k <= sizeof *data - 4) {
            memcpy(&value, (const char *)data + one->k, 4);
        } else {
            return false;
        }
    }
    return false;
}

/* False: not understood. `number` NULL: it must not matter. */
static bool outcome_of(const struct sock_filter *program, size_t count, uint32_t architecture,
                       const uint32_t *number, struct filter_end *outcome)
{
    uint32_t value = 0;
    bool is_known = false;
    for (size_t at = 0; at < count; at++) {
        const struct sock_filter *one = &program[at];
        if (is_jump(one->code)) {
            if (!is_known || BPF_OP(one->code) == BPF_JSET) /* ends no range */
                return false;
            at = jump_target(one, at, jump_holds(one->code, value, one->k)) - 1;
        } else if (one->code == (BPF_JMP | BPF_JA)) {
            at += one->k;
        } else if (one->code == (BPF_RET | BPF_K)) {
            *outcome = (struct filter_end){.is_answer = true, .value = one->k};
            return true;
        } else if (one->code != (BPF_LD | BPF_W | BPF_ABS)) {
            return false;
        } else if (one->k == AT_ARCHITECTURE || one->k == AT_NUMBER) {
            if (one->k == AT_NUMBER && !number)
                return false;
            value = one->k == AT_NUMBER ? *number : architecture;
            is_known = true;
        } else {
            *outcome = (struct filter_end){.is_answer = false, .value = (uint32_t)at};
            return number != NULL;
        }
    }
    return false;
}

static bool outcome_is(struct filter_end a, struct filter_end b)
{
    return a.is_answer == b.is_answer && a.value == b.value;
}

static int number_order(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* Wherever a comparison may turn over: between these nothing changes. */
static void turns_list(const struct sock_filter *program, size_t count, struct numbers *turns)
{
    *ARRAY_ADD(turns) = 0;
    for (size_t i = 0; i < count; i++)
        if (is_jump(program[i].code)) {
            *ARRAY_ADD(turns) = program[i].k;
            *ARRAY_ADD(turns) = program[i].k + 1; /* after the last one: 0 */
        }
    qsort(turns->items, turns->count, sizeof *turns->items, number_order);
}

static bool ranges_list(const struct sock_filter *program, size_t count, uint32_t architecture,
                        const struct numbers *turns, struct ranges *ranges)
{
    ranges->count = 0;
    for (size_t i = 0; i < turns->count; i++) {
        struct filter_end outcome;
        if (!outcome_of(program, count, architecture, &turns->items[i], &outcome))
            return false;
        if (ranges->count == 0 || !outcome_is(ranges->items[ranges->count - 1].outcome, outcome))
            *ARRAY_ADD(ranges) = (struct range){turns->items[i], outcome};
    }
    return true;
}

/* The first thing is the architecture, compared with one after the other. */
static size_t architectures_list(const struct sock_filter *program, size_t count, uint32_t *list)
{
    size_t found = 0;
    if (count == 0 || program[0].code != (BPF_LD | BPF_W | BPF_ABS) ||
        program[0].k != AT_ARCHITECTURE)
        return 0;
    for (size_t at = 1; at < count && is_jump(program[at].code);) {
        if (BPF_OP(program[at].code) != BPF_JEQ || found == ARCHITECTURES_MAX)
            return 0;
        list[found++] = program[at].k;
        at = jump_target(&program[at], at, false);
        while (at < count && program[at].code == (BPF_JMP | BPF_JA))
            at += 1 + program[at].k;
    }
    return found;
}

/* --- writing: from the end to the beginning, so that every target is there --- */

struct filter_writer {
    const struct sock_filter *program;
    size_t program_count;
    struct sock_filter *out; /* backwards */
    size_t count;            /* a place is how many there were when it had been written */
    bool is_full;
    struct copy {
        struct filter_end outcome;
        size_t place;
    } copies[COPIES_MAX];
    size_t copy_count;
};

static size_t one_write(struct filter_writer *maker, struct sock_filter one)
{
    if (maker->count == FILTER_MAX)
        maker->is_full = true;
    else
        maker->out[maker->count++] = one;
    return maker->count;
}

static size_t jump_write(struct filter_writer *maker, size_t place)
{
    return one_write(maker, (struct sock_filter){.code = BPF_JMP | BPF_JA,
                                                 .k = (uint32_t)(maker->count - place)});
}

static size_t branch_write(struct filter_writer *maker, uint16_t code, uint32_t constant,
                           size_t yes, size_t no)
{
    if (maker->count - yes > NEAR)
        yes = jump_write(maker, yes);
    if (maker->count - no > NEAR)
        no = jump_write(maker, no);
    return one_write(maker, (struct sock_filter){.code = code,
                                                 .jt = (uint8_t)(maker->count - yes),
                                                 .jf = (uint8_t)(maker->count - no),
                                                 .k = constant});
}

/* What follows falls through to here. */
static void place_continue(struct filter_writer *maker, size_t place)
{
    if (place != maker->count)
        jump_write(maker, place);
}

static size_t outcome_write(struct filter_writer *maker, struct filter_end outcome);

static size_t rest_write(struct filter_writer *maker, size_t at)
{
    while (at < maker->program_count && maker->program[at].code == (BPF_JMP | BPF_JA))
        at += 1 + maker->program[at].k;
    if (at >= maker->program_count || maker->is_full) {
        maker->is_full = true;
        return maker->count;
    }
    const struct sock_filter *one = &maker->program[at];
    bool is_answer = one->code == (BPF_RET | BPF_K);
    return outcome_write(maker, (struct filter_end){is_answer, is_answer ? one->k : (uint32_t)at});
}

/* The part that looks at arguments, as it stands. */
static size_t part_write(struct filter_writer *maker, size_t at)
{
    const struct sock_filter *one = &maker->program[at];
    if (is_jump(one->code)) {
        size_t yes = rest_write(maker, jump_target(one, at, true));
        size_t no = rest_write(maker, jump_target(one, at, false));
        return branch_write(maker, one->code, one->k, yes, no);
    }
    place_continue(maker, rest_write(maker, at + 1));
    return one_write(maker, *one);
}

static size_t outcome_write(struct filter_writer *maker, struct filter_end outcome)
{
    for (size_t i = maker->copy_count; i-- > 0;) /* the nearest is the last */
        if (outcome_is(maker->copies[i].outcome, outcome)) {
            if (!outcome.is_answer || maker->count - maker->copies[i].place <= NEAR)
                return maker->copies[i].place;
            break;
        }
    size_t place =
        outcome.is_answer
            ? one_write(maker, (struct sock_filter){.code = BPF_RET | BPF_K, .k = outcome.value})
            : part_write(maker, outcome.value);
    if (maker->copy_count == COPIES_MAX)
        maker->is_full = true;
    else
        maker->copies[maker->copy_count++] = (struct copy){outcome, place};
    return place;
}

/* Halve until one is left; one number between two alike is asked for by name. */
static size_t ranges_write(struct filter_writer *maker, const struct range *ranges, size_t count)
{
    assert(ranges && count > 0);
    if (count == 1)
        return outcome_write(maker, ranges[0].outcome);
    if (count == 3 && ranges[1].from + 1 == ranges[2].from &&
        outcome_is(ranges[0].outcome, ranges[2].outcome)) {
        size_t yes = outcome_write(maker, ranges[1].outcome);
        size_t no = outcome_write(maker, ranges[0].outcome);
        return branch_write(maker, BPF_JMP | BPF_JEQ | BPF_K, ranges[1].from, yes, no);
    }
    size_t half = count / 2;
    size_t yes = ranges_write(maker, ranges + half, count - half);
    size_t no = ranges_write(maker, ranges, half);
    return branch_write(maker, BPF_JMP | BPF_JGE | BPF_K, ranges[half].from, yes, no);
}

static bool program_write(struct filter_writer *maker, const uint32_t *architectures, size_t count,
                          const struct numbers *turns, struct ranges *ranges)
{
    uint32_t other = 0;
    for (size_t i = 0; i < count; i++) /* the first number that none of them is */
        if (architectures[i] == other) {
            other++;
            i = SIZE_MAX;
        }
    struct filter_end outcome;
    if (!outcome_of(maker->program, maker->program_count, other, NULL, &outcome))
        return false;
    size_t place = outcome_write(maker, outcome);
    for (size_t i = 0; i < count; i++) {
        if (!ranges_list(maker->program, maker->program_count, architectures[i], turns, ranges))
            return false;
        place_continue(maker, ranges_write(maker, ranges->items, ranges->count));
        size_t entry = one_write(
            maker, (struct sock_filter){.code = BPF_LD | BPF_W | BPF_ABS, .k = AT_NUMBER});
        place = branch_write(maker, BPF_JMP | BPF_JEQ | BPF_K, architectures[i], entry, place);
    }
    one_write(maker, (struct sock_filter){.code = BPF_LD | BPF_W | BPF_ABS, .k = AT_ARCHITECTURE});
    return !maker->is_full;
}

size_t filter_shorten(const struct sock_filter *program, size_t count, struct sock_filter *out)
{
    uint32_t architectures[ARCHITECTURES_MAX];
    size_t architecture_count = architectures_list(program, count, architectures);
    if (architecture_count == 0)
        return 0;
    struct filter_writer maker = {.program = program, .program_count = count, .out = out};
    cleanup_array struct numbers turns = {0};
    cleanup_array struct ranges ranges = {0};
    turns_list(program, count, &turns);
    bool is_made = program_write(&maker, architectures, architecture_count, &turns, &ranges);
    if (!is_made || maker.count >= count)
        return 0;
    for (size_t i = 0; i < maker.count / 2; i++) {
        struct sock_filter swapped = out[i];
        out[i] = out[maker.count - 1 - i];
        out[maker.count - 1 - i] = swapped;
    }
    return maker.count;
}
