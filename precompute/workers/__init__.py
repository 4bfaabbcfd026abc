"""Worker processes: engines that run tasks, progress reports, and stopping a build."""
