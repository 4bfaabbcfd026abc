"""Views of a cache: single clips, the HTML report, and the output of the commands."""
