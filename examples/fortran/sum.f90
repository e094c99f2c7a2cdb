! Sums an array in Fortran, on the GPU or on the CPU where there is none.
program sum_example
  use hone
  implicit none
  integer(c_int64_t), parameter :: n = 1000000
  integer(c_size_t), parameter :: element_bytes = 4
  real(c_float), target :: values(n), total
  type(c_ptr) :: device, session, in, out
  type(hone_reduce_spec) :: spec

  values = 0.5
  call check(hone_device_open(hone_text("auto"), device))
  call check(hone_session_create(device, c_null_ptr, session))
  call check(hone_allocate(device, n * element_bytes, in))
  call check(hone_allocate(device, element_bytes, out))
  call check(hone_copy_to_device(device, in, c_loc(values), n * element_bytes, c_null_ptr))

  call check(hone_reduce_spec_init(spec, c_sizeof(spec)))
  spec%op = hone_op(hone_text("sum"))
  spec%dtype = hone_dtype(hone_text("f32"))
  call check(hone_reduce(session, spec, in, n, out, c_null_ptr, c_null_ptr))

  call check(hone_copy_to_host(device, c_loc(total), out, element_bytes, c_null_ptr))
  call check(hone_synchronize(device, c_null_ptr))
  print '(a, ": the sum of ", i0, " halves is ", f0.1)', hone_string(hone_device_name(device)), n, total

  call hone_deallocate(device, in)
  call hone_deallocate(device, out)
  call hone_session_destroy(session)
  call hone_device_close(device)

contains

  subroutine check(status)
    integer(c_int32_t), intent(in) :: status
    if (status == HONE_OK) return
    print '(a)', hone_message()
    stop 1
  end subroutine
end program
