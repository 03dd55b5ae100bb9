! btio.f90 - solution output of a flow solver, written with collective MPI-IO from Fortran.
!
! The pattern of NAS BT-IO, subtype "full": a cube of n^3 points with five doubles each is distributed by diagonal
! multi-partition: with c^2 ranks every rank has c cells, no two of them in the same slab. Cells lie in memory with two
! ghost points on each side. One derived type describes all cells in memory, one in the file; every output step is one
! collective call that appends a cube. At the end all steps are read back the same way.
!
! usage: btio FILE N STEPS      on 1, 4, 9, 16... ranks

program btio
   use mpi
   implicit none
   integer, parameter :: ghost = 2
   integer :: rank, ranks, ierror, cells, n, steps, step, file, memory_type, file_type, widest
   integer, allocatable :: low(:, :), width(:, :) ! (dimension, cell): first point from 0, number of points
   double precision, allocatable :: u(:, :, :, :, :)
   double precision :: since, spent
   integer(kind=MPI_OFFSET_KIND) :: zero, at, cube
   integer(kind=8) :: wrong
   character(len=4096) :: name

   call MPI_Init(ierror)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
   call get_command_argument(1, name) ! the file
   n = number(2)
   steps = number(3)
   cells = nint(sqrt(dble(ranks)))
   if (cells**2 /= ranks) call give_up('the number of ranks must be a square')

   call distribute
   widest = maxval(width)
   allocate (u(5, -ghost:widest + ghost - 1, -ghost:widest + ghost - 1, -ghost:widest + ghost - 1, cells))
   call make_types
   cube = sum(int(product(width, 1), MPI_OFFSET_KIND)) * 5 ! doubles that this rank has in a step
   zero = 0
   spent = 0
   wrong = 0

   call start
   call MPI_File_open(MPI_COMM_WORLD, trim(name), MPI_MODE_WRONLY + MPI_MODE_CREATE, MPI_INFO_NULL, file, ierror)
   if (ierror /= MPI_SUCCESS) call give_up('cannot create '//trim(name))
   call MPI_File_set_size(file, zero, ierror)
   call MPI_File_set_view(file, zero, MPI_DOUBLE_PRECISION, file_type, 'native', MPI_INFO_NULL, ierror)
   call stop_watch
   do step = 1, steps
      call fill(step)
      at = cube * (step - 1)
      call start
      call MPI_File_write_at_all(file, at, u, 1, memory_type, MPI_STATUS_IGNORE, ierror)
      if (ierror /= MPI_SUCCESS) call give_up('cannot write')
      call stop_watch
   end do
   call start
   call MPI_File_close(file, ierror)
   call stop_watch
   call say('write')

   call start
   call MPI_File_open(MPI_COMM_WORLD, trim(name), MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierror)
   if (ierror /= MPI_SUCCESS) call give_up('cannot open '//trim(name))
   call MPI_File_set_view(file, zero, MPI_DOUBLE_PRECISION, file_type, 'native', MPI_INFO_NULL, ierror)
   call stop_watch
   do step = 1, steps
      u = -1
      at = cube * (step - 1)
      call start
      call MPI_File_read_at_all(file, at, u, 1, memory_type, MPI_STATUS_IGNORE, ierror)
      if (ierror /= MPI_SUCCESS) call give_up('cannot read')
      call stop_watch
      wrong = wrong + differences(step)
   end do
   call start
   call MPI_File_close(file, ierror)
   call stop_watch
   call say('read')

   call MPI_Type_free(memory_type, ierror)
   call MPI_Type_free(file_type, ierror)
   call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, ierror)
   if (wrong /= 0) call give_up('wrong values')
   if (rank == 0) print '(a)', 'btio verified'
   call MPI_Finalize(ierror)

contains

   integer function number(position)
      integer, intent(in) :: position
      character(len=32) :: text
      integer :: state
      call get_command_argument(position, text)
      read (text, *, iostat=state) number
      if (state /= 0 .or. number < 1) call give_up('bad or missing argument: see the head of the source')
   end function

   subroutine give_up(why)
      character(len=*), intent(in) :: why
      integer :: code
      write (0, '(a,i0,2a)') 'btio: rank ', rank, ': ', why
      call MPI_Abort(MPI_COMM_WORLD, 1, code)
   end subroutine

   ! Cell c of rank (column, row) lies at (column + c, row - c, c), modulo the number of cells.
   subroutine distribute
      integer :: c, d, place(3)
      allocate (low(3, cells), width(3, cells))
      do c = 1, cells
         place = [modulo(mod(rank, cells) + c - 1, cells), modulo(rank / cells - c + 1, cells), c - 1]
         do d = 1, 3
            low(d, c) = n / cells * place(d) + min(place(d), mod(n, cells))
            width(d, c) = n / cells + merge(1, 0, place(d) < mod(n, cells))
         end do
      end do
   end subroutine

   subroutine make_types
      integer :: in_memory(cells), in_file(cells), ones(cells), c, sizes(4), parts(4), starts(4), total
      integer(kind=MPI_ADDRESS_KIND) :: places(cells), origin

      ones = 1
      total = widest + 2 * ghost
      call MPI_Get_address(u, origin, ierror)
      do c = 1, cells
         parts = [5, width(:, c)]
         sizes = [5, total, total, total]
         starts = [0, ghost, ghost, ghost]
         call make_subarray(sizes, parts, starts, in_memory(c))
         call MPI_Get_address(u(1, -ghost, -ghost, -ghost, c), places(c), ierror)
         places(c) = places(c) - origin
         sizes = [5, n, n, n]
         starts = [0, low(:, c)]
         call make_subarray(sizes, parts, starts, in_file(c))
      end do
      call MPI_Type_create_struct(cells, ones, places, in_memory, memory_type, ierror)
      call MPI_Type_create_struct(cells, ones, 0 * places, in_file, file_type, ierror)
      call MPI_Type_commit(memory_type, ierror)
      call MPI_Type_commit(file_type, ierror)
   end subroutine

   subroutine make_subarray(sizes, parts, starts, kind)
      integer, intent(in) :: sizes(4), parts(4), starts(4)
      integer, intent(out) :: kind
      call MPI_Type_create_subarray(4, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, kind, ierror)
   end subroutine

   double precision function value(m, x, y, z, step)
      integer, intent(in) :: m, x, y, z, step

      value = ((dble(z) * n + y) * n + x) * 5 + m + 1d10 * step
   end function

   subroutine fill(step)
      integer, intent(in) :: step
      integer :: c, m, x, y, z

      u = -2 ! the ghost points
      do c = 1, cells
         do z = 0, width(3, c) - 1
            do y = 0, width(2, c) - 1
               do x = 0, width(1, c) - 1
                  u(:, x, y, z, c) = [(value(m, low(1, c) + x, low(2, c) + y, low(3, c) + z, step), m=1, 5)]
               end do
            end do
         end do
      end do
   end subroutine

   ! What was not read must not have been touched: the ghost points are compared, too.
   integer(kind=8) function differences(step)
      integer, intent(in) :: step
      double precision, allocatable :: seen(:, :, :, :, :)

      allocate (seen, source=u)
      call fill(step)
      where (u == -2) u = -1
      differences = count(seen /= u, kind=8)
   end function

   subroutine start
      call MPI_Barrier(MPI_COMM_WORLD, ierror)
      since = MPI_Wtime()
   end subroutine

   subroutine stop_watch
      spent = spent + MPI_Wtime() - since
   end subroutine

   ! What the slowest rank spent in MPI-IO, without the computation between.
   subroutine say(operation)
      character(len=*), intent(in) :: operation
      double precision :: slowest, data
      call MPI_Reduce(spent, slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierror)
      spent = 0
      data = 40d0 * dble(n)**3 * steps
      if (rank == 0) print '(3a,f0.1,a,f0.1,a)', 'btio ', operation, ' ', data / slowest / 1d6, ' MB/s, ', &
         data / 1d6, ' MB'
   end subroutine

end program
