/* fields.h — every field of the job file formats: the one table that the parser checks by and that
 * the JSON Schema and the test of the user's reference are made from.
 *
 * Private to spec.
 */
#ifndef SPEC_FIELDS_H
#define SPEC_FIELDS_H
#include "doc/shape.h"
#include "spec/spec.h"

extern const struct shape spec_v1_shape, spec_v2_shape, spec_market_shape;
const struct shape *spec_shape(enum spec_format format);

/* Parameters of the runtime plugin `name`, NULL when there is no such plugin. */
const struct shape *spec_plugin_shape(struct text name);
void spec_plugin_offer(struct near *near, struct text name);

#define SPEC_PLUGIN_PREFIX "com.microsoft.pai.runtimeplugin"

#endif
