"""The roles of the protocol, one thread a file. `state.py` declares what they share; `knobs.py` how releases differ.

A further role (router, admission, tiers, staging, heartbeat) is a new file here and fields in `state.py`.
"""
