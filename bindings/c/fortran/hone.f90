! hone: the C interface of Hone for Fortran. Compile this file with the program; link libhone.
!
! Interfaces and types are those of hone/c.h, which says what each does. Texts are passed as hone_text("sum"); of the
! texts that the library gives, hone_string() makes a Fortran string.
module hone
  use, intrinsic :: iso_c_binding
  implicit none

  integer(c_int32_t), parameter :: HONE_OK = 0, HONE_INVALID_ARGUMENT = 1, HONE_UNSUPPORTED = 2, HONE_NOT_FOUND = 3, &
                                   HONE_COMPILE_FAILED = 4, HONE_DEVICE_FAILED = 5, HONE_OUT_OF_MEMORY = 6, &
                                   HONE_CACHE_FAILED = 7, HONE_IO_FAILED = 8, HONE_NOT_TUNED = 9, &
                                   HONE_DEVICE_LOST = 10, HONE_INTERNAL = 11
  integer(c_int32_t), parameter :: HONE_ON_MISS_TUNE = 0, HONE_ON_MISS_HEURISTIC = 1, HONE_ON_MISS_ERROR = 2
  integer(c_int32_t), parameter :: HONE_NAN_PROPAGATE = 0, HONE_NAN_IGNORE = 1
  integer(c_int32_t), parameter :: HONE_NUMERICS_FAST = 0, HONE_NUMERICS_REPRODUCIBLE = 1
  integer(c_int32_t), parameter :: HONE_ARGUMENT_IN = 0, HONE_ARGUMENT_OUT = 1, HONE_ARGUMENT_INOUT = 2, &
                                   HONE_ARGUMENT_SCALAR = 3, HONE_ARGUMENT_EXTENT = 4
  integer(c_int32_t), parameter :: HONE_FROM_MEMORY = 0, HONE_FROM_CACHE = 1, HONE_FROM_TUNING = 2, &
                                   HONE_FROM_HEURISTIC = 3, HONE_FROM_NEAREST = 4, &
                                   HONE_FROM_SHIPPED = 5

  integer(c_int32_t), parameter :: HONE_OBJECTIVE_TIME = 0, HONE_OBJECTIVE_ENERGY = 1

  ! The components are those of the structs of hone/c.h, in their order.
  type, bind(c) :: hone_session_options
    integer(c_size_t) :: size
    integer(c_int32_t) :: on_miss, capture_workspaces
    integer(c_int64_t) :: tune_budget_ms, cache_max_bytes
    type(c_ptr) :: cache_path
    integer(c_int32_t) :: cache_read_only, load_binaries, validate_pointers, objective
  end type

  type, bind(c) :: hone_choice
    integer(c_size_t) :: size
    integer(c_int32_t) :: source, tuned
    real(c_double) :: median_us
    integer(c_int64_t) :: max_blocks
  end type

  type, bind(c) :: hone_reduce_spec
    integer(c_size_t) :: size
    integer(c_int32_t) :: op, dtype, accumulator, result, nan_policy, numerics
  end type

  type, bind(c) :: hone_softmax_spec
    integer(c_size_t) :: size
    integer(c_int32_t) :: dtype, result, logarithm, numerics
    real(c_double) :: scale
    integer(c_int64_t) :: outer, reduced, inner, in_pitch, out_pitch
  end type

  ! Texts are c_loc() of targets that hold what hone_text() made, until the reduction is created; c_null_ptr: the default.
  type, bind(c) :: hone_reduction_source
    integer(c_size_t) :: size
    type(c_ptr) :: name, map, combine, identity, finish, declarations
    integer(c_int32_t) :: accumulator, result
    real(c_double) :: relative_tolerance
  end type

  type, bind(c) :: hone_rms_norm_spec
    integer(c_size_t) :: size
    integer(c_int32_t) :: dtype, reserved
    integer(c_int64_t) :: rows, columns
    real(c_double) :: eps
    integer(c_int64_t) :: in_pitch, out_pitch
  end type

  type, bind(c) :: hone_matrix_spec
    integer(c_size_t) :: size, element_bytes
    integer(c_int64_t) :: batch, rows, columns, in_pitch, out_pitch
  end type

  ! Texts are c_loc() of targets that hold what hone_text() made, until the argument is added; c_null_ptr: the default.
  type, bind(c) :: hone_kernel_argument
    integer(c_size_t) :: size
    integer(c_int32_t) :: kind, dtype
    type(c_ptr) :: name, elements, indices_below
    real(c_double) :: value
    integer(c_int32_t) :: reference_dtype, reserved
  end type

  ! What a reference gets: c_f_pointer(data, array, [elements]) is an array, which `number` is not.
  type, bind(c) :: hone_kernel_operand
    type(c_ptr) :: data
    integer(c_int64_t) :: elements
    real(c_double) :: number
  end type

  interface
    type(c_ptr) function hone_last_error() bind(c)
      import
    end function
    type(c_ptr) function hone_status_name(status) bind(c)
      import
      integer(c_int32_t), value :: status
    end function
    type(c_ptr) function hone_version() bind(c)
      import
    end function
    subroutine hone_free(text) bind(c)
      import
      type(c_ptr), value :: text
    end subroutine
    integer(c_int32_t) function hone_op(name) bind(c)
      import
      character(kind=c_char), intent(in) :: name(*)
    end function
    integer(c_int32_t) function hone_dtype(name) bind(c)
      import
      character(kind=c_char), intent(in) :: name(*)
    end function

    type(c_ptr) function hone_op_name(op) bind(c)
      import
      integer(c_int32_t), value :: op
    end function
    type(c_ptr) function hone_dtype_name(dtype) bind(c)
      import
      integer(c_int32_t), value :: dtype
    end function
    integer(c_size_t) function hone_dtype_size(dtype) bind(c)
      import
      integer(c_int32_t), value :: dtype
    end function
    integer(c_int32_t) function hone_op_outputs(op) bind(c)
      import
      integer(c_int32_t), value :: op
    end function

    integer(c_int32_t) function hone_device_open(name, device) bind(c)
      import
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(out) :: device
    end function
    subroutine hone_device_close(device) bind(c)
      import
      type(c_ptr), value :: device
    end subroutine
    type(c_ptr) function hone_device_name(device) bind(c)
      import
      type(c_ptr), value :: device
    end function
    ! Texts that functions give through an argument are freed with hone_free().
    integer(c_int32_t) function hone_devices(json) bind(c)
      import
      type(c_ptr), intent(out) :: json
    end function
    integer(c_int32_t) function hone_device_facts(device, json) bind(c)
      import
      type(c_ptr), value :: device
      type(c_ptr), intent(out) :: json
    end function
    integer(c_int32_t) function hone_allocate(device, bytes, pointer) bind(c)
      import
      type(c_ptr), value :: device
      integer(c_size_t), value :: bytes
      type(c_ptr), intent(out) :: pointer
    end function
    subroutine hone_deallocate(device, pointer) bind(c)
      import
      type(c_ptr), value :: device, pointer
    end subroutine
    integer(c_int32_t) function hone_copy_to_device(device, to, from_host, bytes, stream) bind(c)
      import
      type(c_ptr), value :: device, to, from_host, stream
      integer(c_size_t), value :: bytes
    end function
    integer(c_int32_t) function hone_copy_to_host(device, to_host, from, bytes, stream) bind(c)
      import
      type(c_ptr), value :: device, to_host, from, stream
      integer(c_size_t), value :: bytes
    end function
    integer(c_int32_t) function hone_stream_create(device, stream) bind(c)
      import
      type(c_ptr), value :: device
      type(c_ptr), intent(out) :: stream
    end function
    subroutine hone_stream_destroy(device, stream) bind(c)
      import
      type(c_ptr), value :: device, stream
    end subroutine
    integer(c_int32_t) function hone_synchronize(device, stream) bind(c)
      import
      type(c_ptr), value :: device, stream
    end function

    integer(c_int32_t) function hone_session_options_init(options, size) bind(c)
      import
      type(hone_session_options), intent(out) :: options
      integer(c_size_t), value :: size
    end function
    ! c_null_ptr for the default options, else c_loc(options).
    integer(c_int32_t) function hone_session_create(device, options, session) bind(c)
      import
      type(c_ptr), value :: device, options
      type(c_ptr), intent(out) :: session
    end function
    subroutine hone_session_destroy(session) bind(c)
      import
      type(c_ptr), value :: session
    end subroutine
    integer(c_int32_t) function hone_session_pin(session) bind(c)
      import
      type(c_ptr), value :: session
    end function
    integer(c_int32_t) function hone_session_counters(session, json) bind(c)
      import
      type(c_ptr), value :: session
      type(c_ptr), intent(out) :: json
    end function
    integer(c_int32_t) function hone_choice_init(choice, size) bind(c)
      import
      type(hone_choice), intent(out) :: choice
      integer(c_size_t), value :: size
    end function
    type(c_ptr) function hone_source_name(source) bind(c)
      import
      integer(c_int32_t), value :: source
    end function

    integer(c_int32_t) function hone_reduce_spec_init(spec, size) bind(c)
      import
      type(hone_reduce_spec), intent(out) :: spec
      integer(c_size_t), value :: size
    end function
    integer(c_int32_t) function hone_softmax_spec_init(spec, size) bind(c)
      import
      type(hone_softmax_spec), intent(out) :: spec
      integer(c_size_t), value :: size
    end function
    integer(c_int32_t) function hone_matrix_spec_init(spec, size) bind(c)
      import
      type(hone_matrix_spec), intent(out) :: spec
      integer(c_size_t), value :: size
    end function

    integer(c_int32_t) function hone_result_dtype(spec) bind(c)
      import
      type(hone_reduce_spec), intent(in) :: spec
    end function

    ! choice: c_null_ptr, or c_loc of a hone_choice.
    integer(c_int32_t) function hone_reduce(session, spec, in, n, out, stream, choice) bind(c)
      import
      type(c_ptr), value :: session, in, out, stream, choice
      type(hone_reduce_spec), intent(in) :: spec
      integer(c_int64_t), value :: n
    end function
    integer(c_int32_t) function hone_dot(session, spec, a, b, n, out, stream, choice) bind(c)
      import
      type(c_ptr), value :: session, a, b, out, stream, choice
      type(hone_reduce_spec), intent(in) :: spec
      integer(c_int64_t), value :: n
    end function
    ! outs: for each operation the address of its result.
    integer(c_int32_t) function hone_reduce_fused(session, ops, count, dtype, nan_policy, in, n, outs, stream, &
                                                  choice) bind(c)
      import
      type(c_ptr), value :: session, in, stream, choice
      integer(c_int32_t), intent(in) :: ops(*)
      integer(c_int32_t), value :: count, dtype, nan_policy
      integer(c_int64_t), value :: n
      type(c_ptr), intent(in) :: outs(*)
    end function
    integer(c_int32_t) function hone_reduce_rows(session, spec, in, rows, columns, pitch, out, stream, choice) bind(c)
      import
      type(c_ptr), value :: session, in, out, stream, choice
      type(hone_reduce_spec), intent(in) :: spec
      integer(c_int64_t), value :: rows, columns, pitch
    end function
    integer(c_int32_t) function hone_reduce_columns(session, spec, in, outer, reduced, inner, pitch, out, stream, &
                                                    choice) bind(c)
      import
      type(c_ptr), value :: session, in, out, stream, choice
      type(hone_reduce_spec), intent(in) :: spec
      integer(c_int64_t), value :: outer, reduced, inner, pitch
    end function
    integer(c_int32_t) function hone_reduce_segments(session, spec, in, elements, offsets, offset_dtype, segments, &
                                                     out, stream, choice) bind(c)
      import
      type(c_ptr), value :: session, in, offsets, out, stream, choice
      type(hone_reduce_spec), intent(in) :: spec
      integer(c_int64_t), value :: elements, segments
      integer(c_int32_t), value :: offset_dtype
    end function
    integer(c_int32_t) function hone_softmax(session, spec, in, out, stream, choice) bind(c)
      import
      type(c_ptr), value :: session, in, out, stream, choice
      type(hone_softmax_spec), intent(in) :: spec
    end function
    integer(c_int32_t) function hone_reduction_source_init(source, size) bind(c)
      import
      type(hone_reduction_source), intent(out) :: source
      integer(c_size_t), value :: size
    end function
    integer(c_int32_t) function hone_reduction_create(source, reduction) bind(c)
      import
      type(hone_reduction_source), intent(in) :: source
      type(c_ptr), intent(out) :: reduction
    end function
    subroutine hone_reduction_destroy(reduction) bind(c)
      import
      type(c_ptr), value :: reduction
    end subroutine
    integer(c_int32_t) function hone_reduce_custom(session, reduction, dtype, in, n, out, stream, choice) bind(c)
      import
      type(c_ptr), value :: session, reduction, in, out, stream, choice
      integer(c_int32_t), value :: dtype
      integer(c_int64_t), value :: n
    end function
    integer(c_int32_t) function hone_rms_norm_spec_init(spec, size) bind(c)
      import
      type(hone_rms_norm_spec), intent(out) :: spec
      integer(c_size_t), value :: size
    end function
    integer(c_int32_t) function hone_rms_norm(session, spec, in, residual, weight, out, sum, stream, choice) bind(c)
      import
      type(c_ptr), value :: session, in, residual, weight, out, sum, stream, choice
      type(hone_rms_norm_spec), intent(in) :: spec
    end function
    integer(c_int32_t) function hone_transpose(session, spec, in, out, stream, choice) bind(c)
      import
      type(c_ptr), value :: session, in, out, stream, choice
      type(hone_matrix_spec), intent(in) :: spec
    end function
    integer(c_int32_t) function hone_copy(session, spec, in, out, stream, choice) bind(c)
      import
      type(c_ptr), value :: session, in, out, stream, choice
      type(hone_matrix_spec), intent(in) :: spec
    end function

    integer(c_int32_t) function hone_problem_reduce(spec, n, alignment, problem) bind(c)
      import
      type(hone_reduce_spec), intent(in) :: spec
      integer(c_int64_t), value :: n
      integer(c_int32_t), value :: alignment
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int32_t) function hone_problem_reduce_rows(spec, rows, columns, pitch, alignment, problem) bind(c)
      import
      type(hone_reduce_spec), intent(in) :: spec
      integer(c_int64_t), value :: rows, columns, pitch
      integer(c_int32_t), value :: alignment
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int32_t) function hone_problem_reduce_columns(spec, outer, reduced, inner, pitch, alignment, &
                                                            problem) bind(c)
      import
      type(hone_reduce_spec), intent(in) :: spec
      integer(c_int64_t), value :: outer, reduced, inner, pitch
      integer(c_int32_t), value :: alignment
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int32_t) function hone_problem_reduce_segments(spec, elements, offset_dtype, segments, problem) bind(c)
      import
      type(hone_reduce_spec), intent(in) :: spec
      integer(c_int64_t), value :: elements, segments
      integer(c_int32_t), value :: offset_dtype
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int32_t) function hone_problem_reduce_fused(ops, count, dtype, nan_policy, n, alignment, problem) bind(c)
      import
      integer(c_int32_t), intent(in) :: ops(*)
      integer(c_int32_t), value :: count, dtype, nan_policy, alignment
      integer(c_int64_t), value :: n
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int32_t) function hone_problem_reduce_custom(reduction, dtype, n, alignment, problem) bind(c)
      import
      type(c_ptr), value :: reduction
      integer(c_int32_t), value :: dtype, alignment
      integer(c_int64_t), value :: n
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int32_t) function hone_problem_softmax(spec, alignment, problem) bind(c)
      import
      type(hone_softmax_spec), intent(in) :: spec
      integer(c_int32_t), value :: alignment
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int32_t) function hone_problem_rms_norm(spec, has_weight, has_residual, alignment, problem) bind(c)
      import
      type(hone_rms_norm_spec), intent(in) :: spec
      integer(c_int32_t), value :: has_weight, has_residual, alignment
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int32_t) function hone_problem_transpose(spec, alignment, in_place, problem) bind(c)
      import
      type(hone_matrix_spec), intent(in) :: spec
      integer(c_int32_t), value :: alignment, in_place
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int32_t) function hone_problem_copy(spec, alignment, problem) bind(c)
      import
      type(hone_matrix_spec), intent(in) :: spec
      integer(c_int32_t), value :: alignment
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int32_t) function hone_problem_kernel(kernel, extents, extent_count, alignment, problem) bind(c)
      import
      type(c_ptr), value :: kernel
      integer(c_int64_t), intent(in) :: extents(*)
      integer(c_int32_t), value :: extent_count, alignment
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int32_t) function hone_problem_set_graph(problem, is_graph) bind(c)
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: is_graph
    end function
    integer(c_int32_t) function hone_problem_text(problem, text) bind(c)
      import
      type(c_ptr), value :: problem
      type(c_ptr), intent(out) :: text
    end function
    subroutine hone_problem_destroy(problem) bind(c)
      import
      type(c_ptr), value :: problem
    end subroutine
    integer(c_int32_t) function hone_prepare(session, problem, choice) bind(c)
      import
      type(c_ptr), value :: session, problem, choice
    end function
    ! json: c_null_ptr, or c_loc of a type(c_ptr) that gets the text; free that with hone_free().
    integer(c_int32_t) function hone_tune(session, problem, budget_ms, json) bind(c)
      import
      type(c_ptr), value :: session, problem, json
      integer(c_int64_t), value :: budget_ms
    end function
    ! progress: c_null_funptr, or c_funloc of a bind(c) function as hone_progress in hone/c.h.
    integer(c_int32_t) function hone_tune_with_progress(session, problem, budget_ms, progress, context, json) bind(c)
      import
      type(c_ptr), value :: session, problem, context, json
      type(c_funptr), value :: progress
      integer(c_int64_t), value :: budget_ms
    end function

    integer(c_int32_t) function hone_stored_tuning(session, problem, json) bind(c)
      import
      type(c_ptr), value :: session, problem
      type(c_ptr), intent(out) :: json
    end function

    integer(c_int32_t) function hone_kernel_spec_create(spec) bind(c)
      import
      type(c_ptr), intent(out) :: spec
    end function
    subroutine hone_kernel_spec_destroy(spec) bind(c)
      import
      type(c_ptr), value :: spec
    end subroutine
    integer(c_int32_t) function hone_kernel_spec_add(spec, field, value) bind(c)
      import
      type(c_ptr), value :: spec
      character(kind=c_char), intent(in) :: field(*), value(*)
    end function
    ! values: the addresses of texts, as those of hone_kernel_argument.
    integer(c_int32_t) function hone_kernel_spec_add_parameter(spec, name, values, count) bind(c)
      import
      type(c_ptr), value :: spec
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(in) :: values(*)
      integer(c_int32_t), value :: count
    end function
    integer(c_int32_t) function hone_kernel_argument_init(argument, size) bind(c)
      import
      type(hone_kernel_argument), intent(out) :: argument
      integer(c_size_t), value :: size
    end function
    integer(c_int32_t) function hone_kernel_spec_add_argument(spec, argument) bind(c)
      import
      type(c_ptr), value :: spec
      type(hone_kernel_argument), intent(in) :: argument
    end function
    ! reference: c_funloc of a bind(c) function as hone_kernel_reference in hone/c.h.
    integer(c_int32_t) function hone_kernel_spec_set_reference(spec, reference, context) bind(c)
      import
      type(c_ptr), value :: spec, context
      type(c_funptr), value :: reference
    end function
    integer(c_int32_t) function hone_kernel_create(spec, kernel) bind(c)
      import
      type(c_ptr), value :: spec
      type(c_ptr), intent(out) :: kernel
    end function
    subroutine hone_kernel_destroy(kernel) bind(c)
      import
      type(c_ptr), value :: kernel
    end subroutine
    integer(c_int32_t) function hone_kernel_elements(kernel, extents, extent_count, elements, array_count) bind(c)
      import
      type(c_ptr), value :: kernel
      integer(c_int64_t), intent(in) :: extents(*)
      integer(c_int32_t), value :: extent_count, array_count
      integer(c_int64_t), intent(out) :: elements(*)
    end function
    integer(c_int32_t) function hone_kernel_launch(session, kernel, arrays, array_count, scalars, scalar_count, &
                                                   extents, extent_count, stream, choice) bind(c)
      import
      type(c_ptr), value :: session, kernel, stream, choice
      type(c_ptr), intent(in) :: arrays(*)
      real(c_double), intent(in) :: scalars(*)
      integer(c_int64_t), intent(in) :: extents(*)
      integer(c_int32_t), value :: array_count, scalar_count, extent_count
    end function

    integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
      import
      type(c_ptr), value :: text
    end function
  end interface

contains

  ! A text as C has it: with a zero at its end.
  pure function hone_text(text) result(c_text)
    character(*), intent(in) :: text
    character(kind=c_char) :: c_text(len(text) + 1)
    integer :: i
    do i = 1, len(text)
      c_text(i) = text(i:i)
    end do
    c_text(len(text) + 1) = c_null_char
  end function

  ! A copy of a text that the library gave; "" for a null pointer.
  function hone_string(pointer) result(text)
    type(c_ptr), intent(in) :: pointer
    character(:), allocatable :: text
    character(kind=c_char), pointer :: characters(:)
    integer :: i, length
    length = 0
    if (c_associated(pointer)) length = int(c_strlen(pointer))
    allocate (character(length) :: text)
    if (length == 0) return
    call c_f_pointer(pointer, characters, [length])
    do i = 1, length
      text(i:i) = characters(i)
    end do
  end function

  ! The message of this thread's last failure.
  function hone_message() result(text)
    character(:), allocatable :: text
    text = hone_string(hone_last_error())
  end function
end module
