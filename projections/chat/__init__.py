"""The chats as files: their format, their tables, what others write into them."""
