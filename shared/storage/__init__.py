"""Object stores: URLs, and reading and writing the objects below one."""
