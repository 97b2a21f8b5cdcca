/* openpai_volumes.h — the storages and the nodes of an OpenPAI cluster, said in Skep's words.
 *
 * Pure. In OpenPAI a storage is a PersistentVolumeClaim of the namespace `default`; what stands
 * behind it says the volume that it is bound to. Of the machines layout.yaml says the GPUs.
 */
#ifndef CLI_OPENPAI_VOLUMES_H
#define CLI_OPENPAI_VOLUMES_H
#include "doc/doc.h"

struct arena;
struct openpai_output;

/* `volumes`: what `kubectl get pvc,pv -o yaml` prints. Appends the key `storages` to skepd.yaml,
 * and notes each claim. With `is_local` a storage is a folder; otherwise a claim, which claims.yaml
 * makes in the namespace of the pods, as OpenPAI's are in another. */
void openpai_storages(const struct doc *volumes, bool is_local, struct arena *arena,
                      struct openpai_output *output);

/* Fills nodes.sh: labels and taints for the workers of layout.yaml. `counts_gpus`: how many GPUs a
 * node has is a label, as no device plugin says it. */
void openpai_nodes(const struct doc *layout, bool counts_gpus, struct arena *arena,
                   struct openpai_output *output);

/* The kind of computing device of the first worker that has some, "nvidia.com/gpu"; empty: none. */
struct text openpai_device(const struct doc *layout);

#endif
