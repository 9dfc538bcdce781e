"""Commands under the names of the original tools: thin doors to the same acts as ``tripod``."""
