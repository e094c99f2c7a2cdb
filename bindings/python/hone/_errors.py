"""The exceptions of the package."""


class Error(RuntimeError):
    """The library failed; base of the others."""


class UnsupportedError(Error):
    """Well formed, but this build or device cannot do it."""


class CompileError(Error):
    """A kernel did not compile; the message has the compiler's log."""


class DeviceError(Error):
    """The driver, or the checked host device, reported a failure."""


class DeviceLostError(DeviceError):
    """Nothing runs on the device any more: start a new process."""


class CacheError(Error):
    """The cache file failed where that is the purpose of the call."""


class NotTunedError(Error):
    """``on_miss='error'``, and no winner serves the call."""


# By the status of the C interface.
BY_STATUS = {
    1: ValueError,
    2: UnsupportedError,
    3: ValueError,
    4: CompileError,
    5: DeviceError,
    6: MemoryError,
    7: CacheError,
    8: CacheError,
    9: NotTunedError,
    10: DeviceLostError,
    11: Error,
}
