/*
 * mpiio_ext_layout.c - layouts of files for callers outside the library: a mpiio_ext_layout is a mpiox_layout_facts
 * under a public name.
 */
#include <errno.h>
#include <stddef.h>

#include "mpiio_ext.h"
#include "mpiox_layout_inspect.h"

static const mpiox_layout_facts *facts_of(const mpiio_ext_layout *layout)
{
    return (const mpiox_layout_facts *)layout;
}

static const mpiox_layout_component *component_of(const mpiio_ext_layout *layout, int index)
{
    const mpiox_layout_facts *facts = facts_of(layout);
    return index >= 0 && index < facts->n_components ? &facts->components[index] : NULL;
}

int mpiio_ext_layout_fact_count(void)
{
    return MPIOX_FACTS;
}

int mpiio_ext_layout_inspect(const char *path, int64_t striping_unit, int32_t striping_factor, int32_t start_iodevice,
                             mpiio_ext_layout **layout, int *sys_errno)
{
    const mpiox_layout_wish wish = {striping_unit, striping_factor, start_iodevice};
    mpiox_layout_facts *facts;
    int rc = mpiox_layout_inspect_path(path, &wish, &facts);
    *sys_errno = rc == MPIOX_E_IO ? errno : 0;
    *layout = (mpiio_ext_layout *)facts;
    return rc;
}

int mpiio_ext_layout_is_folder(const mpiio_ext_layout *layout)
{
    return facts_of(layout)->is_folder;
}

const char *mpiio_ext_layout_value(const mpiio_ext_layout *layout, int index)
{
    if (index < 0 || index >= MPIOX_FACTS || !mpiox_facts_has(facts_of(layout), (mpiox_fact)index))
        return NULL;
    return facts_of(layout)->fact[index].value;
}

const char *mpiio_ext_layout_source(const mpiio_ext_layout *layout, int index)
{
    return mpiio_ext_layout_value(layout, index) != NULL ? facts_of(layout)->fact[index].source : NULL;
}

int mpiio_ext_layout_component_count(const mpiio_ext_layout *layout)
{
    return facts_of(layout)->n_components;
}

int mpiio_ext_layout_component(const mpiio_ext_layout *layout, int index, int64_t *numbers)
{
    const mpiox_layout_component *component = component_of(layout, index);
    if (component == NULL)
        return MPIOX_E_ARG;
    numbers[0] = component->start;
    numbers[1] = component->end;
    numbers[2] = component->stripe_size;
    numbers[3] = component->stripe_count;
    numbers[4] = component->servers;
    numbers[5] = component->mirror;
    numbers[6] = component->targets;
    return MPIOX_OK;
}

const char *mpiio_ext_layout_component_text(const mpiio_ext_layout *layout, int index, int which)
{
    const mpiox_layout_component *component = component_of(layout, index);
    if (component == NULL || which < 0 || which > 2)
        return NULL;
    return which == 0 ? component->pattern : which == 1 ? component->flags : component->pool;
}

const char *mpiio_ext_layout_target(const mpiio_ext_layout *layout, int index, int stripe)
{
    const mpiox_layout_component *component = component_of(layout, index);
    if (component == NULL || stripe < 0 || stripe >= component->targets)
        return NULL;
    return facts_of(layout)->targets[component->first_target + stripe];
}
