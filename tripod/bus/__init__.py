"""The event queue: publish, acknowledge, claim, wait."""
