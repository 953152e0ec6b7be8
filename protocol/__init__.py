"""Floor 1: the modelling language and the roles of the protocol, written in it."""

from . import loaded as loaded  # first: see there
