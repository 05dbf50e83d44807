"""Where trials run: processes of this host, or Slurm."""
