"""The files of the team as a whole: actors, counts, trust, redactions."""
