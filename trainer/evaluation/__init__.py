"""How close speech is to its recording, and what synthesis has to know besides the weights."""
