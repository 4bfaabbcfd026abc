"""Object stores: URLs, and the few things that are done with the objects below one."""
