"""From corpus to cache: survey, plan, scan and extract, stage, commit."""
