"""The drop-in commands: ``nbs-bus`` and its like, as their documents promise them.

Thin doors to the same acts as ``tripod ...``, one module a command. What they share: ``words``
takes arguments apart, ``common`` finds the team, begins its ledger where there is none, and leaves
with an exit code. None imports click: scripts call these commands hundreds of times.
"""
