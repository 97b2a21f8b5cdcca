/* image_words.h — what a kubelet says of an image that it cannot fetch, without the names in it.
 *
 * Pure. Users choose the names of images, and kubelets repeat them: that acme/forbidden-city:1
 * cannot be fetched just now does not say that it is forbidden.
 */
#ifndef ENGINE_KUBERNETES_IMAGE_WORDS_H
#define ENGINE_KUBERNETES_IMAGE_WORDS_H

struct arena;

/* `message` in small letters, with '_' for each letter of an address, of a path, of whatever else
 * has one of "/@%" or a dot in it, and of the name and the tag of `image` alone. A name that is
 * nothing but letters is taken for one only in quotes: "access denied" may be about access:denied.
 * In `arena`. */
const char *image_words(const char *message, const char *image, struct arena *arena);

#endif
