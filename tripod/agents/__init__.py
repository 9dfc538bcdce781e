"""Running agents: ``spawn_agent`` runs one program once, and jobs record its runs in the ledger.

No protocol is known here: workers (``tripod.workers.worker``) and other roles build on it. No hot
command imports it. Source: spec kernel, sections 2 and 3; design section 8.
"""
