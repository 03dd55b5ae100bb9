"""Several hosts on one machine, made of namespaces: tests and measurements between nodes; docs/project/clusters.md.

Problem.   What happens between nodes (two network stacks, memory that cannot be mapped, launchers' daemons, caches of
           file systems, a host that vanishes) shows only where there are nodes.
Method.    A host is a process with namespaces of its own (network, mounts, host name, IPC, processes), the first of its
           process namespace: whatever runs on the host is below it, and dies with it. Hosts are joined by a bridge in a
           network namespace of their own, so that the machine's own network is not touched. One process, the keeper,
           holds all of them; without root it does so in a user namespace, where it is root. Launchers start their
           daemons through an agent, as through ssh.
Guarantee. When the keeper ends, in whatever way, no process, namespace, interface or mount is left; a second process,
           the sweeper, then removes the files.

Only Python's own library is used: the interpreter of the system can start a cluster.

============  ======================================================================================================
client        start, use and stop a cluster from another process
keeper        the process that holds the hosts
host          one host: its namespaces and its first process
host_init     that first process, which runs the commands that agents bring
agent         what ssh is to launchers
network       the bridge, the links, bandwidth and latency
folders       shared folders: bind mount, GlusterFS, NFS
launchers     command lines of Open MPI's and MPICH's launchers
needs         what is missing on this machine
commands      the command line
============  ======================================================================================================
"""
