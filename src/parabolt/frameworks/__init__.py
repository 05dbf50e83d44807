"""Launch settings of training frameworks, one file each."""
