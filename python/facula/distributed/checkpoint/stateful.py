"""Objects that give their state and take it."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """What save() asks for its state, and load() gives it to."""

    def state_dict(self) -> dict[str, Any]:
        """The state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
