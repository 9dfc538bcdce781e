"""Running agents: ``spawn_agent`` runs one program once, and jobs record its runs in the ledger.

- ``spec``: the description of one run of one program, and of its result; pure data.
- ``profiles``: how programs are run and how they answer; YAML files.
- ``spool``: the run directory, and ``spawn_agent(spec) -> result``.
- ``wrapper``: the small program that outlives its caller and writes down how the run ended.
- ``jobs``: runs in the ledger, intent first; they continue after any crash.

No protocol is known here: workers (``tripod.workers.writer``) and other roles build on it. No hot
command imports it. Source: spec kernel, sections 2 and 3; design section 8.
"""
