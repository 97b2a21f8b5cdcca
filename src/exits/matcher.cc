#include "exits/matcher.h"

#include <cassert>
#include <cstdio>
#include <memory>
#include <re2/filtered_re2.h>
#include <re2/re2.h>
#include <re2/set.h>
#include <string>
#include <vector>

using re2::FilteredRE2;
using re2::RE2;
using re2::StringPiece;

namespace
{
constexpr int PIECE_MIN = 3; /* bytes; shorter pieces of text occur in every log */
constexpr int64_t EXPRESSION_MEMORY = 4 << 20;
constexpr int64_t PIECES_MEMORY = 64 << 20;
constexpr size_t UNFILTERED = SIZE_MAX;

RE2::Options options_of(bool is_utf8, bool is_of_lines)
{
    RE2::Options options;
    options.set_encoding(is_utf8 ? RE2::Options::EncodingUTF8 : RE2::Options::EncodingLatin1);
    options.set_log_errors(false);
    options.set_never_capture(true);
    options.set_never_nl(is_of_lines);
    options.set_max_mem(EXPRESSION_MEMORY);
    return options;
}

bool is_beyond_ascii(StringPiece source)
{
    for (char c : source)
        if (static_cast<unsigned char>(c) >= 0x80)
            return true;
    return source.find("\\p") != StringPiece::npos || source.find("\\P") != StringPiece::npos ||
           source.find("\\x{") != StringPiece::npos;
}

StringPiece piece_of(struct text text)
{
    return text.length > 0 ? StringPiece(text.at, text.length) : StringPiece("", 0);
}

/* The line in which a match ends at `end`. A newline just before the end belongs to its line,
 * unless no match has one. */
struct text line_at(struct text text, size_t end, bool is_of_lines)
{
    const bool is_newline = !is_of_lines && end > 0 && text.at[end - 1] == '\n';
    size_t first = is_newline ? end - 1 : end, last = first;
    const size_t earliest = first > MATCHER_BEFORE ? first - MATCHER_BEFORE : 0;
    while (first > earliest && text.at[first - 1] != '\n')
        first--;
    while (last < text.length && text.at[last] != '\n')
        last++;
    return {text.at + first, last - first};
}

struct expression {
    std::unique_ptr<RE2> own;     /* of an expression that cannot be filtered */
    size_t filtered = UNFILTERED; /* else its number in `filtered` */
};
} // namespace

/* Pieces are compared without regard to the case of ASCII letters, which is right for expressions
 * on bytes only: those on UTF-8 are candidates always. */
struct matcher {
    bool is_of_lines = false;
    std::vector<expression> expressions;
    FilteredRE2 filtered{PIECE_MIN};
    std::vector<size_t> owners; /* of `filtered`'s numbers: expressions */
    std::unique_ptr<RE2::Set> pieces;
};

struct matcher *matcher_new(void)
{
    return new matcher;
}

struct matcher *matcher_new_of_lines(void)
{
    struct matcher *matcher = matcher_new();
    matcher->is_of_lines = true;
    return matcher;
}

void matcher_free(struct matcher *matcher)
{
    delete matcher;
}

static bool is_taken(const RE2 &expression, char reason[160])
{
    if (expression.ok() && expression.ProgramSize() <= MATCHER_PROGRAM_MAX)
        return true;
    if (expression.ok()) {
        snprintf(reason, 160, "repeats too much: it has %d instructions, at most %d are allowed",
                 expression.ProgramSize(), MATCHER_PROGRAM_MAX);
        return false;
    }
    snprintf(reason, 160, "%.150s", expression.error().c_str());
    return false;
}

bool matcher_add(struct matcher *matcher, struct text source, char reason[160])
{
    assert(!matcher->pieces);
    if (source.length > MATCHER_EXPRESSION_MAX) {
        snprintf(reason, 160, "longer than %d bytes", MATCHER_EXPRESSION_MAX);
        return false;
    }
    const bool is_utf8 = is_beyond_ascii(piece_of(source));
    expression added;
    added.own = std::make_unique<RE2>(piece_of(source), options_of(is_utf8, matcher->is_of_lines));
    if (!is_taken(*added.own, reason))
        return false;
    if (!is_utf8) {
        int number = 0;
        const RE2::ErrorCode code = matcher->filtered.Add(
            piece_of(source), options_of(false, matcher->is_of_lines), &number);
        assert(code == RE2::NoError && static_cast<size_t>(number) == matcher->owners.size());
        (void)code;
        added.filtered = static_cast<size_t>(number);
        added.own.reset();
        matcher->owners.push_back(matcher->expressions.size());
    }
    matcher->expressions.push_back(std::move(added));
    return true;
}

void matcher_build(struct matcher *matcher)
{
    assert(!matcher->pieces);
    std::vector<std::string> pieces;
    if (!matcher->owners.empty())
        matcher->filtered.Compile(&pieces);
    RE2::Options options = options_of(false, false);
    options.set_literal(true);
    options.set_case_sensitive(false);
    options.set_max_mem(PIECES_MEMORY);
    matcher->pieces = std::make_unique<RE2::Set>(options, RE2::UNANCHORED);
    for (const std::string &piece : pieces)
        matcher->pieces->Add(piece, nullptr);
    if (!matcher->pieces->Compile()) /* too many pieces: everything is a candidate */
        matcher->pieces = std::make_unique<RE2::Set>(options, RE2::UNANCHORED);
}

size_t matcher_count(const struct matcher *matcher)
{
    return matcher->expressions.size();
}

void matcher_filter(const struct matcher *matcher, struct text text, bool *candidates)
{
    std::vector<int> present, potential;
    RE2::Set::ErrorInfo error;
    const size_t count = matcher->expressions.size();
    assert(matcher->pieces);
    const bool is_found = matcher->pieces->Match(piece_of(text), &present, &error);
    const bool is_known = is_found || error.kind == RE2::Set::kNoError;
    for (size_t i = 0; i < count; i++)
        candidates[i] = !is_known || matcher->expressions[i].own;
    if (!is_known || matcher->owners.empty())
        return;
    matcher->filtered.AllPotentials(present, &potential);
    for (int number : potential)
        candidates[matcher->owners[static_cast<size_t>(number)]] = true;
}

bool matcher_search(const struct matcher *matcher, size_t index, struct text text,
                    struct text *found)
{
    assert(index < matcher->expressions.size());
    const expression &at = matcher->expressions[index];
    const RE2 &re2 = at.own ? *at.own : matcher->filtered.GetRE2(static_cast<int>(at.filtered));
    const size_t most = MATCHER_WORK_MAX / static_cast<size_t>(re2.ProgramSize());
    if (text.length > most)
        text = {text.at + text.length - most, most};
    const StringPiece piece = piece_of(text);
    StringPiece match;
    if (!re2.Match(piece, 0, piece.size(), RE2::UNANCHORED, &match, found ? 1 : 0))
        return false;
    if (found)
        *found = line_at(text, static_cast<size_t>(match.data() + match.size() - piece.data()),
                         matcher->is_of_lines);
    return true;
}
