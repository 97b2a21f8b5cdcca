#include "engine/kubernetes/image_words.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"

/* As a kubelet may quote an image that has no more than a name: docker.io/library/NAME:TAG. */
struct image_name {
    struct text name, tag, both;
};

static bool is_letter(char byte)
{
    return byte >= 'a' && byte <= 'z';
}

/* Of a name or an address; what ends a sentence is one as well. */
static bool is_of_name(char byte)
{
    return is_letter(byte) || (byte >= '0' && byte <= '9') ||
           (byte && strchr("._-/:@%+=?&~", byte));
}

static char *small_copy(const char *from, struct arena *arena)
{
    char *copy = arena_copy(arena, text_of(from));
    for (char *at = copy; *at; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    return copy;
}

static struct image_name name_of(const char *image)
{
    const char *slash = strrchr(image, '/');
    struct text rest = text_of(slash ? slash + 1 : image);
    const struct text both = text_cut(&rest, '@');
    rest = both;
    const struct text name = text_cut(&rest, ':');
    return (struct image_name){.name = name, .tag = rest, .both = both};
}

static bool is_prose(struct text word)
{
    for (size_t i = 0; i < word.length; i++)
        if (!is_letter(word.at[i]))
            return false;
    return true;
}

static bool is_quoted(const char *message, struct text word)
{
    const char *end = word.at + word.length;
    return word.at > message && strchr("\"'`", word.at[-1]) && *end && strchr("\"'`\\", *end);
}

static bool is_name(const char *message, struct text word, const struct image_name *image)
{
    for (size_t i = 0; i < word.length; i++)
        if (strchr("/@%.", word.at[i]))
            return true;
    if (!text_equal(word, image->name) && !text_equal(word, image->tag) &&
        !text_equal(word, image->both))
        return false;
    return !is_prose(word) || is_quoted(message, word);
}

const char *image_words(const char *message, const char *image, struct arena *arena)
{
    assert(message && image);
    char *words = small_copy(message, arena);
    const struct image_name name = name_of(small_copy(image, arena));
    for (char *at = words; *at;) {
        char *end = at;
        while (is_of_name(*end))
            end++;
        struct text word = {at, (size_t)(end - at)};
        while (word.length && strchr(".:", word.at[word.length - 1]))
            word.length--;
        if (word.length && is_name(words, word, &name))
            memset(at, '_', word.length);
        at = *end ? end + 1 : end;
    }
    return words;
}
