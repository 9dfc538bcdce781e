"""The chats: send, read, keep."""
