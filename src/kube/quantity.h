/* quantity.h — Kubernetes' way to write amounts: "100m", "1.5", "16Gi", "2e3".
 *
 * Pure. The rule is that of k8s.io/apimachinery/pkg/api/resource: a decimal number and one suffix
 * of n, u, m, k, M, G, T, P, E (powers of 1000) or Ki … Ei (powers of 1024), or a decimal exponent.
 */
#ifndef KUBE_QUANTITY_H
#define KUBE_QUANTITY_H
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

/* In thousandths, what is smaller is cut off. False: it is none, is negative, or does not fit. */
bool quantity_read(struct text text, int64_t *milli);

#endif
