"""The modelling language: state, actions, channels. A model is written with nothing else.

Start at `state.py`, then `action.py`.
"""

from .action import Action, Instance, action, every_choice, execute, ghost_code, require
from .channel import Faults, Message, channel, fault_actions, part
from .domain import NONE, UNBOUNDED, Domain, Index, between, flag, maybe, upto
from .errors import (
    ChannelFault,
    DeclarationError,
    Disabled,
    DomainFault,
    DraincheckError,
    GhostFault,
    IndexFault,
    ModelFault,
)
from .state import Access, Cells, Event, Layout, State, field, ghost, lay_out

__all__ = [
    "NONE",
    "UNBOUNDED",
    "Access",
    "Action",
    "Cells",
    "ChannelFault",
    "DeclarationError",
    "Disabled",
    "Domain",
    "DomainFault",
    "DraincheckError",
    "Event",
    "Faults",
    "GhostFault",
    "Index",
    "IndexFault",
    "Instance",
    "Layout",
    "Message",
    "ModelFault",
    "State",
    "action",
    "between",
    "channel",
    "every_choice",
    "execute",
    "fault_actions",
    "field",
    "flag",
    "ghost",
    "ghost_code",
    "lay_out",
    "maybe",
    "part",
    "require",
    "upto",
]
