"""`xtts-record`: a page on this machine to record a voice of one's own, check the takes, train and hear it."""
