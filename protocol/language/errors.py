"""The one family of exceptions, each with the exit code that the command line gives for it."""

from __future__ import annotations


class DraincheckError(Exception):
    """Something the user can mend; the message says what is wrong, where, and what to do."""

    exit_code = 2


class DeclarationError(DraincheckError):
    """A field, action, channel or model is declared wrongly. Raised when the module is loaded or bound."""


class ModelFault(DraincheckError):
    """An action did something the language forbids. `where` is filled in with the running action."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class DomainFault(ModelFault):
    """A value outside the domain of the field it was assigned to."""


class IndexFault(ModelFault):
    """An index outside the shape of the field it was used on."""


class ChannelFault(ModelFault):
    """A message sent into a full channel."""


class AccessFault(ModelFault):
    """Code that touches what it may not: wrong in every state, reachable or not."""


class GhostFault(AccessFault):
    """Protocol code that would depend on a ghost field, or ghost code that touches the protocol."""


class InnerFault(DraincheckError):
    """Two executions of one model differ: nothing that was found counts, and the user can mend nothing."""

    exit_code = 70


class Disabled(Exception):
    """A guard does not hold: the action cannot happen in this state. Raised by `require`."""
