"""Running agents: the atom, ``spawn_agent``, and what records its runs.

- ``spec``: the order for one run of one program, and how it ended; pure data.
- ``profiles``: how programs are run and how they answer; YAML files.
- ``spawn``: ``spawn_agent(spec) -> result``, one program, once.
- ``spool``, ``wrapper``: the folder of a run, and the small program that outlives who ordered it.
- ``errands``: runs in the ledger, intent first; goes on after any death. ``history`` reads them.
- ``cassette``: a recorded run, played back as a program.

It knows no protocol: workers (``tripod.workers.run``) and other roles stand on it. No hot command
imports it. Source: spec kernel, sections 2 and 3; design section 8.
"""
