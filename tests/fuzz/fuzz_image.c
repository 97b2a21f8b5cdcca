/* What a registry answers: a manifest, a challenge, and a file of credentials, from the same bytes.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "engine/local/manifest.h"
#include "engine/local/pull.h"
#include "engine/local/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void manifest_try(struct text bytes)
{
    static struct manifest manifest;
    struct err err = {0};
    if (manifest_read(bytes, &manifest, &err) < 0) {
        assert(err.text[0]);
        return;
    }
    assert(manifest.is_list || manifest.blob_count >= 1);
    assert(!manifest.chosen[0] || digest_hex(manifest.chosen));
    for (size_t i = 0; i < manifest.blob_count; i++) {
        assert(digest_hex(manifest.blobs[i].digest));
        assert(manifest.blobs[i].bytes <= manifest.bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct text bytes = {(const char *)data, size};
    struct arena arena;
    const char *user, *password;
    char words[200];
    bool is_final;
    manifest_try(bytes);
    arena_init(&arena);
    const char *string = arena_copy(&arena, bytes);
    pull_complaint(string, words, sizeof words);
    assert(pull_reason(string, words, &is_final)[0]);
    assert(strlen(registry_token_url(bytes, &arena)) <= 4 * size + 32);
    if (registry_auth_find(bytes, "r:5000", "team/app", &arena, &user, &password) ==
        REGISTRY_AUTH_FOUND)
        assert(strlen(user) + strlen(password) <= size);
    arena_release(&arena);
    return 0;
}
