"""Errors of `compile`."""


class TorchDynamoException(RuntimeError):
    """An error of `compile`."""


class InternalTorchDynamoError(TorchDynamoException):
    """An error within `compile` itself."""


class ResetRequired(TorchDynamoException):
    """A setting that may not change after a compilation."""


class InvalidBackend(TorchDynamoException):
    """A backend that is not registered."""

    def __init__(self, name):
        super().__init__(
            f"Invalid backend: {name!r}. See `torch._dynamo.list_backends()` for available "
            "backends."
        )


class Unsupported(TorchDynamoException):
    """A program that cannot be compiled as a whole."""


class UserError(Unsupported):
    """A program that `compile` was told wrong things about."""


class TorchRuntimeError(TorchDynamoException):
    """An operator that failed while a program was traced."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend that failed."""


class RecompileError(TorchDynamoException):
    """A program that would be compiled again, against a setting."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """A program that was compiled too often."""
