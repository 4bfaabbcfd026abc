"""What the servers of pages share: the guard, bodies and refusals of requests, the address, the style."""
