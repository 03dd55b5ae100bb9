! fortran.F90 - the Fortran entry points: handles, statuses, strings, logicals, special addresses, optional ierror.
!
! One source for the three bindings: -DBINDING=1 mpif.h, 2 `use mpi`, 3 `use mpi_f08`.
! usage: fortran FILE     prints "ok NAME" or "FAILED NAME" on rank 0; stops with 1 when anything failed.
#if BINDING == 3
#define HANDLE(kind) type(kind)
#define STATUS type(MPI_Status)
#define NO_IERROR
#else
#define HANDLE(kind) integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#endif

program fortran
#if BINDING == 2
   use mpi
#elif BINDING == 3
   use mpi_f08
#endif
   implicit none
#if BINDING == 1
   include 'mpif.h'
#endif
   integer, parameter :: items = 1000
   integer :: values(items), back(items)
   integer :: rank, ranks, ierror, i, failures, count, amode
   integer(kind=MPI_OFFSET_KIND) :: zero, position, disp
   integer(kind=MPI_ADDRESS_KIND) :: address(1)
   logical :: flag
   character(len=300) :: name ! longer than any name: blanks must not become part of it
   character(len=40) :: datarep
   character(len=MPI_MAX_INFO_VAL) :: text
   HANDLE(MPI_File) :: file
   HANDLE(MPI_Datatype) :: columns, absolute, etype, filetype
   HANDLE(MPI_Info) :: info
   HANDLE(MPI_Group) :: group
   HANDLE(MPI_Request) :: request
   STATUS :: state

   call MPI_Init(ierror)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
   call get_command_argument(1, name)
   failures = 0
   zero = 0
   values = [(i * ranks + rank, i = 0, items - 1)]

   call MPI_Info_create(info, ierror)
   call MPI_Info_set(info, 'mpiox_partition', 'static_cyclic', ierror)
   call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR + MPI_MODE_CREATE, info, file, ierror)
   call check('open', ierror == MPI_SUCCESS)
   call MPI_Info_free(info, ierror)
   call MPI_File_set_size(file, zero, ierror)
   call MPI_File_get_amode(file, amode, ierror)
   call check('get_amode', amode == MPI_MODE_RDWR + MPI_MODE_CREATE)
   call MPI_File_get_group(file, group, ierror)
   call MPI_Group_size(group, count, ierror)
   call check('get_group', count == ranks)
   call MPI_Group_free(group, ierror)
   call MPI_File_get_info(file, info, ierror)
   call MPI_Info_get(info, 'mpiox_partition', MPI_MAX_INFO_VAL, text, flag, ierror)
   if (expect_ours()) call check('get_info', flag .and. trim(text) == 'static_cyclic')
   call MPI_Info_free(info, ierror)

   call MPI_Type_vector(items, 1, ranks, MPI_INTEGER, columns, ierror)
   call MPI_Type_commit(columns, ierror)
   disp = rank * 4
   call MPI_File_set_view(file, disp, MPI_INTEGER, columns, 'native  ', MPI_INFO_NULL, ierror)
   call check('set_view', ierror == MPI_SUCCESS)
   datarep = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'
   call MPI_File_get_view(file, position, etype, filetype, datarep, ierror)
   call check('get_view', position == disp .and. datarep == 'native')

   call MPI_File_write_at_all(file, zero, values, items, MPI_INTEGER, state, ierror)
   call MPI_Get_count(state, MPI_INTEGER, count, ierror)
   call check('write_at_all', count == items)
   back = -1
   call MPI_File_read_at_all(file, zero, back, items, MPI_INTEGER, MPI_STATUS_IGNORE, ierror)
   call check('read_at_all, status ignored', ierror == MPI_SUCCESS .and. all(back == values))

   call MPI_Get_address(values, address(1), ierror)
   call MPI_Type_create_hindexed(1, [items], address, MPI_INTEGER, absolute, ierror)
   call MPI_Type_commit(absolute, ierror)
   call MPI_File_seek(file, zero, MPI_SEEK_SET, ierror)
   call MPI_File_write_all(file, MPI_BOTTOM, 1, absolute, state, ierror)
   call check('write_all from MPI_BOTTOM', ierror == MPI_SUCCESS)
   call MPI_File_get_position(file, position, ierror)
   call check('get_position', position == items)
   call MPI_File_seek(file, zero, MPI_SEEK_SET, ierror)
   back = -1
   call MPI_File_read_all_begin(file, back, items, MPI_INTEGER, ierror)
   call MPI_File_read_all_end(file, back, state, ierror)
   call MPI_Get_count(state, MPI_INTEGER, count, ierror)
   call check('read_all_begin/end', count == items .and. all(back == values))

   back = -1
   call MPI_File_iread_at(file, zero, back, items, MPI_INTEGER, request, ierror)
   call MPI_Wait(request, state, ierror)
   call check('iread_at', all(back == values))
   call MPI_File_set_atomicity(file, .true., ierror)
   flag = .false.
   call MPI_File_get_atomicity(file, flag, ierror)
   call check('atomicity true', flag)
   call MPI_File_set_atomicity(file, .false., ierror)
   flag = .true.
   call MPI_File_get_atomicity(file, flag, ierror)
   call check('atomicity false', .not. flag)
   call MPI_File_sync(file, ierror)
   call MPI_File_get_size(file, position, ierror)
   call check('get_size', position == 4 * items * ranks)
   call MPI_File_write_at_all(file, zero, values, -1, MPI_INTEGER, state, ierror)
   call check('negative count', ierror /= MPI_SUCCESS)
#ifdef NO_IERROR
   back = -1
   call MPI_File_read_at_all(file, zero, back, items, MPI_INTEGER, MPI_STATUS_IGNORE)
   call check('without ierror', all(back == values))
#endif
   call MPI_File_close(file, ierror)
   call check('close', ierror == MPI_SUCCESS .and. file == MPI_FILE_NULL)
   call MPI_Barrier(MPI_COMM_WORLD, ierror)
   if (rank == 0) call MPI_File_delete(name, MPI_INFO_NULL, ierror)
   call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierror)
   call check('deleted', ierror /= MPI_SUCCESS)
   call MPI_Type_free(columns, ierror)
   call MPI_Type_free(absolute, ierror)
   call MPI_Finalize(ierror)
   if (failures > 0) stop 1

contains

   ! The value of the variable that the test sets when the library is under the program.
   logical function expect_ours()
      character(len=8) :: word
      call get_environment_variable('EXPECT_MPIIO_EXT', word)
      expect_ours = word == '1'
   end function expect_ours

   subroutine check(what, fine)
      character(len=*), intent(in) :: what
      logical, intent(in) :: fine
      logical :: everywhere
      integer :: code
      call MPI_Allreduce(fine, everywhere, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, code)
      if (.not. everywhere) failures = failures + 1
      if (rank == 0) then
         if (everywhere) then
            print '(2a)', 'ok ', what
         else
            print '(2a)', 'FAILED ', what
         end if
      end if
   end subroutine check

end program fortran
