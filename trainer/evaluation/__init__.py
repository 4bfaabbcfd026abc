"""How close speech is to its recording, and what synthesis needs besides the weights."""
