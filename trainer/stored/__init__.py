"""What is stored of a run and of a voice: checkpoints, run folders, exported folders."""
