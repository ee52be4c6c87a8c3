"""What `ffm run` needs while stages run: the workflow's process, what stages report, and its screen."""
