"""The modelling language: state, actions, channels. A model is written with nothing else.

Start at `state.py`, then `action.py`.
"""

from .action import Action, Instance, action, every_choice, execute, ghost_code, require, running, truth
from .channel import Faults, Message, channel, fault_actions, part
from .domain import NONE, UNBOUNDED, Domain, Index, Symbolic, between, flag, is_number, maybe, upto
from .errors import (
    AccessFault,
    ChannelFault,
    DeclarationError,
    Disabled,
    DomainFault,
    DraincheckError,
    EngineDisagreement,
    GhostFault,
    IndexFault,
    ModelFault,
)
from .state import Access, Cells, Event, Layout, State, field, ghost, lay_out
from .whitelist import calls, machinery, require_constant, require_language, require_methods

__all__ = [
    "NONE",
    "UNBOUNDED",
    "Access",
    "AccessFault",
    "Action",
    "Cells",
    "ChannelFault",
    "DeclarationError",
    "Disabled",
    "Domain",
    "DomainFault",
    "DraincheckError",
    "EngineDisagreement",
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
    "Symbolic",
    "action",
    "between",
    "calls",
    "channel",
    "every_choice",
    "execute",
    "fault_actions",
    "field",
    "flag",
    "ghost",
    "ghost_code",
    "is_number",
    "lay_out",
    "machinery",
    "maybe",
    "part",
    "require",
    "require_constant",
    "require_language",
    "require_methods",
    "running",
    "truth",
    "upto",
]
