#include "base/memory.h"
#include "job/automaton.h"
#include <assert.h>
#include <stdlib.h>

/* The source has passed the check of expression.c and PCRE2, so errors of syntax cannot occur. */

enum { CODE_MAX = 0x10ffff, RANGES_MAX = 400, LEVELS_MAX = 300 };
enum { FLAG_FOLD = 1, FLAG_LINES = 2, FLAG_DOT_ALL = 4 };

struct code_range {
    uint32_t first, last;
};

struct code_set {
    struct code_range items[RANGES_MAX];
    size_t count;
};

struct builder {
    struct automaton *automaton;
    struct text source;
    size_t at;
    bool is_utf, is_failed;
    uint8_t flags;
    unsigned level;
};

/* Entered at `start`, left by `end`, a NODE_NOP whose way out is still to be set. */
struct part {
    uint32_t start, end;
};

static struct part alternation(struct builder *builder);

/* ---- nodes ---- */

static uint32_t node_add(struct builder *builder, struct node node)
{
    struct automaton *automaton = builder->automaton;
    if (automaton->nodes.count >= AUTOMATON_NODES_MAX) {
        builder->is_failed = true;
        return 0;
    }
    *ARRAY_ADD(&automaton->nodes) = node;
    return (uint32_t)(automaton->nodes.count - 1);
}

static uint32_t nop_add(struct builder *builder)
{
    return node_add(builder, (struct node){.kind = NODE_NOP});
}

static void join(struct builder *builder, uint32_t from, uint32_t to)
{
    builder->automaton->nodes.items[from].out = to;
}

static struct part empty_part(struct builder *builder, uint8_t empty)
{
    const uint32_t end = nop_add(builder);
    if (empty == 0)
        return (struct part){end, end};
    const uint32_t start =
        node_add(builder, (struct node){.kind = NODE_EMPTY, .empty = empty, .out = end});
    return (struct part){start, end};
}

static uint16_t set_find(struct builder *builder, const struct byte_set *set)
{
    struct automaton *automaton = builder->automaton;
    for (size_t i = 0; i < automaton->sets.count; i++)
        if (memcmp(&automaton->sets.items[i], set, sizeof *set) == 0)
            return (uint16_t)i;
    *ARRAY_ADD(&automaton->sets) = *set;
    return (uint16_t)(automaton->sets.count - 1);
}

static struct byte_set set_of(uint32_t first, uint32_t last)
{
    struct byte_set set = {{0}};
    for (uint32_t byte = first; byte <= last; byte++)
        set.bits[byte >> 6] |= UINT64_C(1) << (byte & 63);
    return set;
}

static struct part bytes_part(struct builder *builder, const struct byte_set *set)
{
    const uint16_t index = set_find(builder, set);
    const uint32_t end = nop_add(builder);
    const uint32_t start =
        node_add(builder, (struct node){.kind = NODE_BYTES, .set = index, .out = end});
    return (struct part){start, end};
}

static struct part either(struct builder *builder, struct part a, struct part b)
{
    const uint32_t end = nop_add(builder);
    const uint32_t start =
        node_add(builder, (struct node){.kind = NODE_SPLIT, .out = a.start, .out2 = b.start});
    join(builder, a.end, end);
    join(builder, b.end, end);
    return (struct part){start, end};
}

static struct part optional(struct builder *builder, struct part a)
{
    const uint32_t start =
        node_add(builder, (struct node){.kind = NODE_SPLIT, .out = a.start, .out2 = a.end});
    return (struct part){start, a.end};
}

static struct part repeated(struct builder *builder, struct part a, bool is_optional)
{
    const uint32_t end = nop_add(builder);
    const uint32_t again =
        node_add(builder, (struct node){.kind = NODE_SPLIT, .out = a.start, .out2 = end});
    join(builder, a.end, again);
    return (struct part){is_optional ? again : a.start, end};
}

/* ---- sets of characters ---- */

static void codes_add(struct builder *builder, struct code_set *set, uint32_t first, uint32_t last)
{
    if (set->count == RANGES_MAX)
        builder->is_failed = true;
    else
        set->items[set->count++] = (struct code_range){first, last};
}

static int code_order(const void *a_pointer, const void *b_pointer)
{
    const struct code_range *a = a_pointer, *b = b_pointer;
    return (a->first > b->first) - (a->first < b->first);
}

static void codes_sort(struct code_set *set)
{
    qsort(set->items, set->count, sizeof *set->items, code_order);
    size_t used = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct code_range *last = used > 0 ? &set->items[used - 1] : NULL;
        if (last && set->items[i].first <= last->last + 1)
            last->last = set->items[i].last > last->last ? set->items[i].last : last->last;
        else
            set->items[used++] = set->items[i];
    }
    set->count = used;
}

static void codes_negate(struct builder *builder, struct code_set *set)
{
    const uint32_t most = builder->is_utf ? CODE_MAX : UINT8_MAX;
    struct code_set rest = {.count = 0};
    codes_sort(set);
    uint32_t next = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i].first > next)
            codes_add(builder, &rest, next, set->items[i].first - 1);
        next = set->items[i].last + 1;
    }
    if (next <= most)
        codes_add(builder, &rest, next, most);
    *set = rest;
}

/* Letters of ASCII in both cases. */
static void codes_fold(struct builder *builder, struct code_set *set)
{
    const size_t count = set->count;
    for (size_t i = 0; i < count; i++)
        for (uint32_t c = 'a'; c <= 'z'; c++) {
            const uint32_t upper = c - 'a' + 'A';
            const struct code_range range = set->items[i];
            const bool has_lower = range.first <= c && c <= range.last;
            const bool has_upper = range.first <= upper && upper <= range.last;
            if (has_lower != has_upper)
                codes_add(builder, set, has_lower ? upper : c, has_lower ? upper : c);
        }
    codes_sort(set);
}

static uint32_t utf_lengths(uint32_t code)
{
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

static void utf_bytes(uint32_t code, uint32_t length, uint8_t bytes[4])
{
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (uint32_t i = length - 1; i > 0; i--, code >>= 6)
        bytes[i] = (uint8_t)(0x80 | (code & 0x3f));
    bytes[0] = (uint8_t)(length == 1 ? code : lead[length] | code);
}

/* Ranges that one sequence of byte ranges can say: the same length, and all lower bytes whole
 * wherever a higher one differs. */
static void utf_range(struct builder *builder, uint32_t first, uint32_t last, struct part *sum,
                      bool *has_sum)
{
    static const uint32_t ends[] = {0x7f, 0x7ff, 0xffff};
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (first <= ends[i] && last > ends[i]) {
            utf_range(builder, first, ends[i], sum, has_sum);
            utf_range(builder, ends[i] + 1, last, sum, has_sum);
            return;
        }
    const uint32_t length = utf_lengths(first);
    for (uint32_t i = 1; i < length; i++) {
        const uint32_t low = (UINT32_C(1) << (6 * i)) - 1;
        if ((first & ~low) == (last & ~low))
            continue;
        const uint32_t cut = (first & low) != 0    ? first | low
                             : (last & low) != low ? (last & ~low) - 1
                                                   : last;
        if (cut == last)
            continue;
        utf_range(builder, first, cut, sum, has_sum);
        utf_range(builder, cut + 1, last, sum, has_sum);
        return;
    }
    uint8_t low[4], high[4];
    utf_bytes(first, length, low);
    utf_bytes(last, length, high);
    struct part part = {0};
    for (uint32_t i = 0; i < length; i++) {
        const struct byte_set set = set_of(low[i], high[i]);
        const struct part byte = bytes_part(builder, &set);
        if (i == 0) {
            part = byte;
        } else {
            join(builder, part.end, byte.start);
            part.end = byte.end;
        }
    }
    *sum = *has_sum ? either(builder, *sum, part) : part;
    *has_sum = true;
}

static struct part codes_part(struct builder *builder, struct code_set *set)
{
    if (builder->flags & FLAG_FOLD)
        codes_fold(builder, set);
    codes_sort(set);
    const uint32_t single = builder->is_utf ? 0x7f : UINT8_MAX;
    struct byte_set bytes = {{0}};
    struct part sum = {0};
    bool has_sum = false;
    for (size_t i = 0; i < set->count && !builder->is_failed; i++) {
        struct code_range range = set->items[i];
        for (; range.first <= range.last && range.first <= single; range.first++)
            bytes.bits[range.first >> 6] |= UINT64_C(1) << (range.first & 63);
        if (builder->is_utf && range.first <= range.last)
            utf_range(builder, range.first, range.last, &sum, &has_sum);
    }
    const struct part part = bytes_part(builder, &bytes); /* may be of no byte: never matches */
    return has_sum ? either(builder, part, sum) : part;
}

/* ---- the source ---- */

static int peek(const struct builder *builder, size_t ahead)
{
    const size_t at = builder->at + ahead;
    return at < builder->source.length ? (unsigned char)builder->source.at[at] : -1;
}

static uint32_t hex_digit(int c)
{
    return (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

static bool is_hex(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static uint32_t take_hex(struct builder *builder)
{
    uint32_t code = 0;
    if (peek(builder, 0) == '{') {
        for (builder->at++; is_hex(peek(builder, 0)); builder->at++)
            code = code > CODE_MAX ? code : code * 16 + hex_digit(peek(builder, 0));
        builder->at++;
        return code;
    }
    for (int i = 0; i < 2 && is_hex(peek(builder, 0)); i++, builder->at++)
        code = code * 16 + hex_digit(peek(builder, 0));
    return code;
}

static uint32_t take_octal(struct builder *builder)
{
    uint32_t code = 0;
    for (int i = 0; i < 3 && peek(builder, 0) >= '0' && peek(builder, 0) <= '7'; i++, builder->at++)
        code = code * 8 + (uint32_t)(peek(builder, 0) - '0');
    return code;
}

/* A character as written: a byte, or all bytes of it where the expression is UTF-8. */
static uint32_t take_code(struct builder *builder)
{
    const uint32_t lead = (uint32_t)peek(builder, 0);
    builder->at++;
    if (!builder->is_utf || lead < 0xc0)
        return lead;
    const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    uint32_t code = lead & (0x3fu >> more);
    for (int i = 0; i < more && peek(builder, 0) >= 0; i++, builder->at++)
        code = code << 6 | ((uint32_t)peek(builder, 0) & 0x3f);
    return code;
}

static void add_word(struct builder *builder, struct code_set *set)
{
    codes_add(builder, set, '0', '9');
    codes_add(builder, set, 'A', 'Z');
    codes_add(builder, set, '_', '_');
    codes_add(builder, set, 'a', 'z');
}

/* \d, \D, \s, … into `set`. False: another letter. */
static bool add_perl(struct builder *builder, int letter, struct code_set *set)
{
    struct code_set part = {.count = 0};
    switch (letter | 0x20) {
    case 'd':
        codes_add(builder, &part, '0', '9');
        break;
    case 's':
        codes_add(builder, &part, '\t', '\r');
        codes_add(builder, &part, ' ', ' ');
        break;
    case 'w':
        add_word(builder, &part);
        break;
    default:
        return false;
    }
    if (!(letter & 0x20))
        codes_negate(builder, &part);
    for (size_t i = 0; i < part.count; i++)
        codes_add(builder, set, part.items[i].first, part.items[i].last);
    return true;
}

/* Behind a backslash: one character, or a set of them. Leaves the source behind it. */
static void take_escape(struct builder *builder, struct code_set *set)
{
    static const char letters[] = "aftnr", codes[] = "\a\f\t\n\r";
    const int c = peek(builder, 0);
    if (c == 'p' || c == 'P') {
        builder->is_failed = true;
        builder->at = builder->source.length;
        return;
    }
    if (c < 0x80 && add_perl(builder, c, set)) {
        builder->at++;
        return;
    }
    uint32_t code;
    const char *letter = c > 0 && c < 0x80 ? strchr(letters, c) : NULL;
    if (c >= '0' && c <= '7') {
        code = take_octal(builder);
    } else if (c == 'x') {
        builder->at++;
        code = take_hex(builder);
    } else if (letter) {
        builder->at++;
        code = (uint8_t)codes[letter - letters];
    } else {
        code = take_code(builder);
    }
    codes_add(builder, set, code, code);
}

static void add_posix(struct builder *builder, struct code_set *set)
{
    static const struct {
        const char *name;
        struct code_range ranges[5];
    } named[] = {
        {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
        {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
        {"ascii", {{1, 0x7f}, {0, 0}}},
        {"blank", {{'\t', '\t'}, {' ', ' '}}},
        {"cntrl", {{1, 0x1f}, {0x7f, 0x7f}}},
        {"digit", {{'0', '9'}}},
        {"graph", {{'!', '~'}}},
        {"lower", {{'a', 'z'}}},
        {"print", {{' ', '~'}}},
        {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
        {"space", {{'\t', '\r'}, {' ', ' '}}},
        {"upper", {{'A', 'Z'}}},
        {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
        {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
    };
    builder->at += 2; /* [: */
    const bool is_negated = peek(builder, 0) == '^';
    builder->at += is_negated;
    const struct text rest = {builder->source.at + builder->at,
                              builder->source.length - builder->at};
    const size_t length = text_find(rest, TEXT(":]"));
    const struct text name = {rest.at, length};
    builder->at += length + 2;
    struct code_set part = {.count = 0};
    bool is_known = false;
    for (size_t i = 0; i < COUNT_OF(named); i++) {
        if (!text_is(name, named[i].name))
            continue;
        is_known = true;
        for (size_t r = 0; r < 5 && named[i].ranges[r].last != 0; r++)
            codes_add(builder, &part, named[i].ranges[r].first, named[i].ranges[r].last);
        if (text_is(name, "ascii") || text_is(name, "cntrl"))
            codes_add(builder, &part, 0, 0);
    }
    builder->is_failed |= !is_known;
    if (is_negated)
        codes_negate(builder, &part);
    for (size_t i = 0; i < part.count; i++)
        codes_add(builder, set, part.items[i].first, part.items[i].last);
}

/* One member of a class. True: a single character that may begin a range. */
static bool take_member(struct builder *builder, struct code_set *set)
{
    const size_t before = set->count;
    if (peek(builder, 0) == '[' && peek(builder, 1) == ':') {
        add_posix(builder, set);
        return false;
    }
    if (peek(builder, 0) == '\\') {
        builder->at++;
        take_escape(builder, set);
    } else {
        const uint32_t code = take_code(builder);
        codes_add(builder, set, code, code);
    }
    return set->count == before + 1 && set->items[before].first == set->items[before].last;
}

static struct part class_part(struct builder *builder)
{
    struct code_set set = {.count = 0};
    builder->at++;
    const bool is_negated = peek(builder, 0) == '^';
    builder->at += is_negated;
    for (bool is_first = true; !builder->is_failed && (is_first || peek(builder, 0) != ']');
         is_first = false) {
        const bool is_single = take_member(builder, &set);
        if (!is_single || peek(builder, 0) != '-' || peek(builder, 1) == ']')
            continue;
        const size_t first = set.count - 1;
        builder->at++;
        if (take_member(builder, &set)) {
            set.items[first].last = set.items[set.count - 1].first;
            set.count--;
        } else {
            codes_add(builder, &set, '-', '-');
        }
    }
    builder->at++;
    if (is_negated) { /* fold first: [^a] without case has neither a nor A */
        if (builder->flags & FLAG_FOLD)
            codes_fold(builder, &set);
        codes_negate(builder, &set);
        const uint8_t flags = builder->flags;
        builder->flags &= (uint8_t)~FLAG_FOLD;
        const struct part part = codes_part(builder, &set);
        builder->flags = flags;
        return part;
    }
    return codes_part(builder, &set);
}

static struct part code_part(struct builder *builder, uint32_t code)
{
    struct code_set set = {.items = {{code, code}}, .count = 1};
    return codes_part(builder, &set);
}

static struct part dot_part(struct builder *builder)
{
    struct code_set set = {.count = 0};
    const uint8_t flags = builder->flags;
    if (!(flags & FLAG_DOT_ALL))
        codes_add(builder, &set, '\n', '\n');
    codes_negate(builder, &set);
    builder->flags &= (uint8_t)~FLAG_FOLD;
    const struct part part = codes_part(builder, &set);
    builder->flags = flags;
    return part;
}

/* At \Q. A quantifier behind it would bind to the last character alone: left to PCRE2. */
static struct part quoted_part(struct builder *builder)
{
    builder->at += 2;
    struct part sum = empty_part(builder, 0);
    while (peek(builder, 0) >= 0 && !(peek(builder, 0) == '\\' && peek(builder, 1) == 'E')) {
        const struct part next = code_part(builder, take_code(builder));
        join(builder, sum.end, next.start);
        sum.end = next.end;
    }
    builder->at += peek(builder, 0) >= 0 ? 2 : 0;
    const int c = peek(builder, 0);
    builder->is_failed |= c > 0 && c < 0x80 && strchr("*+?{", c) != NULL;
    return sum;
}

static struct part escape_part(struct builder *builder)
{
    const int c = peek(builder, 1);
    static const struct {
        char letter;
        uint8_t empty;
    } empties[] = {{'A', EMPTY_BEGIN_TEXT},
                   {'z', EMPTY_END_TEXT},
                   {'b', EMPTY_WORD_EDGE},
                   {'B', EMPTY_NO_WORD_EDGE}};
    for (size_t i = 0; i < COUNT_OF(empties); i++)
        if (empties[i].letter == c) {
            builder->at += 2;
            return empty_part(builder, empties[i].empty);
        }
    struct code_set set = {.count = 0};
    builder->at++;
    const bool is_class = strchr("dDsSwW", c) != NULL;
    take_escape(builder, &set);
    const uint8_t flags = builder->flags;
    if (is_class)
        builder->flags &= (uint8_t)~FLAG_FOLD;
    const struct part part = codes_part(builder, &set);
    builder->flags = flags;
    return part;
}

static uint8_t flag_of(int letter)
{
    return letter == 'i'   ? FLAG_FOLD
           : letter == 'm' ? FLAG_LINES
           : letter == 's' ? FLAG_DOT_ALL
                           : 0;
}

/* At '('. Flags alone hold to the end of the group that they stand in. */
static struct part group_part(struct builder *builder)
{
    const uint8_t outside = builder->flags;
    builder->at++;
    if (peek(builder, 0) == '?' && (peek(builder, 1) == 'P' || peek(builder, 1) == '<')) {
        while (peek(builder, 0) != '>')
            builder->at++;
        builder->at++;
    } else if (peek(builder, 0) == '?') {
        bool is_off = false;
        for (builder->at++; peek(builder, 0) != ':' && peek(builder, 0) != ')'; builder->at++) {
            is_off |= peek(builder, 0) == '-';
            const uint8_t flag = flag_of(peek(builder, 0));
            builder->flags = (uint8_t)(is_off ? builder->flags & ~flag : builder->flags | flag);
        }
        builder->at++;
        if (builder->source.at[builder->at - 1] == ')')
            return empty_part(builder, 0);
    }
    builder->is_failed |= ++builder->level > LEVELS_MAX;
    const struct part part = builder->is_failed ? empty_part(builder, 0) : alternation(builder);
    builder->level--;
    builder->at++; /* ) */
    builder->flags = outside;
    return part;
}

static struct part atom(struct builder *builder)
{
    const int c = peek(builder, 0);
    const bool is_multi = builder->flags & FLAG_LINES;
    switch (c) {
    case '\\':
        return peek(builder, 1) == 'Q' ? quoted_part(builder) : escape_part(builder);
    case '[':
        return class_part(builder);
    case '(':
        return group_part(builder);
    case '.':
        builder->at++;
        return dot_part(builder);
    case '^':
        builder->at++;
        return empty_part(builder, is_multi ? EMPTY_BEGIN_LINE : EMPTY_BEGIN_TEXT);
    case '$':
        builder->at++;
        return empty_part(builder, is_multi ? EMPTY_END_LINE : EMPTY_END_TEXT);
    default:
        return code_part(builder, take_code(builder));
    }
}

/* {n}, {n,}, {n,m} at the source; false: the brace stands for itself. */
static bool take_count(struct builder *builder, unsigned *least, unsigned *most)
{
    size_t ahead = 1;
    unsigned numbers[2] = {0, 0};
    bool has_second = false, has_comma = false;
    for (int i = 0; i < 2; i++) {
        const size_t first = ahead;
        for (; peek(builder, ahead) >= '0' && peek(builder, ahead) <= '9'; ahead++)
            numbers[i] = numbers[i] * 10 + (unsigned)(peek(builder, ahead) - '0');
        if (i == 0 && ahead == first)
            return false;
        has_second = i == 1 && ahead > first;
        if (i == 0 && peek(builder, ahead) != ',')
            break;
        has_comma = true;
        ahead += i == 0;
    }
    if (peek(builder, ahead) != '}')
        return false;
    builder->at += ahead + 1;
    *least = numbers[0];
    *most = has_second ? numbers[1] : has_comma ? UINT32_MAX : numbers[0];
    return true;
}

static void append(struct builder *builder, struct part *sum, struct part next)
{
    join(builder, sum->end, next.start);
    sum->end = next.end;
}

/* `first`, made of the source at `from`, least … most times. The first copy is `first` itself: were
 * it made twice, nested repetitions would take for ever. */
static struct part counted(struct builder *builder, struct part first, size_t from, unsigned least,
                           unsigned most)
{
    const size_t behind = builder->at;
    const bool is_open = most == UINT32_MAX;
    const unsigned copies = is_open ? (least > 0 ? least : 1) : most;
    struct part sum = empty_part(builder, 0);
    for (unsigned i = 0; i < copies && !builder->is_failed; i++) {
        builder->at = from;
        struct part copy = i == 0 ? first : atom(builder);
        if (is_open && i + 1 == copies)
            copy = repeated(builder, copy, least == 0);
        else if (i >= least)
            copy = optional(builder, copy);
        append(builder, &sum, copy);
    }
    builder->at = behind;
    return sum;
}

static struct part piece(struct builder *builder)
{
    const size_t from = builder->at;
    struct part part = atom(builder);
    const int c = peek(builder, 0);
    unsigned least = 0, most = 0;
    bool is_repeated = true;
    if (c == '*' || c == '+' || c == '?') {
        builder->at++;
        part = c == '?' ? optional(builder, part) : repeated(builder, part, c == '*');
    } else if (c == '{' && take_count(builder, &least, &most)) {
        part = counted(builder, part, from, least, most);
    } else {
        is_repeated = false;
    }
    if (is_repeated && peek(builder, 0) == '?')
        builder->at++;
    return part;
}

static struct part alternation(struct builder *builder)
{
    struct part sum = {0};
    bool has_sum = false;
    for (;;) {
        struct part branch = empty_part(builder, 0);
        while (!builder->is_failed && peek(builder, 0) >= 0 && peek(builder, 0) != '|' &&
               peek(builder, 0) != ')')
            append(builder, &branch, piece(builder));
        sum = has_sum ? either(builder, sum, branch) : branch;
        has_sum = true;
        if (builder->is_failed || peek(builder, 0) != '|')
            return sum;
        builder->at++;
    }
}

/* Bytes that nothing tells apart. */
static void classes_make(struct automaton *automaton)
{
    for (int byte = 0; byte < 256; byte++) {
        uint16_t class = 0;
        for (; class < automaton->class_count; class ++) {
            const int other = automaton->examples[class];
            bool is_same =
                is_word_byte(byte) == is_word_byte(other) && (byte == '\n') == (other == '\n');
            for (size_t s = 0; s < automaton->sets.count && is_same; s++) {
                const uint64_t *bits = automaton->sets.items[s].bits;
                is_same =
                    (bits[byte >> 6] >> (byte & 63) & 1) == (bits[other >> 6] >> (other & 63) & 1);
            }
            if (is_same)
                break;
        }
        if (class == automaton->class_count)
            automaton->examples[automaton->class_count++] = (uint8_t)byte;
        automaton->classes[byte] = (uint8_t) class;
    }
}

bool automaton_init(struct automaton *automaton, struct text source, bool is_utf)
{
    *automaton = (struct automaton){0};
    automaton->is_utf = is_utf;
    struct builder builder = {.automaton = automaton, .source = source, .is_utf = is_utf};
    const struct part all = alternation(&builder);
    const uint32_t match = node_add(&builder, (struct node){.kind = NODE_MATCH});
    if (builder.is_failed) {
        automaton_release(automaton);
        return false;
    }
    assert(builder.at == source.length);
    join(&builder, all.end, match);
    automaton->start = all.start;
    classes_make(automaton);
    return true;
}

void automaton_release(struct automaton *automaton)
{
    ARRAY_FREE(&automaton->nodes);
    ARRAY_FREE(&automaton->sets);
}
