"""How alike two voices sound: a distance that no training has seen, and the shares that it gives."""
