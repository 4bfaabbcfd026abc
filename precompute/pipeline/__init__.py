"""From corpus to cache: survey, plan, stage, commit."""
