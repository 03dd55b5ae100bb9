! fortran_calls.F90 - every call of MPI-IO with all that a Fortran binding converts; prints what each call returns.
!
! One source for the three bindings, as fortran.F90. tests/support/fortran_calls.py generates the calls,
! fortran_calls.inc, from the table of I/O calls. One rank, in a working folder with files of the test. Calls that fail
! follow if EXPECT_MPIIO_EXT is 1: MPI libraries differ there.
#if BINDING == 3
#define HANDLE(kind) type(kind)
#define STATUS type(MPI_Status)
#define ERROR_FIELD(status) status%MPI_ERROR
#define STATUSES(size) type(MPI_Status) :: states(size)
#define STATE(i) states(i)
#else
#define HANDLE(kind) integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define ERROR_FIELD(status) status(MPI_ERROR)
#define STATUSES(size) integer :: states(MPI_STATUS_SIZE, size)
#define STATE(i) states(:, i)
#endif

program fortran_calls
#if BINDING == 2
   use mpi
#elif BINDING == 3
   use mpi_f08
#endif
   implicit none
#if BINDING == 1
   include 'mpif.h'
#endif
   integer, parameter :: items = 16, many = 20000, untouched = -77
   integer :: values(items), read_back(many, 3)
   integer :: ierror, i, number, indices(3)
   integer(kind=MPI_OFFSET_KIND) :: offset
   integer(kind=MPI_ADDRESS_KIND) :: extent, address(2)
   logical :: flag, ours
   character(len=40) :: text
   HANDLE(MPI_File) :: file, fresh
   HANDLE(MPI_Datatype) :: pair, gaps, absolute, etype, filetype
   HANDLE(MPI_Info) :: info, used
   HANDLE(MPI_Group) :: group
   HANDLE(MPI_Errhandler) :: errhandler
   HANDLE(MPI_Request) :: request, requests(3)
   STATUS :: state
   STATUSES(3)

   call get_environment_variable('EXPECT_MPIIO_EXT', text)
   ours = text == '1'
   call MPI_Init_thread(MPI_THREAD_MULTIPLE, number, ierror)
   call show('Init_thread')
   call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
   call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
   call MPI_Type_contiguous(2, MPI_INTEGER, pair, ierror)
   call MPI_Type_commit(pair, ierror)
   call MPI_Type_vector(2, 1, 2, MPI_INTEGER, gaps, ierror)
   call MPI_Type_commit(gaps, ierror)
   call MPI_Get_address(values(2), address(1), ierror)
   call MPI_Get_address(values(5), address(2), ierror)
   call MPI_Type_create_hindexed(2, [2, 2], address, MPI_INTEGER, absolute, ierror)
   call MPI_Type_commit(absolute, ierror)
   call MPI_Info_create(info, ierror)
   call MPI_Info_set(info, '  cb_nodes  ', '  1  ', ierror)
   call MPI_Info_set(info, ' access_style', 'write_once , random  ', ierror)
#include "fortran_calls.inc"
   call MPI_Finalize(ierror)

contains

   ! Create and open a file of integers.
   subroutine open_file(name, amode)
      character(len=*), intent(in) :: name
      integer, intent(in) :: amode
      integer :: code, unit, i
      open (newunit=unit, file=name, form='unformatted', access='stream', status='replace')
      write (unit) [(i, i=101, 103 + many)]
      close (unit)
      call MPI_File_open(MPI_COMM_SELF, name, amode, info, file, code)
      if (code /= MPI_SUCCESS) stop 1
   end subroutine open_file

   subroutine close_file()
      integer :: code
      call MPI_File_close(file, code)
   end subroutine close_file

   ! Values that no call returns.
   subroutine clear()
      integer :: k
      values = [(k, k=1, items)]
      ierror = untouched
      number = untouched
      indices = untouched
      offset = untouched
      flag = .false.
      extent = untouched
      text = repeat('x', len(text))
      request = MPI_REQUEST_NULL
      fresh = MPI_FILE_NULL
      used = MPI_INFO_NULL
      etype = MPI_DATATYPE_NULL
      filetype = MPI_DATATYPE_NULL
      call MPI_Status_set_elements(state, MPI_INTEGER, 7, k)
      ERROR_FIELD(state) = untouched
      do k = 1, 3
         STATE(k) = state
      end do
   end subroutine clear

   ! Start reads on the requests first to last, of so many bytes that they take a while; the others are null.
   subroutine start(first, last)
      integer, intent(in) :: first, last
      integer :: code, k
      requests = MPI_REQUEST_NULL
      do k = first, last
         offset = 4*(k - 1)
         call MPI_File_iread_at(file, offset, read_back(:, k), many, MPI_INTEGER, requests(k), code)
      end do
   end subroutine start

   ! The second request is no access, and inactive.
   subroutine start_persistent()
      integer :: code
      requests = MPI_REQUEST_NULL
      call MPI_Send_init(values, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_SELF, requests(2), code)
   end subroutine start_persistent

   subroutine show(what)
      character(len=*), intent(in) :: what
      integer :: class, code
      class = ierror
      if (ierror /= untouched) call MPI_Error_class(ierror, class, code)
      print '(2a,i0)', what, ' class ', class
   end subroutine show

   subroutine show_number(what, value)
      character(len=*), intent(in) :: what
      integer(kind=MPI_OFFSET_KIND), intent(in) :: value
      print '(3a,i0)', '   ', what, ' ', value
   end subroutine show_number

   subroutine show_numbers(what, some)
      character(len=*), intent(in) :: what
      integer, intent(in) :: some(:)
      print '(2a,*(1x,i0))', '   ', what, some
   end subroutine show_numbers

   subroutine show_flag(what, value)
      character(len=*), intent(in) :: what
      logical, intent(in) :: value
      print '(3a,l1)', '   ', what, ' ', value
   end subroutine show_flag

   ! NUL is shown as 0: no Fortran string has one
   subroutine show_text(what, value)
      character(len=*), intent(in) :: what, value
      character(len=len(value)) :: shown
      integer :: k
      shown = value
      do k = 1, len(value)
         if (value(k:k) == char(0)) shown(k:k) = '0'
      end do
      print '(5a)', '   ', what, ' [', shown, ']'
   end subroutine show_text

   subroutine show_status(what, shown)
      character(len=*), intent(in) :: what
      STATUS, intent(in) :: shown
      integer :: count, elements, pairs, code
      call MPI_Get_count(shown, MPI_INTEGER, count, code)
      call MPI_Get_count(shown, pair, pairs, code)
      call MPI_Get_elements(shown, pair, elements, code)
      print '(2a,3(a,i0))', '   ', what, ' count ', count, ' pairs ', pairs, ' elements ', elements
   end subroutine show_status

   subroutine show_type(what, datatype)
      character(len=*), intent(in) :: what
      HANDLE(MPI_Datatype), intent(in) :: datatype
      integer :: size, code
      size = untouched
      if (datatype /= MPI_DATATYPE_NULL) call MPI_Type_size(datatype, size, code)
      print '(3a,i0)', '   ', what, ' size ', size
   end subroutine show_type

   ! What is in an info, by keys with blanks, whole and cut.
   subroutine show_info(what, shown)
      character(len=*), intent(in) :: what
      HANDLE(MPI_Info), intent(in) :: shown
      character(len=30) :: value
      logical :: there
      integer :: code
      print '(3a,l1)', '   ', what, ' null ', shown == MPI_INFO_NULL
      if (shown == MPI_INFO_NULL) return
      value = repeat('x', len(value))
      call MPI_Info_get(shown, ' cb_nodes ', len(value), value, there, code)
      print '(2a,l1)', '   ', ' cb_nodes ', there
      call show_text('cb_nodes', value)
      value = repeat('x', len(value))
      call MPI_Info_get(shown, 'access_style', len(value), value, there, code)
      print '(2a,l1)', '   ', 'access_style ', there
      call show_text('access_style', value)
      value = repeat('x', len(value))
      call MPI_Info_get(shown, 'access_style', 5, value(1:5), there, code)
      call show_text('access_style, cut', value)
   end subroutine show_info

   ! The size shows which of the test's files the binding has opened.
   subroutine show_file(what, shown)
      character(len=*), intent(in) :: what
      HANDLE(MPI_File), intent(inout) :: shown
      integer :: code, number(1)
      integer(kind=MPI_OFFSET_KIND) :: size
      print '(3a,l1)', '   ', what, ' null ', shown == MPI_FILE_NULL
      if (shown == MPI_FILE_NULL) return
      call MPI_File_get_size(shown, size, code)
      call show_number('size', size)
      number = 99
      call MPI_File_write(shown, number, 1, MPI_INTEGER, MPI_STATUS_IGNORE, code)
      call MPI_File_close(shown, code)
      print '(2a,l1)', '   ', 'closed, null ', shown == MPI_FILE_NULL
   end subroutine show_file

end program fortran_calls
