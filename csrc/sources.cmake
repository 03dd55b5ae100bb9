# The C sources, by who loads them. A new file of csrc has its line here (`make lint` says so), and nowhere else. What is
# generated is listed in cmake/generated.cmake.

# datatypes as strided descriptions, and the copy loops
set(MPIOX_TYPEMAP_SOURCES
    csrc/core/typemap/mpiox_copy.c
    csrc/core/typemap/mpiox_typemap_array.c
    csrc/core/typemap/mpiox_typemap_blob.c
    csrc/core/typemap/mpiox_typemap_build.c
    csrc/core/typemap/mpiox_typemap_contents.c
    csrc/core/typemap/mpiox_typemap_cursor.c
    csrc/core/typemap/mpiox_typemap_decode.c
    csrc/core/typemap/mpiox_typemap_disjoint.c
    csrc/core/typemap/mpiox_typemap_edges.c
    csrc/core/typemap/mpiox_typemap_items.c
    csrc/core/typemap/mpiox_typemap_mpi.c
    csrc/core/typemap/mpiox_typemap_order.c
    csrc/core/typemap/mpiox_typemap_query.c
    csrc/core/typemap/mpiox_typemap_runs.c
    csrc/core/typemap/mpiox_typemap_struct.c
    csrc/core/typemap/mpiox_typemap_tree.c)

# file domains, for whoever plans or predicts
set(MPIOX_DOMAINS_SOURCES
    csrc/core/domains/mpiox_partition_aligned.c
    csrc/core/domains/mpiox_partition_even.c
    csrc/core/domains/mpiox_partition_group_cyclic.c
    csrc/core/domains/mpiox_partition_registry.c
    csrc/core/domains/mpiox_partition_static_cyclic.c
    csrc/core/domains/mpiox_partition_transpose.c
    csrc/core/domains/mpiox_plan.c
    csrc/core/domains/mpiox_plan_arrays.c
    csrc/core/domains/mpiox_plan_windows.c)

# file systems, hints and nodes, for whoever does the I/O
set(MPIOX_CORE_SOURCES
    ${MPIOX_TYPEMAP_SOURCES}
    ${MPIOX_DOMAINS_SOURCES}
    csrc/core/abi/mpiox_other_abi.c
    csrc/core/common/mpiox_error.c
    csrc/core/common/mpiox_event.c
    csrc/core/common/mpiox_parts.c
    csrc/core/common/mpiox_segment.c
    csrc/core/common/mpiox_segment_guard.c
    csrc/core/common/mpiox_text.c
    csrc/core/common/mpiox_wait.c
    csrc/core/common/mpiox_worker.c
    csrc/core/hints/mpiox_hints_mca.c
    csrc/core/hints/mpiox_hints_names.c
    csrc/core/hints/mpiox_hints_openmpi.c
    csrc/core/hints/mpiox_hints_registry.c
    csrc/core/hints/mpiox_hints_resolve.c
    csrc/core/hints/mpiox_hints_romio.c
    csrc/core/hints/mpiox_hints_text.c
    csrc/core/hints/mpiox_hints_value.c
    csrc/core/layout/mpiox_layout_ceph.c
    csrc/core/layout/mpiox_layout_create.c
    csrc/core/layout/mpiox_layout_detect.c
    csrc/core/layout/mpiox_layout_facts.c
    csrc/core/layout/mpiox_layout_find_mount.c
    csrc/core/layout/mpiox_layout_gluster.c
    csrc/core/layout/mpiox_layout_inspect.c
    csrc/core/layout/mpiox_layout_library.c
    csrc/core/layout/mpiox_layout_lustre.c
    csrc/core/layout/mpiox_layout_mounts.c
    csrc/core/layout/mpiox_layout_probe_beegfs.c
    csrc/core/layout/mpiox_layout_probe_ceph.c
    csrc/core/layout/mpiox_layout_probe_daos.c
    csrc/core/layout/mpiox_layout_probe_gluster.c
    csrc/core/layout/mpiox_layout_probe_gpfs.c
    csrc/core/layout/mpiox_layout_probe_local.c
    csrc/core/layout/mpiox_layout_probe_lustre.c
    csrc/core/layout/mpiox_layout_span.c
    csrc/core/live/mpiox_live.c
    csrc/core/opener/mpiox_opener.c
    csrc/core/stats/mpiox_stats.c
    csrc/core/stats/mpiox_stats_identity.c
    csrc/core/stats/mpiox_stats_line.c
    csrc/core/stats/mpiox_stats_paying.c
    csrc/core/storage/mpiox_open_uring.c
    csrc/core/storage/mpiox_storage_descriptor.c
    csrc/core/storage/mpiox_storage_direct.c
    csrc/core/storage/mpiox_storage_list.c
    csrc/core/storage/mpiox_storage_lock.c
    csrc/core/storage/mpiox_storage_map.c
    csrc/core/storage/mpiox_storage_plain.c
    csrc/core/storage/mpiox_storage_pool.c
    csrc/core/storage/mpiox_storage_posix.c
    csrc/core/storage/mpiox_storage_refresh.c
    csrc/core/storage/mpiox_storage_folder.c
    csrc/core/storage/mpiox_storage_staging.c
    csrc/core/storage/mpiox_storage_transfer.c
    csrc/core/storage/mpiox_storage_uring.c
    csrc/core/topology/mpiox_topology_bcast.c
    csrc/core/topology/mpiox_topology_keep.c
    csrc/core/topology/mpiox_topology_make.c
    csrc/core/topology/mpiox_topology_memory.c
    csrc/core/topology/mpiox_topology_page.c
    csrc/core/topology/mpiox_topology_wait.c)

# files that are stored as several; without them (-DMPIOX_SUBFILES=OFF) what refuses them
set(MPIOX_SUBFILES_SOURCES
    csrc/core/subfiles/mpiox_subfiles.c
    csrc/core/subfiles/mpiox_subfiles_files.c
    csrc/core/subfiles/mpiox_subfiles_index.c
    csrc/core/subfiles/mpiox_subfiles_opener.c
    csrc/core/subfiles/mpiox_subfiles_past.c)
set(MPIOX_WITHOUT_SUBFILES_SOURCES
    csrc/core/without/mpiox_without_subfiles.c)

# the name that a file has until delegates have written it; without it (-DMPIOX_STAGED=OFF) nobody waits for one
set(MPIOX_STAGED_SOURCES
    csrc/iod/staged/mpiox_staged.c)
set(MPIOX_WITHOUT_STAGED_SOURCES
    csrc/core/without/mpiox_without_staged.c)

# collective and independent access of a file
set(MPIOX_MPIIO_SOURCES
    csrc/mpiio/auto_select/mpiox_auto_cost.c
    csrc/mpiio/auto_select/mpiox_auto_explain.c
    csrc/mpiio/auto_select/mpiox_auto_rounds.c
    csrc/mpiio/auto_select/mpiox_auto_rules.c
    csrc/mpiio/auto_select/mpiox_auto_select.c
    csrc/mpiio/auto_select/mpiox_auto_systems.c
    csrc/mpiio/buffers/mpiox_buffers_memory.c
    csrc/mpiio/buffers/mpiox_slots.c
    csrc/mpiio/buffers/mpiox_window_io.c
    csrc/mpiio/buffers/mpiox_windows.c
    csrc/mpiio/collective/mpiox_aggregators.c
    csrc/mpiio/collective/mpiox_choose.c
    csrc/mpiio/collective/mpiox_collective_call.c
    csrc/mpiio/collective/mpiox_owners.c
    csrc/mpiio/collective/mpiox_contribution.c
    csrc/mpiio/collective/mpiox_rounds.c
    csrc/mpiio/collective/mpiox_rounds_used.c
    csrc/mpiio/collective/mpiox_reduction.c
    csrc/mpiio/file/mpiox_file_abort.c
    csrc/mpiio/file/mpiox_file_coherence.c
    csrc/mpiio/file/mpiox_file_view.c
    csrc/mpiio/file/mpiox_independent.c
    csrc/mpiio/file/mpiox_independent_file.c
    csrc/mpiio/file/mpiox_independent_methods.c
    csrc/mpiio/file/mpiox_overlap.c
    csrc/mpiio/file/mpiox_shared_pointer.c
    csrc/mpiio/transport/mpiox_message_entries.c
    csrc/mpiio/transport/mpiox_message_inbox.c
    csrc/mpiio/transport/mpiox_message_sends.c
    csrc/mpiio/transport/mpiox_exchange_rounds.c
    csrc/mpiio/transport/mpiox_message_views.c
    csrc/mpiio/transport/mpiox_message_wait.c
    csrc/mpiio/transport/mpiox_messages_read.c
    csrc/mpiio/transport/mpiox_messages_write.c
    csrc/mpiio/transport/mpiox_transport.c
    csrc/mpiio/transport/mpiox_transport_messages.c
    csrc/mpiio/transport/mpiox_transport_shm.c)

# I/O delegates: their processes, and the files that go through them
set(MPIOX_IOD_SOURCES
    csrc/iod/arbiter/mpiox_arbiter.c
    csrc/iod/arbiter/mpiox_map.c
    csrc/iod/arbiter/mpiox_program.c
    csrc/iod/cache/mpiox_cache.c
    csrc/iod/cache/mpiox_cache_errors.c
    csrc/iod/cache/mpiox_cache_family.c
    csrc/iod/cache/mpiox_cache_hidden.c
    csrc/iod/cache/mpiox_cache_kept.c
    csrc/iod/cache/mpiox_cache_layout.c
    csrc/iod/cache/mpiox_cache_page.c
    csrc/iod/cache/mpiox_cache_rescue.c
    csrc/iod/cache/mpiox_cache_waiting.c
    csrc/iod/cache/mpiox_dirty.c
    csrc/iod/cache/mpiox_frame.c
    csrc/iod/cache/mpiox_ring.c
    csrc/iod/process/mpiox_process.c
    csrc/iod/process/mpiox_process_supervise.c
    csrc/iod/service/mpiox_service_main.c
    csrc/iod/process/mpiox_process_child.c
    csrc/iod/process/mpiox_process_serve.c
    csrc/iod/process/mpiox_process_socket.c
    csrc/iod/process/mpiox_process_launcher_id.c
    csrc/iod/process/mpiox_process_notify.c
    csrc/iod/process/mpiox_process_peers.c
    csrc/iod/process/mpiox_process_liveness.c
    csrc/iod/delegated/mpiox_delegated.c
    csrc/iod/forwarded/mpiox_forwarded_access.c
    csrc/iod/forwarded/mpiox_forwarded_ahead.c
    csrc/iod/forwarded/mpiox_forwarded_balance.c
    csrc/iod/forwarded/mpiox_forwarded_behind.c
    csrc/iod/forwarded/mpiox_forwarded_claim.c
    csrc/iod/forwarded/mpiox_forwarded_errors.c
    csrc/iod/forwarded/mpiox_forwarded_flush_barrier.c
    csrc/iod/forwarded/mpiox_forwarded_hold.c
    csrc/iod/forwarded/mpiox_forwarded_file.c
    csrc/iod/forwarded/mpiox_forwarded_failover.c
    csrc/iod/forwarded/mpiox_forwarded_migrate.c
    csrc/iod/forwarded/mpiox_forwarded_owners.c
    csrc/iod/forwarded/mpiox_forwarded_remap.c
    csrc/iod/forwarded/mpiox_forwarded_replica.c
    csrc/iod/forwarded/mpiox_forwarded_request.c
    csrc/iod/forwarded/mpiox_forwarded_trace.c
    csrc/iod/service/mpiox_service.c
    csrc/iod/service/mpiox_service_call.c
    csrc/iod/service/mpiox_service_split.c
    csrc/iod/service/mpiox_service_check.c
    csrc/iod/service/mpiox_service_heap.c
    csrc/iod/service/mpiox_service_join.c
    csrc/iod/service/mpiox_service_patience.c
    csrc/iod/service/mpiox_service_plan.c
    csrc/iod/service/mpiox_service_settings.c
    csrc/iod/service/mpiox_service_spawn.c
    csrc/iod/service/mpiox_service_starting.c
    csrc/iod/service/mpiox_service_thread.c
    csrc/iod/service/mpiox_service_totals.c
    csrc/iod/network/mpiox_link_message.c
    csrc/iod/rendezvous/mpiox_handshake.c
    csrc/iod/rendezvous/mpiox_rendezvous_connect.c
    csrc/iod/rendezvous/mpiox_rendezvous_listen.c
    csrc/iod/rendezvous/mpiox_rendezvous_socket.c
    csrc/iod/schedule/mpiox_schedule.c
    csrc/iod/schedule/mpiox_schedule_aioli.c
    csrc/iod/schedule/mpiox_schedule_fifo.c
    csrc/iod/schedule/mpiox_schedule_hbrr.c
    csrc/iod/schedule/mpiox_schedule_lane.c
    csrc/iod/schedule/mpiox_schedule_mlf.c
    csrc/iod/schedule/mpiox_schedule_sjf.c
    csrc/iod/schedule/mpiox_schedule_to_agg.c
    csrc/iod/schedule/mpiox_schedule_tree.c
    csrc/iod/schedule/mpiox_schedule_twins.c
    csrc/iod/schedule/mpiox_schedule_wfq.c
    csrc/iod/schedule/mpiox_treap.c
    csrc/iod/server/mpiox_server_alone.c
    csrc/iod/server/mpiox_server_drain.c
    csrc/iod/server/mpiox_server_evict.c
    csrc/iod/server/mpiox_server_files.c
    csrc/iod/server/mpiox_server_fill.c
    csrc/iod/server/mpiox_server_flush.c
    csrc/iod/server/mpiox_server_hidden.c
    csrc/iod/server/mpiox_server_order.c
    csrc/iod/server/mpiox_server_pages.c
    csrc/iod/server/mpiox_server_ranges.c
    csrc/iod/server/mpiox_server_replica.c
    csrc/iod/server/mpiox_server_unwritten.c
    csrc/iod/server/mpiox_server_run.c
    csrc/iod/server/mpiox_server_share.c
    csrc/iod/server/mpiox_server_state.c
    csrc/iod/server/mpiox_server_target.c
    csrc/iod/third_party/monocypher/monocypher.c)

# the functions of MPI and of the public header
set(MPIOX_ENTRY_SOURCES
    csrc/entry/api/mpiio_ext_delegates.c
    csrc/entry/api/mpiio_ext_delegates_own.c
    csrc/entry/api/mpiio_ext_delegates_ping.c
    csrc/entry/api/mpiio_ext_delegates_recover.c
    csrc/entry/api/mpiio_ext_group.c
    csrc/entry/api/mpiio_ext_hints.c
    csrc/entry/api/mpiio_ext_layout.c
    csrc/entry/api/mpiio_ext_library.c
    csrc/entry/api/mpiio_ext_partition.c
    csrc/entry/api/mpiio_ext_schedule.c
    csrc/entry/api/mpiio_ext_stats.c
    csrc/entry/api/mpiio_ext_typemap.c
    csrc/entry/mpi/mpiox_any_mpi.c
    csrc/entry/mpi/mpiox_completion.c
    csrc/entry/mpi/mpiox_datatype.c
    csrc/entry/mpi/mpiox_finalize.c
    csrc/entry/mpi/mpiox_fortran_convert.c
    csrc/entry/mpi/mpiox_handle.c
    csrc/entry/mpi/mpiox_launcher.c
    csrc/entry/mpi/mpiox_mpi_abort.c
    csrc/entry/mpi/mpiox_mpi_access.c
    csrc/entry/mpi/mpiox_mpi_agree.c
    csrc/entry/mpi/mpiox_mpi_close.c
    csrc/entry/mpi/mpiox_mpi_delete.c
    csrc/entry/mpi/mpiox_mpi_error.c
    csrc/entry/mpi/mpiox_mpi_info.c
    csrc/entry/mpi/mpiox_mpi_open.c
    csrc/entry/mpi/mpiox_mpi_openers.c
    csrc/entry/mpi/mpiox_mpi_path.c
    csrc/entry/mpi/mpiox_mpi_pointer.c
    csrc/entry/mpi/mpiox_mpi_prepare.c
    csrc/entry/mpi/mpiox_mpi_print.c
    csrc/entry/mpi/mpiox_mpi_reduce.c
    csrc/entry/mpi/mpiox_mpi_report.c
    csrc/entry/mpi/mpiox_mpi_same.c
    csrc/entry/mpi/mpiox_mpi_seek.c
    csrc/entry/mpi/mpiox_mpi_shared.c
    csrc/entry/mpi/mpiox_mpi_size.c
    csrc/entry/mpi/mpiox_mpi_sync.c
    csrc/entry/mpi/mpiox_mpi_view.c
    csrc/entry/mpi/mpiox_mpi_view_judge.c
    csrc/entry/mpi/mpiox_nonblocking.c
    csrc/entry/mpi/mpiox_past_mpi.c
    csrc/entry/mpi/mpiox_preload_check.c
    csrc/entry/mpi/mpiox_tools.c
    csrc/entry/mpi/mpiox_witness.c
    csrc/entry/route/mpiox_route.c)

# preloaded so that calls on names of files wait for those that are still written: no MPI
set(MPIOX_POSIX_SOURCES
    csrc/entry/posix/mpiox_posix.c
    csrc/entry/posix/mpiox_posix_pnetcdf.c
    csrc/entry/posix/mpiox_posix_wait.c)

# what Python reads and computes with: no MPI
set(MPIOX_TOOLS_SOURCES
    ${MPIOX_DOMAINS_SOURCES}
    csrc/tools/analytics/mpiox_critical_path.c
    csrc/tools/binding/mpiio_ext_lock_model.c
    csrc/tools/binding/mpiio_ext_pioneer.c
    csrc/tools/binding/mpiio_ext_rawtrace.c
    csrc/tools/binding/mpiio_ext_critical_path.c
    csrc/tools/binding/mpiio_ext_tools.c
    csrc/tools/binding/mpiio_ext_trace.c
    csrc/tools/lock_model/mpiox_lock_model.c
    csrc/tools/lock_model/mpiox_lock_model_cache.c
    csrc/tools/lock_model/mpiox_lock_model_data.c
    csrc/tools/lock_model/mpiox_lock_model_server.c
    csrc/tools/lock_model/mpiox_lock_model_static.c
    csrc/tools/lock_model/mpiox_lock_model_token.c
    csrc/tools/lock_model/mpiox_lockset.c
    csrc/tools/pioneer/mpiox_diff.c
    csrc/tools/pioneer/mpiox_rawtrace.c
    csrc/tools/pioneer/mpiox_rawtrace_call.c
    csrc/tools/pioneer/mpiox_rawtrace_dftracer.c
    csrc/tools/pioneer/mpiox_rawtrace_json.c
    csrc/tools/pioneer/mpiox_rawtrace_names.c
    csrc/tools/pioneer/mpiox_rawtrace_recorder.c
    csrc/tools/pioneer/mpiox_rawtrace_rows.c
    csrc/tools/pioneer/mpiox_rawtrace_text.c
    csrc/tools/pioneer/mpiox_handle_resolution.c
    csrc/tools/pioneer/mpiox_handle_resolution_extra.c
    csrc/tools/pioneer/mpiox_handle_resolution_handles.c
    csrc/tools/pioneer/mpiox_tracefile.c
    csrc/tools/pioneer/mpiox_tracefile_reader.c
    csrc/tools/pioneer/mpiox_tracefile_texts.c)

# of the same parts, what differs in a library for tests (csrc/core/common/mpiox_testing.h), and what it has besides
set(MPIOX_HOOKED_SOURCES
    csrc/core/storage/mpiox_storage_open.c
    csrc/core/topology/mpiox_topology_nics.c
    csrc/mpiio/file/mpiox_file_open.c
    csrc/iod/network/mpiox_link.c
    csrc/iod/network/mpiox_link_access.c
    csrc/iod/network/mpiox_link_behind.c
    csrc/iod/network/mpiox_link_core.c
    csrc/iod/network/mpiox_link_extent.c
    csrc/iod/network/mpiox_link_stream.c
    csrc/iod/network/mpiox_remote.c
    csrc/iod/network/mpiox_remote_serve.c)
set(MPIOX_TESTING_SOURCES
    csrc/core/storage/mpiox_fault.c
    csrc/core/storage/mpiox_fault_rules.c
    csrc/iod/network/mpiox_link_fault.c)

# preloaded to record the calls of a program
set(MPIOX_TRACER_SOURCES
    csrc/tools/trace/mpiox_recording.c
    csrc/tools/trace/mpiox_recording_file.c
    csrc/tools/trace/mpiox_recording_time.c
    csrc/tools/trace/mpiox_trace_attributes.c
    csrc/tools/trace/mpiox_trace_clock.c
    csrc/tools/trace/mpiox_trace_core.c
    csrc/tools/trace/mpiox_trace_descriptors.c
    csrc/tools/trace/mpiox_trace_event.c
    csrc/tools/trace/mpiox_trace_file.c
    csrc/tools/trace/mpiox_trace_lock.c
    csrc/tools/trace/mpiox_trace_members.c
    csrc/tools/trace/mpiox_trace_mpi.c
    csrc/tools/trace/mpiox_trace_names.c
    csrc/tools/trace/mpiox_trace_paths.c
    csrc/tools/trace/mpiox_trace_place.c
    csrc/tools/trace/mpiox_trace_posix.c
    csrc/tools/trace/mpiox_trace_process.c
    csrc/tools/trace/mpiox_trace_requests.c
    csrc/tools/trace/mpiox_trace_stdio.c
    csrc/tools/trace/mpiox_trace_streams.c
    csrc/tools/trace/mpiox_trace_system.c
    csrc/tools/trace/mpiox_trace_view.c)

# carries out workload paths, by calls of MPI-IO as any program makes them
set(MPIOX_ENGINE_SOURCES
    csrc/tools/engine/mpiox_engine.c
    csrc/tools/engine/mpiox_engine_mpiio.c
    csrc/tools/engine/mpiox_engine_posix.c
    csrc/tools/engine/mpiox_engine_stdio.c)

# the program of `bench compare`, which any MPI's own MPI-IO runs, too
set(MPIOX_BANDWIDTH_SOURCES
    csrc/tools/bandwidth/mpiio_bandwidth.c
    csrc/tools/bandwidth/mpiio_bandwidth_climate.c)

# folders(OUT SOURCES...): the folders of sources, which are the include directories of their target.
function(folders out)
    set(found)
    foreach(source ${ARGN})
        get_filename_component(folder ${source} DIRECTORY)
        list(APPEND found ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
    endforeach()
    list(REMOVE_DUPLICATES found)
    set(${out} ${found} PARENT_SCOPE)
endfunction()

folders(tools_folders csrc/core/common/mpiox_error.c ${MPIOX_TOOLS_SOURCES})
