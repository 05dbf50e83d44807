"""Where runs are computed: local processes, Dask or Ray."""
