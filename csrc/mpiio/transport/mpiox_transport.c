/* mpiox_transport.c - see mpiox_transport.h. A new transport: its file, its name in the header, one line here. */
#include "mpiox_transport.h"

const mpiox_transport_ops *mpiox_transport_choose(const mpiox_file *file)
{
    return mpiox_topology_one_node(file->topology) ? &mpiox_transport_shm : &mpiox_transport_messages;
}
