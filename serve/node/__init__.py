"""One machine's processes: Ray, Serve and HAProxy started, watched, drained and stopped."""
